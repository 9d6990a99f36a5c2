// The table of checks against the table of kinds: every kind has a row, every row says what it needs, and names that
// do not exist are refused.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/error.h"
#include "checks/checks_for_test.h"
#include "dataset/memory_dataset.h"
#include "findings/kinds.h"

namespace netmend::checks {
namespace {

TEST(CheckTable, EveryKindBelongsToARowAndEveryRowRaisesKindsThatExist) {
  std::set<std::string_view> raised_by_rows;
  for (const Check& row : checks::checks()) {
    EXPECT_FALSE(row.kinds.empty()) << row.name;
    for (std::string_view kind : row.kinds) {
      EXPECT_NO_THROW(findings::find_kind(std::string(kind))) << row.name << " " << kind;
      raised_by_rows.insert(kind);
    }
  }
  for (const findings::Kind& kind : findings::kinds())
    EXPECT_TRUE(kind.needs & findings::kRecord || raised_by_rows.count(kind.name))
        << kind.name << " is told by `why`, and no check raises it";
}

TEST(CheckTable, NamesAreUniqueAndCanBeTyped) {
  std::set<std::string_view> names;
  for (const Check& row : checks::checks()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_FALSE(row.about.empty()) << row.name;
    EXPECT_NE(row.run, nullptr) << row.name;
    EXPECT_EQ(row.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz-"), std::string_view::npos) << row.name;
    EXPECT_EQ(&find_check(std::string(row.name)), &row);
  }
}

/// A row that looks at something in a split must say that it needs data, at units that it needs a hidden layer.
TEST(CheckTable, WhatARowWatchesIsAmongWhatItNeeds) {
  for (const Check& row : checks::checks()) {
    if (row.watches) {
      EXPECT_TRUE(row.needs & findings::kData) << row.name;
    }
    if (row.watches & kWatchUnits) {
      EXPECT_TRUE(row.needs & findings::kHidden) << row.name;
    }
    if (row.watches & kWatchCriteria) {
      EXPECT_TRUE(row.watches & kWatchUnits) << row.name;
    }
    if (row.watches & (kWatchPredictions | kWatchUnits)) {
      EXPECT_TRUE(row.needs & findings::kPredictions) << row.name << " would run after a blocker";
    }
  }
}

/// `unless` names a kind: it is raised by a row that runs before.
TEST(CheckTable, ARowThatAnotherFindingMakesMeaninglessComesAfterIt) {
  std::set<std::string_view> before;
  for (const Check& row : checks::checks()) {
    if (!row.unless.empty()) {
      EXPECT_TRUE(before.count(row.unless)) << row.name << " asks for " << row.unless;
    }
    before.insert(row.kinds.begin(), row.kinds.end());
  }
}

TEST(CheckTable, AnUnknownNameGetsTheNearestOneAndNoControlCharacters) {
  auto message = [](const std::string& name) {
    try {
      find_check(name);
    } catch (const InputError& error) {
      return std::string(error.what()) + " | " + error.hint();
    }
    return std::string("it was found");
  };
  EXPECT_NE(message("calibratoin").find("calibration"), std::string::npos) << message("calibratoin");
  EXPECT_NE(message("zzzzzzzzzzzz").find("--list"), std::string::npos) << message("zzzzzzzzzzzz");
  EXPECT_EQ(message("\x1b[2Jx").find('\x1b'), std::string::npos);
  EXPECT_NE(message("").find("there is no check"), std::string::npos);
  EXPECT_NE(message("Calibration").find("there is no check"), std::string::npos) << "names are lower case";
}

/// Two columns, two classes; the second class where the second column is larger. The network reads just that.
struct Plain {
  std::shared_ptr<dataset::MemoryDataset> data;
  model::Graph graph = passing_columns();

  explicit Plain(int64_t inputs = 120, bool labels = true, bool numbers = false) {
    at::Tensor x = at::empty({inputs, 2}, at::kFloat), y = at::empty({inputs}, at::kLong);
    for (int64_t i = 0; i < inputs; ++i) {
      const double angle = double(i) * 0.7;
      x[i][0] = std::sin(angle), x[i][1] = std::cos(angle * 1.3);
      y[i] = int64_t(std::sin(angle) < std::cos(angle * 1.3));
    }
    if (numbers) y = x.select(1, 0).clone();
    data = std::make_shared<dataset::MemoryDataset>(
        dataset::table_feature({"a", "b"}), x, labels ? y : at::Tensor(),
        numbers || !labels ? std::vector<std::string>{} : std::vector<std::string>{"no", "yes"});
    if (numbers) graph = zoo::make("mlp:2-4-1", {.seed = 5});
  }

  Checkup check(CheckupRequest how = {}, std::shared_ptr<const dataset::Dataset> train = nullptr) {
    session::Request request = typed_request();
    request.budget = "quick", request.jobs = 1;
    session = std::make_unique<session::Session>(request, "model.onnx", graph, data, std::move(train));
    how.anyway = true;
    return check_up(*session, how);
  }
  std::unique_ptr<session::Session> session;
};

std::map<std::string, std::string> skipped_lines(const Checkup& done) {
  std::map<std::string, std::string> lines;
  for (const Skipped& one : done.results.skipped) lines[one.what] = one.enable;
  return lines;
}
std::string about(const std::string& name) { return std::string(find_check(name).about); }

TEST(Checkups, ListWhatWasNotLookedAtAndWhatWouldEnableIt) {
  Plain plain;
  const auto lines = skipped_lines(plain.check());
  for (const char* name : {"over-fitting", "label-shift", "split-leak", "drift"}) {
    ASSERT_TRUE(lines.count(about(name))) << name;
    EXPECT_NE(lines.at(about(name)).find("--train"), std::string::npos) << lines.at(about(name));
  }
  ASSERT_TRUE(lines.count(about("groups")));
  EXPECT_NE(lines.at(about("groups")).find("groups="), std::string::npos);
  // What nobody can provide does not apply, and is no line: numbers of a classifier, a reference that was not asked
  // for.
  for (const char* name : {"bias", "clipping", "reference"}) EXPECT_FALSE(lines.count(about(name))) << name;
}

TEST(Checkups, WithTrainingDataNothingIsSkippedForTheLackOfIt) {
  Plain plain, other(200);
  for (const auto& [what, enable] : skipped_lines(plain.check({}, other.data)))
    EXPECT_EQ(enable.find("--train"), std::string::npos) << what;
}

TEST(Checkups, WithoutLabelsEveryJudgingRowSaysSo) {
  Plain plain(120, false);
  const Checkup done = plain.check();
  const auto lines = skipped_lines(done);
  for (const char* name : {"imbalance", "conflicting-labels", "slices"})
    EXPECT_EQ(lines.count(about(name)) ? lines.at(about(name)) : "", "data with labels") << name;
  EXPECT_NE(done.verdict.find("there are no labels to judge predictions by"), std::string::npos) << done.verdict;
  EXPECT_TRUE(std::isnan(done.seen->test->rows[0].label) || done.seen->test->rows[0].label < 0);
}

TEST(Checkups, OfNumbersAreNotAskedAboutClasses) {
  Plain plain(120, true, true);
  const Checkup done = plain.check();
  const auto lines = skipped_lines(done);
  for (const char* name : {"confusions", "weak-classes", "calibration", "label-errors"}) {
    EXPECT_FALSE(lines.count(about(name))) << name;
    for (const auto& [what, seconds] : done.times) EXPECT_NE(what, about(name));
  }
}

std::set<std::string> rows_run(const Checkup& done) {
  std::set<std::string> names;
  for (const auto& [what, seconds] : done.times)
    for (const Check& row : checks::checks())
      if (row.about == what) names.insert(std::string(row.name));
  return names;
}

TEST(Checkups, OnlyRunsTheNamedRowsBesideThePreflight) {
  Plain plain;
  CheckupRequest how;
  how.only = {"duplicates", "imbalance"};
  EXPECT_EQ(rows_run(plain.check(how)), (std::set<std::string>{"preflight", "duplicates", "imbalance"}));
}

TEST(Checkups, SkipWinsOverOnlyAndTakesRowsOut) {
  Plain plain;
  CheckupRequest how;
  how.only = {"duplicates", "imbalance"}, how.skip = {"imbalance"};
  EXPECT_EQ(rows_run(plain.check(how)), (std::set<std::string>{"preflight", "duplicates"}));
  how.only.clear(), how.skip = {"trial-repair", "robustness", "slices"};
  const auto rows = rows_run(plain.check(how));
  for (const std::string& name : how.skip) EXPECT_FALSE(rows.count(name)) << name;
  EXPECT_TRUE(rows.count("duplicates") && rows.count("calibration") && rows.count("weak-classes"));
}

TEST(Checkups, RefuseNamesThatDoNotExistBeforeTheyReadAnything) {
  Plain plain;
  for (bool only : {true, false}) {
    CheckupRequest how;
    (only ? how.only : how.skip) = {"duplicates", "no-such-check"};
    bool asked = false;
    how.on_preflight = [&](const preflight::Preflight&) { asked = true; };
    EXPECT_THROW(plain.check(how), InputError);
    EXPECT_FALSE(asked);
  }
}

TEST(Checkups, OfAModelAloneRunWhatNeedsNoDataAndSayTheRestInOneLine) {
  session::Session alone(typed_request(), "model.onnx", zoo::make("mlp:4-8-3", {.seed = 2}), nullptr);
  const Checkup done = check_up(alone, {});
  ASSERT_EQ(done.results.skipped.size(), 1u);
  EXPECT_EQ(done.results.skipped[0].what, "everything that needs data");
  EXPECT_NE(done.results.skipped[0].enable.find("--data"), std::string::npos);
  for (const std::string& name : rows_run(done)) EXPECT_EQ(find_check(name).needs, 0u) << name;
  EXPECT_TRUE(rows_run(done).count("finite-weights"));
  EXPECT_FALSE(done.preflight.has_value());
}

}  // namespace
}  // namespace netmend::checks
