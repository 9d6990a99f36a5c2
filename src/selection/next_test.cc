#include "selection/next.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "dataset/memory_dataset.h"
#include "selection/failures.h"
#include "session/folder_for_test.h"
#include "session/split.h"
#include "zoo/zoo.h"

namespace netmend::selection {
namespace {

constexpr int64_t kInputs = 300;

std::shared_ptr<dataset::MemoryDataset> some_data(bool labels, uint64_t seed, int64_t count = kInputs) {
  at::manual_seed(seed);
  const at::Tensor x = at::randn({count, 4}), y = at::randint(3, {count}, at::kLong);
  auto data = std::make_shared<dataset::MemoryDataset>(
      dataset::table_feature({"a", "b", "c", "d"}), x, labels ? y : at::Tensor(),
      labels ? std::vector<std::string>{"cat", "dog", "owl"} : std::vector<std::string>{},
      "memory:" + std::to_string(seed));
  std::vector<std::vector<std::string>> hours;
  for (int64_t i = 0; i < count; ++i) hours.push_back({i % 3 ? "day" : "night"});
  data->set_groups({"hour"}, hours);
  return data;
}

session::Session open(std::shared_ptr<const dataset::Dataset> test,
                      std::shared_ptr<const dataset::Dataset> train = nullptr) {
  session::Request request;
  request.quiet = true, request.out = "run";
  return session::Session(request, "m.onnx", zoo::make("mlp:4-8-5-3", {.seed = 1}), std::move(test), std::move(train));
}

/// Probabilities, computed without the pass.
at::Tensor probabilities(session::Session& session) {
  const session::Split& tests = session.test();
  const int64_t count = tests.inputs();
  return at::softmax(
      stream::run_few(tests.subject, {session.head().logits}, tests.data->read(stream::spread(count, count)))[0].to(
          at::kDouble),
      1);
}

TEST(Next, UncertaintyAgreesWithItsDefinition) {
  session::Session pool = open(some_data(false, 1)), known = open(some_data(true, 2));
  const at::Tensor p = probabilities(pool);
  const auto sorted = std::get<0>(p.sort(1, true));
  const std::vector<std::pair<std::string, at::Tensor>> scores = {{"gini", 1 - p.square().sum(1)},
                                                                  {"margin", sorted.select(1, 1) - sorted.select(1, 0)},
                                                                  {"max-p", 1 - sorted.select(1, 0)}};
  for (const auto& [method, score] : scores) {
    const NextReport report = choose_next(pool, known, {method, "", {}, 10});
    ASSERT_EQ(report.chosen.size(), 10u) << method;
    const at::Tensor best = std::get<0>(score.sort(0, true));
    for (int64_t i = 0; i < 10; ++i)
      EXPECT_NEAR(score[report.chosen[size_t(i)].sample].item<double>(), best[i].item<double>(), 1e-6) << method;
    EXPECT_FALSE(report.labelled);
  }
}

TEST(Next, LabelledPoolsTellHowManyAreWrong) {
  session::Session pool = open(some_data(true, 1)), known = open(some_data(true, 2));
  const NextReport report = choose_next(pool, known, {"entropy", "", {}, 50});
  const at::Tensor wrong =
      probabilities(pool).argmax(1) != pool.test().data->read(stream::spread(kInputs, kInputs)).labels;
  EXPECT_TRUE(report.labelled);
  EXPECT_EQ(report.wrong, wrong.sum().item<int64_t>());
  int64_t chosen = 0;
  for (const ChosenInput& one : report.chosen) chosen += wrong[one.sample].item<bool>();
  EXPECT_EQ(report.chosen_wrong, chosen);
  ASSERT_TRUE(report.apfd.has_value());
  EXPECT_GT(*report.apfd, 0);
  EXPECT_LT(*report.apfd, 1);
}

TEST(Next, CoresetTakesTheFarthestFromWhatIsKnown) {
  session::Session pool = open(some_data(false, 1)), known = open(some_data(true, 2), some_data(true, 3));
  const NextReport report = choose_next(pool, known, {"coreset", "", {}, 1});
  EXPECT_EQ(report.known, kInputs);
  EXPECT_EQ(report.known_data, "memory:3");  // training data before tests
  auto values = [&](session::Split& split) {
    for (const model::Layer& layer : pool.layers())
      if (layer.name == report.layer)
        return stream::run_few(split.subject, {layer.post}, split.data->read(stream::spread(kInputs, kInputs)))[0];
    return at::Tensor();
  };
  const at::Tensor nearest = std::get<0>(at::cdist(values(pool.test()), values(*known.train())).min(1));
  EXPECT_NEAR(nearest[report.chosen[0].sample].item<float>(), nearest.max().item<float>(), 1e-5);
  EXPECT_FALSE(report.apfd.has_value());
  EXPECT_THROW(choose_next(pool, pool, {"surprise", "", {}, 1}), InputError);  // no training data
  EXPECT_EQ(choose_next(pool, known, {"surprise", "", {}, 5}).chosen.size(), 5u);
}

TEST(Next, AUnitIsDrivenAboveWhatTestsReach) {
  session::Session pool = open(some_data(false, 1)), known = open(some_data(true, 2));
  const model::Layer layer = pool.layers()[0];
  const NextReport report = choose_next(pool, known, {"gini", "unit=" + layer.name + "/2", {}, 3});
  auto values = [&](session::Split& split) {
    return stream::run_few(split.subject, {layer.post}, split.data->read(stream::spread(kInputs, kInputs)))[0].select(
        1, 2);
  };
  const at::Tensor own = values(pool.test()), reached = values(known.test());
  EXPECT_EQ(report.chosen[0].sample, own.argmax().item<int64_t>());
  EXPECT_NEAR(*report.tests_reach, reached.max().item<float>(), 1e-6);
  EXPECT_EQ(*report.above, (own > reached.max()).sum().item<int64_t>());
  EXPECT_THROW(choose_next(pool, known, {"gini", "unit=nowhere/2", {}, 3}), InputError);
}

TEST(Next, SlipsOfTheFingerShowBeforeTheWork) {
  NextRequest upper{"GINI"}, wrong{"ginni"}, on{"gini", "class=cat"};
  check_request(upper);
  EXPECT_EQ(upper.method, "gini");
  EXPECT_THROW(check_request(wrong), InputError);
  EXPECT_THROW(check_request(on), InputError);
  const session::FolderForTest folder;
  std::filesystem::create_directory("photos");
  EXPECT_EQ(pool_spec("photos/"), "images:photos");
  EXPECT_EQ(pool_spec("mnist:train"), "mnist:train");
}

TEST(Next, TheTableHasARowPerChosenInput) {
  const session::FolderForTest folder;
  session::Session pool = open(some_data(true, 1)), known = open(some_data(true, 2));
  write_chosen("chosen.csv", choose_next(pool, known, {"mcp", "", {}, 7}));
  const std::string text = read_file("chosen.csv", 1 << 20);
  EXPECT_EQ(text.substr(0, text.find('\n')), "rank,sample,id,predicted,confidence,second,second_confidence,ratio");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 8);
}

TEST(Failures, AreAllWrongPredictionsSortedAndGrouped) {
  session::Session session = open(some_data(true, 1));
  const at::Tensor p = probabilities(session),
                   labels = session.test().data->read(stream::spread(kInputs, kInputs)).labels;
  const at::Tensor predicted = p.argmax(1), wrong = predicted != labels;
  const FailuresReport report = find_failures(session, {"", "confidence", "pair"});
  EXPECT_EQ(report.wrong, wrong.sum().item<int64_t>());
  ASSERT_EQ(int64_t(report.failures.size()), report.wrong);
  std::set<int64_t> seen;
  for (size_t i = 0; i < report.failures.size(); ++i) {
    const Failure& one = report.failures[i];
    EXPECT_TRUE(wrong[one.row.sample].item<bool>());
    EXPECT_TRUE(seen.insert(one.row.sample).second);
    EXPECT_NEAR(one.row.confidence, p[one.row.sample].max().item<double>(), 1e-5);
    EXPECT_NEAR(one.margin + one.second_probability, one.row.confidence, 1e-5);
    if (i > 0) {
      EXPECT_GE(report.failures[i - 1].row.confidence, one.row.confidence);
    }
  }
  int64_t grouped = 0;
  for (size_t g = 0; g < report.groups.size(); ++g) {
    grouped += report.groups[g].count;
    if (g > 0) {
      EXPECT_GE(report.groups[g - 1].count, report.groups[g].count);
    }
  }
  EXPECT_EQ(grouped, report.wrong);
  const FailureGroup& first = report.groups[0];
  EXPECT_NE(first.name.find(" predicted as "), std::string::npos);
  // What a group names as its target finds as many.
  EXPECT_EQ(int64_t(find_failures(session, {first.on}).failures.size()), first.count);
}

TEST(Failures, ByColumnAndByTarget) {
  const session::FolderForTest folder;
  session::Session session = open(some_data(true, 1));
  const FailuresReport all = find_failures(session, {"", "loss", "hour"}),
                       night = find_failures(session, {"slice=hour=night"});
  for (const Failure& one : night.failures) EXPECT_EQ(describe(session, one).groups, std::vector<std::string>{"night"});
  for (const FailureGroup& group : all.groups)
    if (group.name == "hour=night") {
      EXPECT_EQ(group.count, int64_t(night.failures.size()));
    }
  ASSERT_EQ(all.groups.size(), 2u);
  write_table("failures.csv", session, night, false);
  const std::string text = read_file("failures.csv", 1 << 20);
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "sample,id,label,predicted,confidence,loss,second,second_confidence,margin,hour");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), int64_t(night.failures.size()) + 1);
  EXPECT_THROW(find_failures(session, {"", "loss", "minute"}), InputError);
  EXPECT_THROW(find_failures(session, {"class=horse"}), InputError);
  EXPECT_THROW(check_request({"", "los"}), InputError);
  session::Session unlabelled = open(some_data(false, 1));
  EXPECT_THROW(find_failures(unlabelled, {}), InputError);
}

TEST(Failures, PredictionsThatAreNaNComeFirst) {
  std::vector<Failure> failures(4);
  for (size_t i = 0; i < 4; ++i) failures[i].row.sample = int64_t(i), failures[i].row.predicted = 0;
  failures[0].row.loss = 1, failures[1].row.loss = 5, failures[2].row.loss = 5, failures[3].row.predicted = NAN;
  sort_failures(failures, "loss");
  std::vector<int64_t> order;
  for (const Failure& one : failures) order.push_back(one.row.sample);
  EXPECT_EQ(order, (std::vector<int64_t>{3, 1, 2, 0}));  // of equal ones the earlier
}

}  // namespace
}  // namespace netmend::selection
