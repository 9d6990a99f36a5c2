#include "inputs/stress.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/file.h"
#include "dataset/memory_dataset.h"
#include "inputs/campaign.h"
#include "session/folder_for_test.h"
#include "session/split.h"
#include "zoo/zoo.h"

namespace netmend::inputs {
namespace {

constexpr int64_t kInputs = 200;

session::Session open(session::Request request = {}) {
  request.quiet = true, request.out = "run";
  at::manual_seed(3);
  auto data = std::make_shared<dataset::MemoryDataset>(dataset::picture_feature(8), at::rand({kInputs, 1, 8, 8}),
                                                       at::randint(4, {kInputs}, at::kLong),
                                                       std::vector<std::string>{"a", "b", "c", "d"}, "memory:pictures");
  return session::Session(request, "m.onnx", zoo::make("mlp:64-12-4", {.seed = 1}), data);
}

TEST(Stress, SpreadOrderIsAPermutationWhoseBeginningIsSpread) {
  for (size_t count : {1u, 2u, 7u, 64u, 1000u}) {
    std::vector<size_t> order = spread_order(count), sorted = order;
    std::sort(sorted.begin(), sorted.end());
    std::vector<size_t> all(count);
    std::iota(all.begin(), all.end(), size_t(0));
    EXPECT_EQ(sorted, all);
  }
  const std::vector<size_t> order = spread_order(1000);
  for (int quarter = 0; quarter < 4; ++quarter)
    EXPECT_NEAR(std::count_if(order.begin(), order.begin() + 40, [&](size_t i) { return int(i / 250) == quarter; }), 10,
                2);
}

TEST(Stress, RefusesWhatCannotBeMeantBeforeTheWork) {
  const session::FolderForTest folder;
  EXPECT_THROW(check_request({"fgms", "x.npz"}), InputError);
  EXPECT_THROW(check_request({"fgsm", "x.txt"}), InputError);
  StressRequest request{"fgsm", "x.npz"};
  request.eps = "-1";
  EXPECT_THROW(check_request(request), InputError);
  request.eps = "8/255";
  EXPECT_NO_THROW(check_request(request));
  EXPECT_EQ(class_words({}, -1), "NaN");
  EXPECT_EQ(class_words({}, 12), "12");
}

CampaignResult campaign(session::Session& session, const char* method, const CampaignOptions& how) {
  const session::Split& tests = session.test();
  static Subject changed = find_subject(tests.data->info());
  const stream::RawRange range(*tests.data, changed.feature, "0:1");
  const Network network(tests.subject, session.task(), changed, &range);
  Chosen chosen;
  for (int64_t i = 0; i < kInputs; ++i) chosen.samples.push_back(i), chosen.predictions.push_back(0);
  const Method& row = find_method(method);
  return run_campaign(network, tests.subject, chosen, row, settle(row, changed, {}), how);
}

TEST(Campaign, WorkDecidesBeforehandHowManyInputsAreTried) {
  session::Session session = open();
  const double cost = session.test().subject.cost;
  CampaignOptions how;
  how.quiet = true;
  EXPECT_EQ(campaign(session, "fgsm", how).attempts.size(), size_t(kInputs));
  EXPECT_FALSE(campaign(session, "fgsm", how).cut);
  how.budget = Budget::of_work(100 * 4 * cost);  // a forward pass, a forward and a backward one
  const CampaignResult some = campaign(session, "fgsm", how);
  EXPECT_EQ(some.attempts.size(), 100u);
  EXPECT_TRUE(some.cut);
  EXPECT_EQ(some.raw.size(0), 100);
  how.jobs = 1;
  EXPECT_TRUE(at::equal(campaign(session, "fgsm", how).raw, some.raw));
  EXPECT_LT(campaign(session, "pgd", how).attempts.size(), 100u);  // forty steps cost more
  how.budget = Budget::of_work(1);
  EXPECT_GT(campaign(session, "fgsm", how).attempts.size(), 0u);  // never nothing
}

TEST(Stress, TheSameBudgetGivesTheSameBytes) {
  const session::FolderForTest folder;
  std::string before;
  for (const char* product : {"one.npz", "two.npz"}) {
    session::Request request;
    request.jobs = before.empty() ? 1 : 2;
    session::Session session = open(request);
    session.budget() = Budget::of_work(120 * session.test().subject.cost);
    StressRequest asked{"gaussian", product};
    asked.from = "all";
    StressReport report;
    try {
      report = stress(session, asked);
    } catch (const InputError& error) {
      FAIL() << error.what();
    }
    EXPECT_TRUE(report.methods[0].cut);
    EXPECT_GT(report.all.inputs, 0);
    EXPECT_LT(report.all.inputs, kInputs);
    const std::string bytes = read_file(product, 1 << 24);
    if (!before.empty()) {
      EXPECT_EQ(bytes, before);
    }
    before = bytes;
  }
}

TEST(Stress, CountsAndFilesAgree) {
  const session::FolderForTest folder;
  session::Request request;
  request.all = true;
  session::Session session = open(request);
  StressRequest asked{"fgsm,gaussian,token-drop", "adv.npz"};
  asked.eps = "0.3", asked.criteria = "NC,NLC";
  const StressReport report = stress(session, asked);
  ASSERT_EQ(report.methods.size(), 3u);
  EXPECT_FALSE(report.methods[2].skipped.empty());  // no words here
  EXPECT_EQ(report.all.inputs, report.methods[0].summary.inputs + report.methods[1].summary.inputs);
  EXPECT_EQ(report.methods[0].summary.inputs, report.right);
  EXPECT_GT(report.methods[0].summary.successes, report.methods[1].summary.successes / 2);
  const std::string table = read_file("run/changes.csv", 1 << 24);
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), report.all.inputs + 1);
  ASSERT_EQ(report.coverage.size(), 2u);
  for (const CoverageGain& gain : report.coverage) {
    EXPECT_GE(gain.after.covered, gain.before.covered);
    EXPECT_EQ(gain.by_method.size(), 2u);
  }
  const auto again = dataset::open(report.made_data);
  EXPECT_EQ(again->size(), report.all.made);
  EXPECT_THROW(stress(session, {"token-drop", "x.npz"}), InputError);
}

}  // namespace
}  // namespace netmend::inputs
