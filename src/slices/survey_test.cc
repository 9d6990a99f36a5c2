#include "slices/survey.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "base/file.h"
#include "dataset/memory_dataset.h"
#include "session/folder_for_test.h"
#include "session/split.h"
#include "slices/failing.h"
#include "slices/threshold.h"
#include "zoo/zoo.h"

namespace netmend::slices {
namespace {

constexpr int64_t kInputs = 800;

std::shared_ptr<dataset::MemoryDataset> some_data(bool labels = true) {
  at::manual_seed(4);
  auto data = std::make_shared<dataset::MemoryDataset>(
      dataset::table_feature({"a", "b", "c", "d"}), at::randn({kInputs, 4}),
      labels ? at::randint(2, {kInputs}, at::kLong) : at::Tensor(),
      labels ? std::vector<std::string>{"no", "yes"} : std::vector<std::string>{});
  std::vector<std::vector<std::string>> rows;
  for (int64_t i = 0; i < kInputs; ++i)
    rows.push_back({i % 4 ? "day" : "night", i < 20 ? "rare" : i % 2 ? "usual" : "other"});
  data->set_groups({"hour", "kind"}, rows);
  return data;
}

session::Session open(std::shared_ptr<const dataset::Dataset> data) {
  session::Request request;
  request.quiet = true, request.out = "run";
  return session::Session(request, "m.onnx", zoo::make("mlp:4-8-2", {.seed = 2}), std::move(data));
}

TEST(Survey, GroupsAgreeWithCounting) {
  session::Session session = open(some_data());
  const session::Split& tests = session.test();
  const dataset::Batch batch = tests.data->read(stream::spread(kInputs, kInputs));
  const at::Tensor right = stream::run_few(tests.subject, {session.head().output}, batch)[0].argmax(1) == batch.labels;
  const Survey found = survey(session, {"hour", 4, 50});
  EXPECT_EQ(found.result.samples, kInputs);
  ASSERT_EQ(found.groups.size(), 2u);  // only the column that was asked for
  for (const Group& group : found.groups) {
    int64_t inputs = 0, good = 0;
    for (int64_t i = 0; i < kInputs; ++i)
      if (group.values[0] == (i % 4 ? "day" : "night")) ++inputs, good += right[i].item<bool>();
    EXPECT_EQ(group.inputs, inputs);
    EXPECT_NEAR(found.figure(group.failing.here).value, double(good) / double(inputs), 1e-12);
  }
  EXPECT_EQ(found.metric(), "accuracy");
  EXPECT_THROW(survey(session, {"minute"}), InputError);
  EXPECT_THROW(survey(session, {"a"}), InputError);  // numbers
}

TEST(Survey, SmallGroupsAreToldAndTablesWritten) {
  const session::FolderForTest folder;
  session::Session session = open(some_data());
  const Survey found = survey(session, {"kind", 4, 50});
  for (const Group& group : found.groups) EXPECT_EQ(group.too_small, group.values[0] == "rare") << group.name();
  write_tables(session.folder("slices"), found);
  EXPECT_NE(read_file("run/groups.csv", 1 << 20).find("kind=rare,20,1,"), std::string::npos);
  session::Session unlabelled = open(some_data(false));
  EXPECT_THROW(survey(unlabelled, {}), InputError);
}

TEST(Threshold, EveryRateAgreesWithCounting) {
  session::Session session = open(some_data());
  const session::Split& tests = session.test();
  const dataset::Batch batch = tests.data->read(stream::spread(kInputs, kInputs));
  const at::Tensor positive = batch.labels == 1,
                   score =
                       at::softmax(stream::run_few(tests.subject, {session.head().logits}, batch)[0].to(at::kDouble), 1)
                           .select(1, 1);
  const Survey found = survey(session, {"hour"});
  for (int64_t i = 0; i < kInputs; ++i)
    EXPECT_NEAR(positive_score(session.task(), found.rows[size_t(i)]), score[i].item<double>(), 1e-5) << i;
  const std::vector<ThresholdStep> steps = sweep_thresholds(found, session.task());
  ASSERT_EQ(steps.size(), 19u);
  for (const ThresholdStep& step : steps) {
    EXPECT_EQ(step.current, std::abs(step.threshold - 0.5) < 1e-9);
    ASSERT_EQ(step.groups.size(), 3u);  // all, day, night
    for (const ThresholdRates& rates : step.groups) {
      at::Tensor member = at::ones({kInputs}, at::kBool);
      if (rates.group != "all") {
        const at::Tensor night = at::arange(kInputs) % 4 == 0;
        member = rates.group == "hour=night" ? night : ~night;
      }
      const at::Tensor predicted = score > step.threshold;
      auto share = [&](const at::Tensor& hits, const at::Tensor& of) {
        return (hits & of).sum().item<double>() / of.sum().item<double>();
      };
      const double slack = step.current ? 1e-12 : 1.5 / 150;  // one score may fall to either side of a threshold
      EXPECT_NEAR(rates.accuracy.value, share(predicted == positive, member), slack);
      EXPECT_NEAR(rates.selected.value, share(predicted, member), slack);
      EXPECT_NEAR(rates.true_positive_rate.value, share(predicted, member & positive), slack);
      EXPECT_NEAR(rates.false_positive_rate.value, share(predicted, member & ~positive), slack);
    }
  }
  EXPECT_GE(steps.front().groups[0].selected.value, steps.back().groups[0].selected.value);
  observers::PredictionSettings three = session.task();
  three.classes.push_back("maybe");
  EXPECT_THROW(sweep_thresholds(found, three), InputError);
}

}  // namespace
}  // namespace netmend::slices
