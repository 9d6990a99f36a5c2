#include "census/near_duplicates.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

#include "base/pool.h"
#include "executor/runtime.h"
#include "stream/pass.h"

namespace netmend::census {
namespace {

constexpr int64_t kRows = 256, kColumns = 2048;  ///< of a block: its products stay in the second-level cache
constexpr size_t kCandidates = 4;
constexpr double kDescriptorLeast = 0.99;  ///< shrinking averages noise away: real twins are more alike when small

/// Rows of length 1, so that a product is a correlation; flat ones are 0 and like nothing.
at::Tensor unit_rows(std::span<const int8_t> descriptors) {
  const auto count = int64_t(descriptors.size()) / kDescriptor;
  at::Tensor rows = at::empty({count, kDescriptor}, at::kFloat);
  std::copy(descriptors.begin(), descriptors.end(), rows.data_ptr<float>());
  rows.sub_(rows.mean(1, true));
  at::Tensor length = rows.norm(2, 1, true);
  return rows.div_(length.clamp_min(1e-6)).mul_(length.gt(0).to(at::kFloat));
}

void keep_best(std::vector<DuplicatePair>& best, DuplicatePair twin) {
  auto at =
      std::find_if(best.begin(), best.end(), [&](const DuplicatePair& known) { return known.alike < twin.alike; });
  best.insert(at, twin);
  if (best.size() > kCandidates) best.pop_back();
}

/// The largest of a row, in the form that the compiler turns into vector comparisons.
float largest(const float* row, int64_t count) {
  float most = -1;
  for (int64_t i = 0; i < count; ++i) most = row[i] > most ? row[i] : most;
  return most;
}

/// Values of inputs as the network gets them; correlation does not mind scale and offset, and with one scale per
/// channel hardly that one.
class Inputs {
 public:
  Inputs(const dataset::Dataset& data, size_t feature) : data_(data), feature_(feature) {}
  const std::vector<float>& of(int64_t sample) {
    auto [known, added] = kept_.try_emplace(sample);
    if (!added) return known->second;
    if (floats_ > kMostFloats) {
      kept_.clear(), floats_ = 0;
      known = kept_.try_emplace(sample).first;
    }
    at::Tensor row = data_.read(std::vector<int64_t>{sample}).inputs[feature_].to(at::kFloat).contiguous();
    known->second.assign(row.data_ptr<float>(), row.data_ptr<float>() + row.numel());
    floats_ += row.numel();
    return known->second;
  }

 private:
  const dataset::Dataset& data_;
  size_t feature_;
  static constexpr int64_t kMostFloats = int64_t(16) << 20;
  std::unordered_map<int64_t, std::vector<float>> kept_;
  int64_t floats_ = 0;
};

/// Every n-th kept input, so that no more than `most` are left.
std::vector<size_t> thinned(size_t count, double most) {
  const auto step = size_t(std::max(1.0, std::ceil(double(count) / std::max(1.0, most))));
  std::vector<size_t> chosen;
  for (size_t i = 0; i < count; i += step) chosen.push_back(i);
  return chosen;
}

std::vector<int8_t> chosen_rows(const CensusState& part, const std::vector<size_t>& chosen) {
  std::vector<int8_t> rows;
  rows.reserve(chosen.size() * kDescriptor);
  for (size_t i : chosen) {
    const int8_t* row = part.descriptors.data() + i * kDescriptor;
    rows.insert(rows.end(), row, row + kDescriptor);
  }
  return rows;
}

NearSearch by_loose_hashes(const CensusState& part, const CensusState& other, bool within) {
  NearSearch found{{}, part.inputs(), part.inputs(), other.inputs()};
  if (part.loose.size() != part.hashes.size() || other.loose.size() != other.hashes.size()) return found;
  std::unordered_map<uint64_t, int64_t> exact, first;
  for (size_t i = 0; i < other.hashes.size() && !within; ++i) exact.emplace(other.hashes[i], int64_t(i));
  for (size_t i = 0; i < other.loose.size() && !within; ++i) first.emplace(other.loose[i], int64_t(i));
  for (size_t i = 0; i < part.loose.size(); ++i) {
    auto hit = first.find(part.loose[i]);
    if (hit != first.end() && !exact.count(part.hashes[i])) found.pairs.push_back({int64_t(i), hit->second, 1});
    if (within) exact.emplace(part.hashes[i], int64_t(i)), first.emplace(part.loose[i], int64_t(i));
  }
  return found;
}

/// Sequences of tokens by runs that they share, confirmed by their edit distance.
NearSearch by_sequences(const CensusState& part, const dataset::Dataset& data, const CensusState& other,
                        const dataset::Dataset& other_data, bool within) {
  NearSearch found{{}, int64_t(part.kept.size()), part.inputs(), int64_t(other.kept.size())};
  auto reader = [](const dataset::Dataset& of, size_t feature) {
    return [&of, feature, kept = std::unordered_map<int64_t, std::vector<int64_t>>()](
               int64_t sample) mutable -> const std::vector<int64_t>& {
      if (kept.size() > 50000) kept.clear();
      auto [known, added] = kept.try_emplace(sample);
      if (added) {
        const dataset::Batch batch = of.read(std::vector<int64_t>{sample});
        const at::Tensor mask = feature < batch.masks.size() ? batch.masks[feature] : at::Tensor();
        known->second =
            tokens_of(of.info().features[feature], batch.inputs[feature][0], mask.defined() ? mask[0] : mask);
      }
      return known->second;
    };
  };
  auto ours = reader(data, part.form().feature), theirs = reader(other_data, other.form().feature);
  std::vector<std::vector<int64_t>> candidates = alike_sketches(part.sketches, other.sketches, within);
  for (size_t i = 0; i < candidates.size(); ++i) {
    const int64_t sample = part.kept[i];
    DuplicatePair best{sample, -1, 0};
    for (int64_t candidate : candidates[i]) {
      const int64_t near = other.kept[size_t(candidate)];
      if (part.hashes[size_t(sample)] == other.hashes[size_t(near)]) {  // exact duplicates are counted elsewhere
        best.other = -1;
        break;
      }
      const std::vector<int64_t> own = ours(sample);
      if (const double alike = alike_sequences(own, theirs(near)); alike > best.alike && alike < 1)
        best.other = near, best.alike = alike;
    }
    if (best.other >= 0) found.pairs.push_back(best);
  }
  return found;
}

NearSearch search(const CensusState& part, const dataset::Dataset& data, const CensusState& other,
                  const dataset::Dataset& other_data, bool within, int jobs, double most) {
  if (part.form().sequences && other.form().sequences) return by_sequences(part, data, other, other_data, within);
  if (!part.form().descriptors || !other.form().descriptors) return by_loose_hashes(part, other, within);
  const double pairs = double(part.kept.size()) * double(other.kept.size());
  const double thin = pairs > most ? most / pairs : 1;
  std::vector<size_t> rows = thinned(part.kept.size(), double(part.kept.size()) * (within ? std::sqrt(thin) : thin));
  std::vector<size_t> columns = within ? rows : thinned(other.kept.size(), double(other.kept.size()));
  NearSearch found{{}, int64_t(rows.size()), part.inputs(), int64_t(columns.size())};
  auto candidates = alike(chosen_rows(part, rows), chosen_rows(other, columns), kDescriptorLeast, within, jobs);
  Inputs ours(data, part.form().feature), theirs(other_data, other.form().feature);
  for (size_t i = 0; i < rows.size(); ++i) {
    const int64_t sample = part.kept[rows[i]];
    for (const DuplicatePair& candidate : candidates[i]) {
      const int64_t near = other.kept[columns[size_t(candidate.other)]];
      if (part.hashes[size_t(sample)] == other.hashes[size_t(near)]) break;  // an exact duplicate is counted elsewhere
      const double alike = correlation(ours.of(sample), theirs.of(near));
      if (alike < kNearlySame) continue;
      found.pairs.push_back({sample, near, alike});
      break;
    }
  }
  return found;
}

}  // namespace

std::vector<std::vector<DuplicatePair>> alike(std::span<const int8_t> a, std::span<const int8_t> b, double least,
                                              bool below, int jobs) {
  at::Tensor rows = unit_rows(a), columns = unit_rows(b);
  const int64_t count = rows.size(0), blocks = (count + kRows - 1) / kRows;
  std::vector<std::vector<DuplicatePair>> found(static_cast<size_t>(count));
  const int workers = int(std::min<int64_t>(jobs > 0 ? jobs : cores(), std::max<int64_t>(blocks, 1)));
  in_order(
      blocks, workers, [](int) { executor::enter_worker(); },
      [&](int64_t block, int) {
        at::NoGradGuard no_grad;
        const int64_t first = block * kRows, here = std::min(kRows, count - first);
        at::Tensor part = rows.slice(0, first, first + here), product = at::empty({here, kColumns}, at::kFloat);
        const int64_t end = below ? std::min(columns.size(0), first + here) : columns.size(0);
        for (int64_t begin = 0; begin < end; begin += kColumns) {
          const int64_t wide = std::min(kColumns, end - begin);
          at::Tensor into = wide == kColumns ? product : at::empty({here, wide}, at::kFloat);
          at::mm_out(into, part, columns.slice(0, begin, begin + wide).t());
          for (int64_t r = 0; r < here; ++r) {
            const float* row = into.data_ptr<float>() + r * wide;
            const int64_t last = below ? std::clamp<int64_t>(first + r - begin, 0, wide) : wide;
            if (last == 0 || largest(row, last) < float(least)) continue;
            for (int64_t c = 0; c < last; ++c)
              if (row[c] >= float(least)) keep_best(found[size_t(first + r)], {first + r, begin + c, row[c]});
          }
        }
      },
      [](int64_t) {});
  return found;
}

NearSearch near_duplicates(const CensusState& part, const dataset::Dataset& data, const CensusState& other,
                           const dataset::Dataset& other_data, int jobs, double most) {
  return search(part, data, other, other_data, false, jobs, most);
}

NearSearch near_duplicates_within(const CensusState& part, const dataset::Dataset& data, int jobs, double most) {
  return search(part, data, part, data, true, jobs, most);
}

}  // namespace netmend::census
