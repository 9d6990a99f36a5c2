// The check-up as a whole: the same for any number of workers, on data that has next to nothing in it, and what it
// comes to in one sentence.
#include "checks/checkup.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "base/random.h"
#include "checks/checks_for_test.h"
#include "dataset/memory_dataset.h"

namespace netmend::checks {
namespace {

using findings::Finding;
using findings::Level;

struct Made {
  at::Tensor x, y;
  std::vector<std::string> classes{"below", "above"};
  int jobs = 1;
  model::Graph graph = passing_columns();

  /// Points of the plane, one in six with the wrong label; every third is a copy of an earlier one.
  explicit Made(int64_t inputs, uint64_t seed = 1) {
    Random random(seed);
    x = at::empty({inputs, 2}, at::kFloat), y = at::empty({inputs}, at::kLong);
    for (int64_t i = 0; i < inputs; ++i) {
      if (i % 3 == 2) {
        x[i] = x[i - 2], y[i] = y[i - 2];
        continue;
      }
      x[i][0] = random.normal(), x[i][1] = random.normal();
      y[i] = int64_t(x[i][1].item<float>() > x[i][0].item<float>()) ^ int64_t(random.below(6) == 0);
    }
  }
  std::unique_ptr<session::Session> session;
  Checkup check(CheckupRequest how = {}) {
    session::Request request = typed_request();
    request.jobs = jobs, request.budget = "quick";
    auto data = std::make_shared<dataset::MemoryDataset>(dataset::table_feature({"a", "b"}), x, y, classes);
    session = std::make_unique<session::Session>(request, "model.onnx", graph, data);
    how.anyway = true;
    return check_up(*session, how);
  }
};

std::string everything(const Checkup& done) {
  std::string all = done.verdict + "\n";
  for (const Finding& one : done.results.findings) all += findings::to_json(one).dump() + "\n";
  for (const Passed& one : done.results.passed) all += one.what + ": " + one.value + "\n";
  for (const Skipped& one : done.results.skipped) all += one.what + ": " + one.enable + "\n";
  for (int64_t cluster : done.results.clusters) all += std::to_string(cluster) + " ";
  return all;
}

TEST(WholeCheckup, SaysTheSameForOneTwoAndSevenWorkers) {
  std::string first;
  for (int jobs : {1, 2, 7}) {
    Made made(600);
    made.jobs = jobs;
    const Checkup done = made.check();
    EXPECT_FALSE(done.results.findings.empty());
    if (first.empty()) first = everything(done);
    EXPECT_EQ(everything(done), first) << jobs << " workers";
  }
}

/// What is confirmed on a hold-out part must not have been searched on under another number, also when the trial is the
/// only check that runs.
TEST(WholeCheckup, TheHoldOutPartOfATrialRepairKeepsCopiesTogether) {
  for (const bool alone : {false, true}) {
    Made made(900);
    CheckupRequest how;
    if (alone) how.only = {"trial-repair"};
    const Checkup done = made.check(how);
    ASSERT_TRUE(done.results.repair.repair.has_value());
    std::set<int64_t> held;
    for (const observers::SampleRow& row : done.results.repair.repair->before.rows) held.insert(row.sample);
    EXPECT_EQ(int64_t(held.size()), done.results.repair.holdout);
    EXPECT_GT(held.size(), 100u);
    EXPECT_LT(held.size(), 600u);
    int64_t apart = 0;
    for (int64_t i = 2; i < 900; i += 3) apart += held.count(i) != held.count(i - 2);
    EXPECT_LE(apart, 3) << "shares are rounded, so that a few inputs are in no part at all" << (alone ? "; alone" : "");
  }
}

TEST(WholeCheckup, ATrialRepairNeedsTwentyFailures) {
  for (const auto& [wrong, tried] : std::vector<std::pair<int64_t, bool>>{{19, false}, {20, true}}) {
    Made made(300);
    for (int64_t i = 0; i < 300; ++i)
      made.y[i] = int64_t(made.x[i][1].item<float>() > made.x[i][0].item<float>()) ^ int64_t(i < wrong);
    CheckupRequest how;
    how.only = {"trial-repair"};
    const Checkup done = made.check(how);
    EXPECT_EQ(done.results.repair.blame.has_value(), tried);
    const bool said = std::any_of(done.results.skipped.begin(), done.results.skipped.end(),
                                  [](const Skipped& one) { return one.what == "units to blame"; });
    EXPECT_EQ(said, !tried) << everything(done);
  }
}

TEST(WholeCheckup, OfNoInputsIsRefusedInWords) {
  Made made(0);
  EXPECT_THROW(made.check(), InputError);
}

TEST(WholeCheckup, OfAFewInputsSaysNothingSeriousAboutTheModel) {
  for (int64_t inputs : {1, 2, 5}) {
    Made made(inputs);
    for (int64_t i = 0; i < inputs; ++i) made.y[i] = int64_t(made.x[i][1].item<float>() > made.x[i][0].item<float>());
    const Checkup done = made.check();
    for (const Finding& one : done.results.findings) EXPECT_LT(one.level, Level::kSerious) << everything(done);
  }
}

TEST(WholeCheckup, OfInputsThatAreAllNanNamesThemAndStaysFinite) {
  Made made(200);
  made.x.fill_(NAN);
  const Checkup done = made.check();
  EXPECT_NE(find(done.results.findings, "missing-values"), nullptr) << everything(done);
  for (const Finding& one : done.results.findings)
    EXPECT_TRUE(std::isfinite(one.value) && std::isfinite(one.effect.gain)) << one.id();
}

TEST(WholeCheckup, OfInputsThatAreAllEqualNamesThem) {
  Made made(200);
  made.x.fill_(0.5);
  const Checkup done = made.check();
  EXPECT_NE(find(done.results.findings, "constant-features:test"), nullptr) << everything(done);
  EXPECT_NE(find(done.results.findings, "duplicates:test"), nullptr);
}

Finding at_level(Level level, const std::string& kind, const std::string& title) {
  Finding one;
  one.kind = kind, one.level = level, one.title = title;
  return one;
}

TEST(Verdicts, SayWhatMattersMostInOneSentence) {
  const Finding note = at_level(Level::kNote, "few-tests", "Few."), minor = at_level(Level::kMinor, "drift", "Drift."),
                serious = at_level(Level::kSerious, "weak-class", "Class cat is weak."),
                unit = at_level(Level::kSerious, "suspicious-unit", "Unit fc1/3 is to blame."),
                blocker = at_level(Level::kBlocker, "wrong-split", "This is training data.");
  EXPECT_EQ(verdict({}, true), "Nothing serious was found.");
  EXPECT_EQ(verdict({}, false), "Nothing serious was found, but there are no labels to judge predictions by.");
  EXPECT_EQ(verdict({note}, true), "Nothing serious was found.");
  EXPECT_EQ(verdict({minor, note}, true), "Nothing serious was found; one thing to look at when there is time.");
  EXPECT_EQ(verdict({minor, minor}, true), "Nothing serious was found; 2 things to look at when there is time.");
  EXPECT_EQ(verdict({serious, minor}, true), "One thing matters: class cat is weak.");
  EXPECT_EQ(verdict({serious, unit}, true),
            "2 things matter; above all, class cat is weak; a small repair looks worthwhile.");
  EXPECT_EQ(verdict({blocker, serious}, true), "This is training data.");
  EXPECT_EQ(verdict({at_level(Level::kSerious, "weak-class", "CNN is weak.")}, true), "One thing matters: CNN is weak.")
      << "a name of capitals keeps them";
}

TEST(JoinedFindings, AreRankedWithThoseThatWereThere) {
  Checkup checkup;
  checkup.results.findings = {at_level(Level::kMinor, "drift", "Drift.")};
  join_findings(checkup,
                {at_level(Level::kNote, "user:a/x", "X."), at_level(Level::kSerious, "user:a/y", "Y is off.")});
  ASSERT_EQ(checkup.results.findings.size(), 3u);
  EXPECT_EQ(checkup.results.findings[0].kind, "user:a/y");
  EXPECT_EQ(checkup.results.findings[2].kind, "user:a/x");
  join_findings(checkup, {});
  EXPECT_EQ(checkup.results.findings.size(), 3u) << "joining nothing changes nothing";
  checkup.interrupted = true;
  join_findings(checkup, {});
  EXPECT_EQ(checkup.verdict.rfind("Stopped before all checks were done", 0), 0u);
}

}  // namespace
}  // namespace netmend::checks
