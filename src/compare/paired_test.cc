#include "compare/paired.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/error.h"
#include "base/file.h"
#include "compare/regressions.h"
#include "dataset/memory_dataset.h"
#include "onnx/writer.h"
#include "session/folder_for_test.h"
#include "zoo/zoo.h"

namespace netmend::compare {
namespace {

using observers::SampleRow;
using observers::Verdict;

constexpr int64_t kPairs = 300;

std::shared_ptr<dataset::MemoryDataset> grouped_data(std::vector<std::string> classes = {"a: b", "c,d", "e\"f"}) {
  at::manual_seed(4);
  const auto count = int64_t(classes.size());
  auto data = std::make_shared<dataset::MemoryDataset>(dataset::table_feature({"p", "q", "r", "s"}),
                                                       at::randn({kPairs, 4}), at::randint(count, {kPairs}, at::kLong),
                                                       std::move(classes), "memory:pairs");
  std::vector<std::vector<std::string>> rows;
  for (int64_t i = 0; i < kPairs; ++i) rows.push_back({i % 3 == 0 ? "night" : "day", i % 7 == 0 ? "" : "x"});
  data->set_groups({"hour", "site"}, std::move(rows));
  return data;
}

session::Session pair_session(std::shared_ptr<const dataset::Dataset> data, uint64_t seed = 5,
                              const std::string& network = "mlp:4-6-3") {
  session::Request request;
  request.quiet = true, request.out = "run";
  return {request, "new.onnx", zoo::make(network, {.seed = seed}), std::move(data)};
}

std::vector<SampleRow> random_rows(session::Session& session, uint32_t seed) {
  std::mt19937 random(seed);
  const at::Tensor labels = session.test().data->read(stream::spread(kPairs, kPairs)).labels;
  std::vector<SampleRow> rows(kPairs);
  for (int64_t i = 0; i < kPairs; ++i) {
    SampleRow& row = rows[size_t(i)];
    row.sample = i, row.label = double(labels[i].item<int64_t>()), row.predicted = double(random() % 3);
    row.right = row.label == row.predicted ? SampleRow::kRight : SampleRow::kWrong;
  }
  return rows;
}

TEST(PairRows, CountsAreThoseOfALoop) {
  session::Session session = pair_session(grouped_data());
  const std::vector<SampleRow> older = random_rows(session, 1), newer = random_rows(session, 2);
  const Comparison done = pair_rows(session, Reference{"old.onnx"}, false, &older, newer);
  int64_t fixed = 0, broken = 0, night_fixed = 0, empty_site = 0;
  std::vector<int64_t> by_class(3);
  for (int64_t i = 0; i < kPairs; ++i) {
    const bool before = older[size_t(i)].right == SampleRow::kRight,
               after = newer[size_t(i)].right == SampleRow::kRight;
    fixed += !before && after, broken += before && !after;
    by_class[size_t(newer[size_t(i)].label)] += int64_t(after) - int64_t(before);
    night_fixed += i % 3 == 0 && !before && after, empty_site += i % 7 == 0;
  }
  EXPECT_EQ(done.flips.whole().samples, kPairs);
  EXPECT_EQ(done.flips.whole().fixed, fixed);
  EXPECT_EQ(done.flips.whole().broken, broken);
  for (size_t c = 0; c < 3; ++c) EXPECT_EQ(done.flips.per_class()[c].net(), by_class[c]);
  EXPECT_EQ(int64_t(done.list.size()), fixed + broken);
  for (const Flip& flip : done.list) {
    EXPECT_EQ(flip.before, older[size_t(flip.sample)].predicted);
    EXPECT_EQ(flip.change == observers::Change::kFixed, flip.after == flip.label);
  }
  int groups = 0;
  for (const auto& group : done.flips.groups()) {
    const bool night = group.column == "hour" && group.value == "night",
               nowhere = group.column == "site" && group.value.empty();
    groups += night || nowhere;
    EXPECT_TRUE(!night || group.count.fixed == night_fixed);
    EXPECT_TRUE(!nowhere || group.count.samples == empty_site);
  }
  EXPECT_EQ(groups, 2);
  // The other way round, what was fixed is broken.
  const Comparison back = pair_rows(session, Reference{"old.onnx"}, false, &newer, older);
  EXPECT_EQ(back.flips.whole().fixed, broken);
  EXPECT_EQ(back.flips.whole().broken, fixed);
  EXPECT_EQ(back.flips.whole().change().low, -done.flips.whole().change().high);
}

TEST(PairRows, TheSameChangesNothingAndIsNotWorse) {
  session::Session session = pair_session(grouped_data());
  const std::vector<SampleRow> rows = random_rows(session, 1);
  const Comparison done = pair_rows(session, Reference{"m"}, false, &rows, rows);
  EXPECT_TRUE(done.list.empty());
  const stats::Estimate change = done.flips.whole().change();
  EXPECT_EQ(change.value, 0);
  EXPECT_EQ(change.low, -change.high);
  EXPECT_EQ(observers::judge_change(change, 0.02), Verdict::kNotWorse);
  EXPECT_EQ(observers::judge_change(change, 0), Verdict::kUnclear);  // 300 inputs cannot show that nothing is lost
}

TEST(PairRows, ABaselineSaysTheSameAsTheRowsItCameFrom) {
  session::Session session = pair_session(grouped_data());
  const std::vector<SampleRow> older = random_rows(session, 1), newer = random_rows(session, 2);
  const Comparison direct = pair_rows(session, Reference{"old.onnx"}, false, &older, newer);
  Reference kept{"b.json"};
  kept.baseline = pair_rows(session, Reference{"x"}, false, &older, older).newer;
  kept.baseline->source = "b.json";
  const Comparison again = pair_rows(session, kept, false, nullptr, newer);
  EXPECT_EQ(again.flips.whole().fixed, direct.flips.whole().fixed);
  EXPECT_EQ(again.flips.whole().broken, direct.flips.whole().broken);
  ASSERT_EQ(again.list.size(), direct.list.size());
  for (const Flip& flip : again.list) EXPECT_TRUE(std::isnan(flip.before));
  EXPECT_EQ(again.newer.fingerprint, direct.newer.fingerprint);
  EXPECT_TRUE(again.newer.ids.empty());  // numbers are no names
  kept.baseline->fingerprint = "another";
  EXPECT_THROW(pair_rows(session, kept, false, nullptr, newer), InputError);
  kept.baseline->fingerprint = "";  // an old one that did not say
  EXPECT_NO_THROW(pair_rows(session, kept, false, nullptr, newer));
}

TEST(PairRows, InputsInCommonAreFoundByNameAndOthersCounted) {
  session::Session session = pair_session(grouped_data());
  const std::vector<SampleRow> newer = random_rows(session, 2);
  Reference kept{"b.json"};
  kept.baseline.emplace();
  kept.baseline->fingerprint = "another";  // by name other data may be compared with
  for (const char* name : {"7", "299", "nowhere"}) {
    kept.baseline->ids.push_back(id_hash(name));
    kept.baseline->predictions.push_back({SampleRow::kRight, 0});
  }
  const Comparison done = pair_rows(session, kept, true, nullptr, newer);
  EXPECT_EQ(done.flips.whole().samples, 2);
  EXPECT_EQ(done.missing, kPairs - 2);
  EXPECT_EQ(done.flips.whole().broken, (newer[7].right == SampleRow::kWrong) + (newer[299].right == SampleRow::kWrong));
  kept.baseline->ids = {id_hash("u"), id_hash("v"), id_hash("w")};
  EXPECT_THROW(pair_rows(session, kept, true, nullptr, newer), InputError);
}

TEST(OpenReference, AModelOfAnotherWidthIsRefused) {
  const session::FolderForTest folder;
  session::Session session = pair_session(grouped_data());
  onnx::write_model(zoo::make("mlp:4-6-4", {.seed = 1}), "wide.onnx");
  onnx::write_model(zoo::make("mlp:5-3", {.seed = 1}), "other-input.onnx");
  folder.write("text.onnx", "no model");
  for (const char* path : {"wide.onnx", "other-input.onnx", "text.onnx", "gone.onnx", "gone.json", "."})
    EXPECT_THROW(open_reference(session, path), InputError) << path;
}

TEST(RegressionsOfModels, FlipsAreListedWithWordsThatATableCanHold) {
  const session::FolderForTest folder;
  onnx::write_model(zoo::make("mlp:4-6-3", {.seed = 8}), "old.onnx");
  session::Session session = pair_session(grouped_data());
  const Regressions found = find_regressions(session, {"old.onnx", false, 0.01, "kept.json"});
  ASSERT_GT(found.whole.fixed + found.whole.broken, 0);
  EXPECT_EQ(found.whole.right_after - found.whole.right_before, found.whole.net());
  int64_t samples = 0, fixed = 0;
  for (const NamedFlips& one : found.classes) samples += one.count.samples, fixed += one.count.fixed;
  EXPECT_EQ(samples, kPairs);
  EXPECT_EQ(fixed, found.whole.fixed);
  EXPECT_EQ(found.groups.size(), 4u);
  EXPECT_EQ(found.verdict, observers::judge_change(found.whole.change(), 0.01));
  ASSERT_TRUE(found.figure_before.has_value());
  EXPECT_DOUBLE_EQ(found.figure_before->value, double(found.whole.right_before) / kPairs);
  const std::string flips = read_file("run/flips.csv");
  EXPECT_NE(flips.find("\"c,d\""), std::string::npos);
  EXPECT_NE(flips.find("\"e\"\"f\""), std::string::npos);
  // The model against what it left behind itself: nothing flips.
  session::Session again = pair_session(grouped_data());
  const Regressions none = find_regressions(again, {"kept.json"});
  EXPECT_EQ(none.whole.fixed + none.whole.broken, 0);
  EXPECT_EQ(none.fingerprint, found.fingerprint);
  EXPECT_EQ(none.figure_before->value, found.after.at(0).estimate.value);
}

TEST(RegressionsOfModels, NumbersComeCloserOrMoveAway) {
  const session::FolderForTest folder;
  at::manual_seed(6);
  const at::Tensor x = at::randn({kPairs, 4}), y = at::randn({kPairs});
  const auto data = std::make_shared<dataset::MemoryDataset>(dataset::table_feature({"p", "q", "r", "s"}), x, y);
  const model::Graph before = zoo::make("mlp:4-3-1", {.seed = 1});
  onnx::write_model(before, "old.onnx");
  session::Session session = pair_session(data, 2, "mlp:4-3-1"), older = pair_session(data, 1, "mlp:4-3-1");
  auto errors = [&](session::Session& one) {
    const session::Split& tests = one.test();
    const dataset::Batch batch = tests.data->read(stream::spread(kPairs, kPairs));
    return (stream::run_few(tests.subject, {one.head().output}, batch)[0].view({-1}) - y).abs().to(at::kDouble);
  };
  const at::Tensor then = errors(older), now = errors(session);
  const Regressions found = find_regressions(session, {"old.onnx", false, -1, "kept.json"});
  EXPECT_FALSE(found.has_right_and_wrong);
  EXPECT_TRUE(found.classes.empty());
  EXPECT_EQ(found.whole.fixed, (now < then).sum().item<int64_t>());
  EXPECT_EQ(found.whole.broken, (now > then).sum().item<int64_t>());
  EXPECT_NEAR(found.error_change.value, (now - then).mean().item<double>(), 1e-5);
  session::Session again = pair_session(data, 2, "mlp:4-3-1");
  EXPECT_NEAR(find_regressions(again, {"kept.json"}).error_change.value, 0, 1e-6);
}

TEST(RegressionsOfModels, WithoutLabelsThereIsNothingToCompare) {
  const session::FolderForTest folder;
  session::Session session = pair_session(std::make_shared<dataset::MemoryDataset>(
      dataset::table_feature({"p", "q", "r", "s"}), at::randn({20, 4}), at::Tensor()));
  EXPECT_THROW(find_regressions(session, {"old.onnx"}), InputError);
}

TEST(Margin, IsAskedForOrThatOfTheGateOrHalfAPoint) {
  const session::Config none, gate = session::parse_config("gate.overall_drop = \"<= 0.25\"\n", "x");
  EXPECT_DOUBLE_EQ(margin_of(-1, none), 0.005);
  EXPECT_DOUBLE_EQ(margin_of(-1, gate), 0.0025);
  EXPECT_DOUBLE_EQ(margin_of(0, gate), 0);
  EXPECT_DOUBLE_EQ(margin_of(-1, session::parse_config("gate.overall_drop = \"< 0.5\"\n", "x")), 0.005);
  for (const char* limit : {">= 1", "<= -1", "nothing"})
    EXPECT_THROW(margin_of(-1, session::parse_config(fmt::format("gate.overall_drop = \"{}\"\n", limit), "x")),
                 InputError)
        << limit;
}

}  // namespace
}  // namespace netmend::compare
