#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/text.h"
#include "checks/observed.h"
#include "checks/results.h"
#include "checks/rows.h"
#include "findings/phrases.h"

namespace netmend::checks {
namespace {

using findings::Certainty;
using observers::SampleRow;

constexpr int64_t kNeighbours = 10;
constexpr int64_t kMostFailures = 4000, kMostTests = 40000;
constexpr double kMostlyWrong = 0.7;  ///< of a failure's neighbours
constexpr int64_t kFewest = 12;       ///< failures of a cluster

int64_t root(std::vector<int64_t>& parent, int64_t at) {
  while (parent[size_t(at)] != at) at = parent[size_t(at)] = parent[size_t(parent[size_t(at)])];
  return at;
}

}  // namespace

void check_failure_clusters(Observed& seen, Results& found) {
  std::vector<int64_t>& clusters = found.clusters;
  clusters.assign(seen.test->rows.size(), -1);
  const observers::UnitBatch& traces = seen.test->units->traces();
  std::vector<int64_t> failing;
  for (int64_t i = 0; i < traces.count(); ++i)
    if (traces.rows[size_t(i)].right == SampleRow::kWrong) failing.push_back(i);
  if (int64_t(failing.size()) < kFewest) {
    found.pass("failures do not cluster", findings::counted(int64_t(failing.size()), "failure"));
    return;
  }
  if (int64_t(failing.size()) > kMostFailures || traces.count() > kMostTests) {
    found.skipped.push_back(
        {"clusters of failures",
         fmt::format("at most {} failures among at most {} inputs (there are {} and {})", with_commas(kMostFailures),
                     with_commas(kMostTests), with_commas(int64_t(failing.size())), with_commas(traces.count()))});
    return;
  }
  // Features are standardised; otherwise the largest unit alone would decide who is near.
  at::Tensor all = at::from_blob(const_cast<float*>(traces.values.data()), {traces.count(), traces.units})
                       .clone()
                       .nan_to_num(0, 0, 0);
  all = (all - all.mean(0)) / all.std(0).clamp_min(1e-6);
  at::Tensor wanted = all.index_select(0, at::tensor(failing, at::kLong));
  const int64_t kept = std::min(kNeighbours + 1, traces.count());
  std::vector<std::vector<int64_t>> near;
  for (int64_t first = 0; first < wanted.size(0); first += 512) {
    at::Tensor part = wanted.narrow(0, first, std::min<int64_t>(512, wanted.size(0) - first));
    at::Tensor distance = all.square().sum(1).unsqueeze(0) - 2 * part.matmul(all.t());
    at::Tensor which = std::get<1>(distance.topk(kept, 1, false, true)).contiguous();
    for (int64_t r = 0; r < which.size(0); ++r)
      near.emplace_back(which.data_ptr<int64_t>() + r * kept, which.data_ptr<int64_t>() + (r + 1) * kept);
  }
  std::vector<int64_t> number(size_t(traces.count()), -1), parent(failing.size());
  for (size_t f = 0; f < failing.size(); ++f) number[size_t(failing[f])] = int64_t(f);
  std::iota(parent.begin(), parent.end(), 0);
  std::vector<bool> deep(failing.size());
  for (size_t f = 0; f < failing.size(); ++f) {
    int64_t wrong = 0, others = 0;
    for (int64_t n : near[f])
      if (n != failing[f]) ++others, wrong += number[size_t(n)] >= 0;
    deep[f] = double(wrong) >= kMostlyWrong * double(std::max<int64_t>(1, others));
  }
  for (size_t f = 0; f < failing.size(); ++f)
    for (int64_t n : near[f])
      if (int64_t other = number[size_t(n)]; deep[f] && other >= 0 && deep[size_t(other)])
        parent[size_t(root(parent, int64_t(f)))] = root(parent, other);
  std::map<int64_t, std::vector<int64_t>> members;
  for (size_t f = 0; f < failing.size(); ++f)
    if (deep[f]) members[root(parent, int64_t(f))].push_back(failing[f]);
  std::vector<std::vector<int64_t>> large;
  for (auto& [at, list] : members)
    if (int64_t(list.size()) >= kFewest) large.push_back(std::move(list));
  std::stable_sort(large.begin(), large.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
  if (large.empty())
    found.passed.push_back({"failures do not cluster", fmt::format("{} failures, scattered among correct predictions",
                                                                   with_commas(int64_t(failing.size())))});
  std::map<int64_t, size_t> place;  // traces may be every n-th input only
  for (size_t i = 0; i < seen.test->rows.size(); ++i) place[seen.test->rows[i].sample] = i;
  for (size_t c = 0; c < large.size(); ++c) {
    std::map<std::pair<int64_t, int64_t>, int64_t> pairs;
    for (int64_t i : large[c]) {
      const SampleRow& row = traces.rows[size_t(i)];
      clusters[place[row.sample]] = int64_t(c);
      ++pairs[{int64_t(row.label), int64_t(row.predicted)}];
    }
    if (c >= 3) continue;
    auto most =
        std::max_element(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    const auto& names = seen.settings.classes;
    auto name = [&](int64_t label) {
      return label >= 0 && label < int64_t(names.size()) ? names[size_t(label)] : std::string("?");
    };
    auto predicted = [&](int64_t label) { return name(label) == "?" ? std::string("NaN or Inf") : name(label); };
    const auto size = int64_t(large[c].size());
    const bool tie =
        std::count_if(pairs.begin(), pairs.end(), [&](const auto& one) { return one.second == most->second; }) > 1;
    // The pair is what the cluster is about only where it is most of it.
    const std::string pair_words =
        2 * most->second > size
            ? fmt::format("mostly {} predicted as {}", name(most->first.first), predicted(most->first.second))
            : fmt::format("{} {} predicted as {} ({})", tie ? "for example" : "most often", name(most->first.first),
                          predicted(most->first.second), findings::percent(double(most->second) / double(size)));
    const std::string where = name(most->first.first) + "-as-" + name(most->first.second);
    const double share = double(large[c].size()) / double(std::max<int64_t>(1, traces.count()));
    auto finding = findings::make(
        "failure-cluster", where, seen.words({{"n", with_commas(int64_t(large[c].size()))}}),
        {std::min(0.3 * share, share >= 0.03 ? 1.0 : 0.0099), 0}, Certainty::kLikely,
        fmt::format("{} failures, {}", with_commas(size), pair_words),
        fmt::format("At least {:.0f} % of the nearest neighbours in feature space of each of these {} failures are "
                    "failures too; {} of the {} are {} predicted as {}.",
                    100 * kMostlyWrong, with_commas(size), with_commas(most->second), with_commas(size),
                    name(most->first.first), predicted(most->first.second)));
    for (size_t i = 0; i < std::min<size_t>(12, large[c].size()); ++i)
      finding.inputs.push_back({"test", traces.rows[size_t(large[c][i])].sample});
    found.add(std::move(finding));
  }
}

}  // namespace netmend::checks
