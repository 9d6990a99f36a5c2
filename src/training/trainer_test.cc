#include "training/trainer.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "base/error.h"
#include "base/file.h"
#include "training/data_for_test.h"
#include "training/reinitialise.h"
#include "zoo/builder.h"
#include "zoo/zoo.h"

namespace netmend::training {
namespace {

Task task_of(model::Graph graph, std::shared_ptr<const dataset::Dataset> data, Options options) {
  model::ValueId output = graph.outputs[0];
  return {"model", std::move(graph), output, data, data, options};
}

Task small_task(Options options = {.epochs = 4}) {
  return task_of(zoo::make("mlp:6-8-3"), random_classes(100, {6}, 3), options);
}

void run_all(Trainer& trainer) {
  while (!trainer.done()) trainer.run_epoch();
}

void expect_equal(const model::Graph& a, const model::Graph& b) {
  for (const auto& [id, constant] : a.constants)
    EXPECT_TRUE(constant.value.equal(b.constant(id))) << a.values[size_t(id)].name;
}

class TrainerFiles : public testing::Test {
 protected:
  std::string path = testing::TempDir() + "netmend_trainer_test.ckpt";
  ~TrainerFiles() override { std::filesystem::remove(path); }
};

TEST(Trainer, LearnsDrawnDigits) {
  std::shared_ptr<const dataset::Dataset> train = dataset::open("glyphs:train"), test = dataset::open("glyphs:test");
  std::vector<int64_t> some(1500), few(500);
  std::iota(some.begin(), some.end(), 0), std::iota(few.begin(), few.end(), 0);
  Task task = task_of(zoo::make("lenet4"), dataset::subset(train, some), {.rate = 0.002, .epochs = 3});
  task.validation = dataset::subset(test, few);
  Trainer trainer(std::move(task));
  run_all(trainer);
  EXPECT_EQ(trainer.history().size(), 3u);
  EXPECT_LT(trainer.history()[2].loss, trainer.history()[0].loss);
  EXPECT_GT(trainer.history()[2].val_accuracy, 0.7);
}

TEST(Trainer, SameSeedSameBits) {
  Trainer one(small_task({.epochs = 2, .jobs = 1})), two(small_task({.epochs = 2, .jobs = 3})),
      other(small_task({.epochs = 2, .seed = 9}));
  run_all(one), run_all(two), run_all(other);
  expect_equal(one.result(), two.result());
  EXPECT_EQ(one.history()[1].val_loss, two.history()[1].val_loss);
  EXPECT_NE(one.history()[1].loss, other.history()[1].loss);
}

TEST_F(TrainerFiles, ResumedEqualsUninterrupted) {
  for (Method method : {Method::kSgd, Method::kMomentum, Method::kAdam, Method::kRmsprop, Method::kAdagrad,
                        Method::kAdamax, Method::kNadam}) {
    Options options{.method = method, .rate = 0.01, .schedule = parse_schedule("cosine"), .epochs = 4};
    Trainer whole(small_task(options)), first(small_task(options)), second(small_task(options));
    run_all(whole);
    first.run_epoch();
    first.save(path);
    second.load(path);
    run_all(second);
    expect_equal(whole.result(), second.result());
    ASSERT_EQ(second.history().size(), 4u);
    EXPECT_EQ(whole.history()[3].loss, second.history()[3].loss);
    EXPECT_EQ(whole.history()[0].loss, second.history()[0].loss);
  }
}

TEST_F(TrainerFiles, AnotherTasksCheckpointIsRefused) {
  Trainer trainer(small_task());
  trainer.run_epoch();
  trainer.save(path);
  Trainer rate(small_task({.rate = 0.5, .epochs = 4})), longer(small_task({.epochs = 7}));
  EXPECT_THROW(rate.load(path), InputError);
  EXPECT_NO_THROW(longer.load(path));  // more epochs with a constant rate are no other task
  Trainer model(task_of(zoo::make("mlp:6-9-3"), random_classes(100, {6}, 3), {.epochs = 4}));
  EXPECT_THROW(model.load(path), InputError);
  Trainer weights(task_of(zoo::make("mlp:6-8-3", {.seed = 5}), random_classes(100, {6}, 3), {.epochs = 4}));
  EXPECT_THROW(weights.load(path), InputError);
  Trainer data(task_of(zoo::make("mlp:6-8-3"), random_classes(90, {6}, 3), {.epochs = 4}));
  EXPECT_THROW(data.load(path), InputError);
}

TEST_F(TrainerFiles, DamagedCheckpointsAreRefused) {
  Trainer trainer(small_task());
  trainer.run_epoch();
  trainer.save(path);
  const std::string good = read_file(path);
  model::Graph before = trainer.result();
  std::vector<std::string> bad = {
      "",         "netmend checkpoint 1\n",        "netmend checkpoint 2\n{}\n", "netmend checkpoint 2\nnull\n",
      good + "x", "netmend checkpoint 2\n[1,2]\n", std::string(5000, '\0')};
  for (const char* header :
       {"", "{}", "[]", "{\"task\": 1, \"steps\": 1, \"history\": []}", "[[[[[[[[[[[[[]]]]]]]]]]]]]"})
    bad.push_back("netmend checkpoint 2\n" + checksum(std::string(header) + "\n") + "\n" + header + "\n");
  for (size_t cut = 0; cut < good.size(); cut += 97) bad.push_back(good.substr(0, cut));
  for (size_t at = 0; at < good.size(); at += 61) {
    bad.push_back(good);
    bad.back()[at] = char(bad.back()[at] ^ 0x15);
  }
  for (const std::string& content : bad) {
    write_file(path, content);
    EXPECT_THROW(trainer.load(path), InputError) << content.substr(0, 60);
  }
  expect_equal(before, trainer.result());
  std::filesystem::remove(path);
  EXPECT_THROW(trainer.load(path), InputError);
}

TEST(Trainer, NotFiniteLossStopsWithTheEpochBefore) {
  Trainer trainer(small_task({.method = Method::kSgd, .rate = 1e30, .epochs = 3}));
  try {
    run_all(trainer);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("epoch"), std::string::npos);
    EXPECT_NE(error.hint().find("--rate"), std::string::npos);
  }
  for (const auto& [id, constant] : trainer.result().constants)
    EXPECT_TRUE(constant.value.isfinite().all().item<bool>());
}

TEST(Trainer, LooksThroughASoftmax) {
  zoo::Builder b("soft", zoo::Scheme::kGlorot, 1);
  model::Graph graph = b.finish(b.plain("Softmax", {b.dense("fc", b.input("x", {6}), 6, 3)}), "chance", 3);
  Trainer soft(task_of(graph, random_classes(100, {6}, 3), {.epochs = 1}));
  zoo::Builder p("plain", zoo::Scheme::kGlorot, 1);
  Trainer plain(task_of(p.finish(p.dense("fc", p.input("x", {6}), 6, 3), "logits", 3), random_classes(100, {6}, 3),
                        {.epochs = 1}));
  EXPECT_EQ(soft.run_epoch().loss, plain.run_epoch().loss);
}

TEST(Trainer, LearnsNumbers) {
  at::manual_seed(2);
  at::Tensor x = at::randn({200, 4}), y = at::mm(x, at::randn({4, 1})).flatten();
  Trainer trainer(task_of(zoo::make("mlp:4-1"), std::make_shared<TensorData>(x, y, 0), {.rate = 0.05, .epochs = 20}));
  run_all(trainer);
  EXPECT_LT(trainer.history().back().val_loss, 0.01);
  EXPECT_TRUE(std::isnan(trainer.history().back().val_accuracy));
}

TEST(Trainer, HalfPrecisionWeightsAreRoundedAsTheyAreStored) {
  Task task = small_task({.epochs = 1});
  for (auto& [id, constant] : task.graph.constants) constant.stored = model::Element::kFloat16;
  Trainer trainer(std::move(task));
  trainer.run_epoch();
  model::Graph graph = trainer.result();
  at::Tensor weight = graph.constant(graph.find("fc1.weight"));
  EXPECT_TRUE(weight.equal(weight.to(at::kHalf).to(at::kFloat)));
}

TEST(Trainer, RefusesWhatItCannotTrain) {
  Task wide = small_task();
  model::ValueId id = wide.graph.find("fc1.weight");
  wide.graph.constants[id].value = wide.graph.constants[id].value.to(at::kDouble);
  wide.graph.constants[id].stored = model::Element::kDouble;
  EXPECT_THROW(Trainer{std::move(wide)}, InputError);
  EXPECT_THROW(Trainer{task_of(zoo::make("mlp:6-2"), random_classes(50, {6}, 3), {})}, InputError);
}

TEST(Trainer, OneInputThatIsLeftOverDoesNotStopBatchNorm) {
  zoo::Builder b("normed", zoo::Scheme::kGlorot, 1);
  model::Graph graph =
      b.finish(b.dense("fc", b.batch_norm("bn", b.dense("fc1", b.input("x", {6}), 6, 4), 4), 4, 3), "logits", 3);
  Trainer trainer(task_of(graph, random_classes(33, {6}, 3), {.epochs = 1, .batch = 16}));
  EXPECT_NO_THROW(trainer.run_epoch());
}

TEST(Reinitialise, GivesEveryParameterItsStart) {
  model::Graph graph = zoo::make("resnet20", {.seed = 1});
  for (auto& [id, constant] : graph.constants) constant.value = at::full_like(constant.value, 7);
  reinitialise(graph, "glorot", 3);
  auto value = [&](const std::string& name) { return graph.constant(graph.find(name)); };
  EXPECT_NEAR(value("layer3.2.conv2.weight").abs().max().item<double>(), std::sqrt(6.0 / (2 * 64 * 9)), 1e-3);
  EXPECT_NEAR(value("fc.weight").abs().max().item<double>(), std::sqrt(6.0 / 74), 1e-2);
  EXPECT_EQ(value("fc.bias").abs().max().item<double>(), 0);
  EXPECT_TRUE(value("bn1.weight").equal(at::ones({16})) && value("bn1.bias").equal(at::zeros({16})));
  EXPECT_TRUE(value("bn1.running_mean").equal(at::zeros({16})) && value("bn1.running_var").equal(at::ones({16})));
  EXPECT_THROW(reinitialise(graph, "nothing", 3), InputError);
}

}  // namespace
}  // namespace netmend::training
