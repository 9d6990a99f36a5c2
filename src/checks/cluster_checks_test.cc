// Failures that lie together in feature space: planted ones are named, and all agree with a search of every pair.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/random.h"
#include "checks/checks_for_test.h"
#include "dataset/memory_dataset.h"

namespace netmend::checks {
namespace {

/// Points of the plane; the network calls those `right` that lie below the diagonal.
struct Points {
  std::vector<std::array<float, 2>> at;
  std::vector<int64_t> labels;

  void add(double x, double y, bool wrong) {
    at.push_back({float(x), float(y)});
    labels.push_back(int64_t(y > x) ^ int64_t(wrong));
  }
  /// A cloud around a place, of which so many, spread evenly, carry the other label.
  void cloud(double x, double y, int64_t count, int64_t wrong, uint64_t seed) {
    Random random(seed);
    for (int64_t i = 0; i < count; ++i)
      add(x + 0.2 * random.normal(), y + 0.2 * random.normal(), i * wrong / count != (i + 1) * wrong / count);
  }

  struct Looked {
    std::unique_ptr<session::Session> session;
    std::unique_ptr<Observed> seen;
    Results found;
  };
  Looked look() const {
    at::Tensor x = at::empty({int64_t(at.size()), 2}, at::kFloat);
    for (size_t i = 0; i < at.size(); ++i) x[int64_t(i)][0] = at[i][0], x[int64_t(i)][1] = at[i][1];
    auto data =
        std::make_shared<dataset::MemoryDataset>(dataset::table_feature({"a", "b"}), x, at::tensor(labels, at::kLong),
                                                 std::vector<std::string>{"below", "above"});
    Looked out;
    out.session = std::make_unique<session::Session>(typed_request(), "model.onnx", passing_columns(), data);
    out.seen = std::make_unique<Observed>(observe(*out.session, nullptr, kWatchPredictions | kWatchUnits));
    run_rows(*out.seen, out.found, {"failure-clusters"});
    return out;
  }
};

TEST(FailureClusters, ABunchOfFailuresIsNamedByWhatItIsTakenFor) {
  Points points;
  points.cloud(5, 1, 200, 0, 1), points.cloud(1, 5, 200, 0, 2);
  points.cloud(9, 8, 30, 30, 3);  // below the diagonal, labelled above
  const auto looked = points.look();
  const findings::Finding finding = raised(looked.found, "failure-cluster:above-as-below");
  EXPECT_NE(finding.brief.find("30 failures"), std::string::npos) << finding.brief;
  for (const findings::Shown& shown : finding.inputs) EXPECT_GE(shown.sample, 400);
  for (size_t i = 0; i < looked.found.clusters.size(); ++i) EXPECT_EQ(looked.found.clusters[i], i >= 400 ? 0 : -1) << i;
}

TEST(FailureClusters, APairIsMostOfAClusterOnlyAboveHalfOfIt) {
  for (const auto& [above, words] : std::vector<std::pair<int64_t, const char*>>{
           {16, "30 failures, mostly below predicted as above"}, {15, "30 failures, for example "}}) {
    Points points;
    points.cloud(5, 1, 200, 0, 1), points.cloud(1, 5, 200, 0, 2);
    // On both sides of the diagonal, near each other, all of them wrong.
    for (int64_t i = 0; i < 30; ++i)
      points.add(20 + 0.01 * double(i), 20 + 0.01 * double(i) + (i < above ? 0.005 : -0.005), true);
    const auto looked = points.look();
    ASSERT_FALSE(looked.found.findings.empty());
    const findings::Finding& finding = looked.found.findings[0];
    EXPECT_EQ(finding.brief.find(words), 0u) << finding.brief;
    EXPECT_EQ(finding.brief.find("(50.0 %)") != std::string::npos, above == 15) << finding.brief;
  }
}

TEST(FailureClusters, FailuresAmongCorrectPredictionsAreNoCluster) {
  Points points;
  points.cloud(5, 1, 300, 30, 1), points.cloud(1, 5, 300, 30, 2);
  const auto looked = points.look();
  EXPECT_TRUE(looked.found.findings.empty()) << said(looked.found.findings);
  EXPECT_EQ(looked.found.passed[0].what, "failures do not cluster");
  EXPECT_EQ(std::set<int64_t>(looked.found.clusters.begin(), looked.found.clusters.end()), std::set<int64_t>{-1});
}

TEST(FailureClusters, AClusterHasTwelveFailuresAtLeast) {
  for (const auto& [count, told] : std::vector<std::pair<int64_t, bool>>{{11, false}, {12, true}}) {
    Points points;
    points.cloud(5, 1, 200, 6, 1), points.cloud(1, 5, 200, 6, 2);
    points.cloud(9, 8, count, count, 3);
    EXPECT_EQ(raises(points.look().found, "failure-cluster"), told) << count;
  }
}

TEST(FailureClusters, TheLargestComesFirstAndThreeAreTold) {
  Points points;
  points.cloud(5, 1, 300, 0, 1);
  const int64_t sizes[] = {20, 35, 15, 26};
  for (int c = 0; c < 4; ++c) points.cloud(20 + 15 * c, 10, sizes[c], sizes[c], uint64_t(5 + c));
  const auto looked = points.look();
  std::map<int64_t, int64_t> members;
  for (int64_t cluster : looked.found.clusters) ++members[cluster];
  EXPECT_EQ(members, (std::map<int64_t, int64_t>{{-1, 300}, {0, 35}, {1, 26}, {2, 20}, {3, 15}}));
  EXPECT_EQ(looked.found.findings.size(), 3u);
}

TEST(FailureClusters, ValuesThatAreNoNumbersDoNotStopTheSearch) {
  Points points;
  points.cloud(5, 1, 200, 0, 1), points.cloud(9, 8, 30, 30, 3);
  for (int i = 0; i < 5; ++i) points.add(NAN, 1, false);
  EXPECT_TRUE(raises(points.look().found, "failure-cluster"));
}

/// Features by their own deviations, ten nearest of each failure by sorting all distances; failures with seven failing
/// neighbours of ten are joined with such neighbours.
std::vector<int64_t> slow_clusters(const Points::Looked& looked) {
  const observers::UnitBatch& traces = looked.seen->test->units->traces();
  const auto n = size_t(traces.count()), units = size_t(traces.units);
  std::vector<std::vector<double>> feature(n, std::vector<double>(units));
  for (size_t u = 0; u < units; ++u) {
    double mean = 0, square = 0;
    for (size_t i = 0; i < n; ++i) mean += traces.input(int64_t(i))[u] / double(n);
    for (size_t i = 0; i < n; ++i) square += std::pow(traces.input(int64_t(i))[u] - mean, 2) / double(n - 1);
    for (size_t i = 0; i < n; ++i)
      feature[i][u] = (traces.input(int64_t(i))[u] - mean) / std::max(std::sqrt(square), 1e-6);
  }
  auto fails = [&](size_t i) { return traces.rows[i].right == observers::SampleRow::kWrong; };
  std::vector<std::vector<size_t>> near(n);
  std::vector<bool> deep(n);
  for (size_t i = 0; i < n; ++i) {
    if (!fails(i)) continue;
    std::vector<std::pair<double, size_t>> order;
    for (size_t j = 0; j < n; ++j) {
      double distance = 0;
      for (size_t u = 0; u < units; ++u) distance += std::pow(feature[i][u] - feature[j][u], 2);
      if (j != i) order.push_back({distance, j});
    }
    std::sort(order.begin(), order.end());
    int64_t wrong = 0;
    for (size_t k = 0; k < 10; ++k) near[i].push_back(order[k].second), wrong += fails(order[k].second);
    deep[i] = wrong >= 7;
  }
  std::vector<int64_t> name(n, -1);  // of the first member; spread until nothing changes
  for (size_t i = 0; i < n; ++i) name[i] = deep[i] ? int64_t(i) : -1;
  for (bool again = true; again;) {
    again = false;
    for (size_t i = 0; i < n; ++i)
      for (size_t j : near[i])
        if (deep[i] && deep[j] && name[i] != name[j]) name[i] = name[j] = std::min(name[i], name[j]), again = true;
  }
  std::map<int64_t, int64_t> sizes;
  for (int64_t one : name) ++sizes[one];
  for (int64_t& one : name)
    if (one >= 0 && sizes[one] < 12) one = -1;
  return name;
}

TEST(FailureClusters, AgreeWithASearchOfEveryPair) {
  for (uint64_t seed : {1, 2, 3}) {
    Points points;
    Random random(seed);
    for (int i = 0; i < 500; ++i) {
      const double x = 10 * random.uniform(), y = 10 * random.uniform();
      const bool patch = std::sin(x) * std::cos(0.8 * y) > 0.5;
      points.add(x, y, random.uniform() < (patch ? 0.9 : 0.1));
    }
    const auto looked = points.look();
    const std::vector<int64_t> slow = slow_clusters(looked), &fast = looked.found.clusters;
    ASSERT_EQ(slow.size(), fast.size());
    std::map<int64_t, int64_t> same;  // names differ, the parts do not
    for (size_t i = 0; i < slow.size(); ++i) {
      EXPECT_EQ(slow[i] < 0, fast[i] < 0) << i;
      EXPECT_EQ(same.try_emplace(slow[i], fast[i]).first->second, fast[i]) << i;
    }
    EXPECT_GE(same.size(), 2u) << "the twin found no cluster to compare";
  }
}

}  // namespace
}  // namespace netmend::checks
