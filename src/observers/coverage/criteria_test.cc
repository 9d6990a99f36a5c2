// Properties that every criterion has, over all rows of the table and all published ways. What each criterion counts is
// held against a slow twin in its own test.
#include "observers/coverage/criteria.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "observers/coverage/batches_for_test.h"
#include "observers/coverage/table.h"

namespace netmend::observers {
namespace {

constexpr Published kWays[] = {Published::kCorrected, Published::kDeepImportance, Published::kSadl,
                               Published::kNlc,       Published::kDnnTip,         Published::kDeepGini};
/// Sums of doubles in another order; counts do not depend on it at all.
constexpr double kRounding = 1e-9;

/// Rows that count in a pass.
std::vector<const CriterionRow*> counting_rows() {
  std::vector<const CriterionRow*> rows;
  for (const CriterionRow& row : criterion_rows())
    if (row.make) rows.push_back(&row);
  return rows;
}

TEST(CriterionRows, SayAllThatOthersNeed) {
  std::set<std::string_view> names;
  for (const CriterionRow& row : criterion_rows()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    if (!row.also.empty()) {
      EXPECT_TRUE(names.insert(row.also).second) << row.also;
    }
    for (std::string_view text : {row.name, row.full_name, row.asks, row.reference})
      EXPECT_FALSE(text.empty()) << row.name;
    EXPECT_NE(row.make == nullptr, row.score == nullptr) << row.name;
    EXPECT_GE(row.parameter.usual, row.parameter.least) << row.name;
    if (row.needs.importance) {
      EXPECT_TRUE(row.needs.training) << row.name;
    }
  }
}

/// As the glossary prints a row.
std::string in_glossary(const CriterionRow& row) {
  std::vector<std::string> needs;
  if (row.needs.training) needs.emplace_back("training data");
  if (row.needs.importance) needs.emplace_back("importance of units");
  if (row.needs.layers > 1) needs.push_back(fmt::format("{} layers", row.needs.layers));
  if (row.needs.classes > 1) needs.push_back(fmt::format("{} classes", row.needs.classes));
  const std::string parameter =
      row.parameter.name.empty() ? "–" : fmt::format("{} {}", row.parameter.name, row.parameter.usual);
  return fmt::format("| {} | {} | {} | {} | {} | {} |\n", row.name, row.full_name, row.asks, parameter,
                     needs.empty() ? "–" : join(needs, ", "), row.reference);
}

TEST(CriterionRows, AreTheTableInTheGlossary) {
  const std::string path = "docs/glossary.md";  // tests run in the root of the sources
  std::ifstream file(path);
  ASSERT_TRUE(file) << path;
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::string table;
  for (const CriterionRow& row : criterion_rows()) table += in_glossary(row);
  EXPECT_NE(text.find("|---|---|---|---|---|---|\n" + table + "\n"), std::string::npos) << path << " should have:\n"
                                                                                        << table;
}

class EveryCriterion : public testing::TestWithParam<std::tuple<size_t, Published>> {
 protected:
  void SetUp() override {
    row = counting_rows()[std::get<0>(GetParam())];
    CriterionMaterials materials = test_materials();
    materials.parameter = row->parameter.usual;
    materials.published = std::get<1>(GetParam());
    const MadeCriteria made = row->make(materials);
    ASSERT_EQ(made.skipped, "");
    ASSERT_EQ(made.list.size(), 1u);
    criterion = made.list[0];
  }
  Figure figure(const UnitBatch& batch) const { return criterion->figure(*tally_of(*criterion, batch)); }
  double tolerance() const { return criterion->merges_exactly() ? 0 : kRounding; }
  const CriterionRow* row = nullptr;
  std::shared_ptr<const Criterion> criterion;
};

TEST_P(EveryCriterion, HasItsRowsNameAndParameter) {
  const Figure found = figure(random_values(*test_space(), 20, 3));
  EXPECT_EQ(criterion->name(), row->name);
  EXPECT_EQ(found.name, row->name);
  if (!row->parameter.name.empty()) {
    ASSERT_FALSE(found.parameters.empty());
    EXPECT_EQ(found.parameters[0].name, row->parameter.name);
    EXPECT_EQ(found.parameters[0].number, row->parameter.usual);
  }
}

TEST_P(EveryCriterion, MemoryGrowsWithInputsAsTheRowSays) {
  const bool grows = criterion->bytes(2000) > criterion->bytes(1000);
  EXPECT_EQ(grows, row->memory == CriterionRow::Memory::kPerInput);
}

TEST_P(EveryCriterion, IsNothingWithoutInputsAndNeverNan) {
  Figure nothing = criterion->figure(*criterion->fresh());
  EXPECT_EQ(nothing.covered, 0);
  EXPECT_EQ(nothing.value, 0);
  UnitBatch broken = random_values(*test_space(), 5, 3);
  for (float& value : broken.values) value = NAN;
  for (float& value : broken.low) value = INFINITY;
  for (float& value : broken.high) value = -INFINITY;
  EXPECT_EQ(figure(broken).covered, 0);
  EXPECT_TRUE(std::isfinite(figure(broken).value));
  broken = random_values(*test_space(), 50, 3);
  broken.input(3)[2] = NAN, broken.input(4)[40] = INFINITY, broken.input(5)[80] = -INFINITY;
  EXPECT_TRUE(std::isfinite(figure(broken).value));
}

TEST_P(EveryCriterion, NeverFallsWhenInputsAreAdded) {
  UnitBatch all = random_values(*test_space(), 60, 21);
  double before = 0;
  for (int64_t count = 1; count <= 60; count += 7) {
    const double now = figure(rows_of(all, range_of(0, count))).covered;
    EXPECT_GE(now, row->counts ? before : 0);  // a magnitude may fall, but not below nothing
    before = now;
  }
}

TEST_P(EveryCriterion, OrderBatchesAndPartsDoNotMatter) {
  UnitBatch all = random_values(*test_space(), 150, 31);
  auto whole = tally_of(*criterion, all);
  std::vector<int64_t> order = range_of(0, 150);
  Random(5).shuffle(order);
  EXPECT_NEAR(figure(rows_of(all, order)).covered, criterion->figure(*whole).covered, tolerance());
  for (int64_t size : {1, 7, 64}) {
    auto batched = criterion->fresh(), merged = criterion->fresh();
    for (int64_t first = 0; first < 150; first += size) {
      UnitBatch part = rows_of(all, range_of(first, std::min<int64_t>(150, first + size)));
      batched->add(part);
      merged->merge(*tally_of(*criterion, part));
    }
    for (const Tally* tally : {batched.get(), merged.get()}) {
      EXPECT_NEAR(criterion->figure(*tally).value, criterion->figure(*whole).value, tolerance());
      if (criterion->merges_exactly()) {
        EXPECT_EQ(bytes_of(*tally), bytes_of(*whole)) << size;
      }
    }
  }
}

TEST_P(EveryCriterion, SurvivesSavingAndRefusesDamage) {
  auto tally = tally_of(*criterion, random_values(*test_space(), 40, 41));
  const std::string saved = bytes_of(*tally);
  auto again = criterion->fresh();
  std::istringstream in(saved);
  again->load(in);
  EXPECT_EQ(bytes_of(*again), saved);
  Random random(7);
  for (int trial = 0; trial < 200; ++trial) {
    std::string damaged = saved.substr(0, trial % 2 ? saved.size() : random.below(saved.size()));
    if (!damaged.empty())
      for (int flips = 0; flips < 3; ++flips) damaged[random.below(damaged.size())] = char(random.below(256));
    std::istringstream stream(damaged);
    try {
      auto other = criterion->fresh();
      other->load(stream);
      criterion->figure(*other);
    } catch (const InputError&) {
    }
  }
}

TEST_P(EveryCriterion, GoalsOfInputsAddUpToWhatIsCovered) {
  const UnitBatch batch = random_values(*test_space(), 60, 17);
  Reached reached;
  const std::optional<int64_t> count = criterion->reach_by_input(batch, reached);
  if (!count) {  // not told input by input
    EXPECT_TRUE(reached.goals.empty() && reached.ends.empty());
    return;
  }
  ASSERT_EQ(reached.ends.size(), 60u);
  EXPECT_EQ(reached.ends.back(), reached.goals.size());
  std::set<int64_t> different(reached.goals.begin(), reached.goals.end());
  EXPECT_EQ(double(different.size()), figure(batch).covered);
  EXPECT_GE(*different.begin(), 0);
  EXPECT_LT(*different.rbegin(), *count);
}

TEST_P(EveryCriterion, UncoveredUnitsAreThoseWithoutAGoal) {
  const auto tally = tally_of(*criterion, random_values(*test_space(), 3, 19));
  const Figure found = criterion->figure(*tally);
  const double listed = double(criterion->uncovered_units(*tally).size());
  EXPECT_LE(listed, std::max(0.0, found.total - found.covered));
  if (row->lists_uncovered) {
    EXPECT_EQ(listed, found.total - found.covered);
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, EveryCriterion,
                         testing::Combine(testing::Range<size_t>(0, counting_rows().size()), testing::ValuesIn(kWays)),
                         [](const auto& info) {
                           return std::string(counting_rows()[std::get<0>(info.param)]->name) + "_" +
                                  std::to_string(int(std::get<1>(info.param)));
                         });

TEST(Published, NamesAreSuggested) {
  EXPECT_EQ(parse_published("dnn-tip"), Published::kDnnTip);
  EXPECT_EQ(parse_published(""), Published::kCorrected);
  try {
    parse_published("salad");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.hint()).find("deepgini"), std::string::npos);
  }
}

}  // namespace
}  // namespace netmend::observers
