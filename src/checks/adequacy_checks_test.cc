// What tests never reach, on either side of the limit.
#include <gtest/gtest.h>

#include "checks/checks_for_test.h"
#include "dataset/memory_dataset.h"

namespace netmend::checks {
namespace {

std::shared_ptr<const dataset::Dataset> points(int64_t count) {
  at::Tensor x = at::empty({count, 2}, at::kFloat);
  for (int64_t i = 0; i < count; ++i) x[i][0] = std::sin(double(i)), x[i][1] = std::cos(1.7 * double(i));
  return std::make_shared<dataset::MemoryDataset>(
      dataset::table_feature({"a", "b"}), x, (x.select(1, 1) > x.select(1, 0)).to(at::kLong),
      std::vector<std::string>{"below", "above"}, "memory:" + std::to_string(count));
}

/// Four hidden units, of which some are driven higher by so many of 900 training inputs than by any test.
Results with_low_units(const std::vector<int64_t>& higher, bool judged = true) {
  session::Session session(typed_request(), "model.onnx", passing_columns(), points(100), points(900));
  Observed seen = observe(session, nullptr, kWatchPredictions | kWatchUnits);
  seen.adequacy.emplace();
  seen.adequacy->highs_judged = judged;
  for (size_t u = 0; u < higher.size(); ++u) seen.adequacy->low_units.push_back({int64_t(u), 1, 2, higher[u], {5, 6}});
  Results found;
  run_rows(seen, found, {"untested"});
  return found;
}

TEST(UntestedUnits, AreNamedFromTwoInAHundredTrainingInputsOnTheMostOftenReachedFirst) {
  EXPECT_FALSE(raises(with_low_units({17}), "untested-region"));
  const Results found = with_low_units({18, 40, 3});
  std::vector<int64_t> told;
  for (const findings::Finding& one : found.findings)
    if (one.kind == "untested-region") {
      told.push_back(int64_t(std::lround(one.value * 900)));
      EXPECT_EQ(one.inputs[0].split, "train");
    }
  EXPECT_EQ(told, (std::vector<int64_t>{40, 18}));
  EXPECT_TRUE(raises(found, "untested-units")) << "three of four units";
}

TEST(UntestedUnits, NoneIsAPassAndTooFewTestsAreSaid) {
  EXPECT_EQ(with_low_units({}).passed.at(0).value, "all 4 units");
  const Results few = with_low_units({500}, false);
  EXPECT_TRUE(few.findings.empty());
  EXPECT_EQ(few.skipped.at(0).enable, "more tests");
}

}  // namespace
}  // namespace netmend::checks
