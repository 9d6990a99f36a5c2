#include "selection/confident_joint.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/text.h"

namespace netmend::selection {
namespace {

constexpr double kTolerance = 1e-6, kLeastThreshold = 2e-6, kNever = 2;

/// Row by row, of one input.
class Rows {
 public:
  Rows(std::span<const double> probabilities, int64_t classes) : p_(probabilities), classes_(classes) {}
  double at(int64_t row, int64_t c) const { return p_[size_t(row * classes_ + c)]; }
  /// The class that is confidently seen: of those that reach their thresholds the most probable; −1 for none.
  int64_t confident(int64_t row, const std::vector<double>& thresholds) const {
    int64_t best = -1;
    for (int64_t c = 0; c < classes_; ++c)
      if (at(row, c) >= thresholds[size_t(c)] - kTolerance && (best < 0 || at(row, c) > at(row, best))) best = c;
    return best;
  }
  /// The label's probability less the largest of the others.
  double margin(int64_t row, int64_t label) const {
    double other = -INFINITY;
    for (int64_t c = 0; c < classes_; ++c)
      if (c != label) other = std::max(other, at(row, c));
    return at(row, label) - other;
  }
  bool most_probable(int64_t row, int64_t label) const { return margin(row, label) >= -kTolerance; }

 private:
  std::span<const double> p_;
  int64_t classes_;
};

/// Whole numbers with the row's sum, by largest remainders.
std::vector<int64_t> rounded(const std::vector<double>& row, int64_t sum) {
  std::vector<int64_t> whole;
  std::vector<size_t> order(row.size());
  std::iota(order.begin(), order.end(), size_t{0});
  int64_t left = sum;
  for (double x : row) whole.push_back(int64_t(std::floor(x + 1e-9))), left -= whole.back();
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return row[a] - std::floor(row[a] + 1e-9) > row[b] - std::floor(row[b] + 1e-9);
  });
  for (size_t i = 0; left > 0 && i < order.size(); ++i, --left) ++whole[order[i]];
  return whole;
}

template <typename Number>
int64_t off_diagonal(const std::vector<std::vector<Number>>& matrix) {
  int64_t sum = 0;
  for (size_t k = 0; k < matrix.size(); ++k)
    for (size_t j = 0; j < matrix.size(); ++j)
      if (k != j) sum += int64_t(matrix[k][j]);
  return sum;
}

}  // namespace

int64_t ConfidentJoint::issues() const { return off_diagonal(counts); }
int64_t ConfidentJoint::estimated() const { return off_diagonal(calibrated); }

ConfidentJoint confident_joint(std::span<const double> probabilities, std::span<const int64_t> labels,
                               int64_t classes) {
  const auto k = size_t(classes);
  const auto count = int64_t(labels.size());
  check(probabilities.size() == labels.size() * k, "every input has a probability of each class");
  const Rows rows(probabilities, classes);
  ConfidentJoint out;
  std::vector<int64_t> of(k);
  out.thresholds.resize(k);
  for (int64_t row = 0; row < count; ++row) {
    const int64_t label = labels[size_t(row)];
    check(label >= 0 && label < classes, "label {} is none of {} classes", label, classes);
    ++of[size_t(label)], out.thresholds[size_t(label)] += rows.at(row, label);
  }
  for (size_t c = 0; c < k; ++c)
    out.thresholds[c] = of[c] ? std::max(kLeastThreshold, out.thresholds[c] / double(of[c])) : kNever;
  out.counts.assign(k, std::vector<int64_t>(k));
  for (int64_t row = 0; row < count; ++row)
    if (const int64_t seen = rows.confident(row, out.thresholds); seen >= 0)
      ++out.counts[size_t(labels[size_t(row)])][size_t(seen)], ++out.counted;
  for (size_t c = 0; c < k; ++c) out.counts[c][c] = std::max<int64_t>(1, out.counts[c][c]);
  out.joint.assign(k, std::vector<double>(k));
  for (size_t given = 0; given < k; ++given) {
    const double sum = double(std::accumulate(out.counts[given].begin(), out.counts[given].end(), int64_t(0)));
    std::vector<double> scaled;
    for (int64_t n : out.counts[given]) scaled.push_back(double(n) / sum * double(of[given]));
    out.calibrated.push_back(rounded(scaled, of[given]));
    for (size_t c = 0; c < k; ++c)
      out.joint[given][c] = double(out.calibrated[given][c]) / double(std::max<int64_t>(1, count));
  }
  out.prior.resize(k);
  for (size_t c = 0; c < k; ++c)
    for (size_t given = 0; given < k; ++given) out.prior[c] += out.joint[given][c];
  out.noise = out.inverse = out.joint;
  for (size_t given = 0; given < k; ++given) {
    const double row = std::accumulate(out.joint[given].begin(), out.joint[given].end(), 0.0);
    for (size_t c = 0; c < k; ++c) {
      out.noise[given][c] = out.prior[c] > 0 ? out.joint[given][c] / out.prior[c] : 0;
      out.inverse[given][c] = row > 0 ? out.joint[given][c] / row : 0;
    }
  }
  return out;
}

const std::vector<std::string>& label_filters() {
  static const std::vector<std::string> names{"noise-rate", "by-class", "both", "confident"};
  return names;
}

std::vector<int64_t> filtered(const std::string& filter, const ConfidentJoint& joint,
                              std::span<const double> probabilities, std::span<const int64_t> labels) {
  const auto& names = label_filters();
  if (std::find(names.begin(), names.end(), filter) == names.end())
    throw InputError(fmt::format("there is no filter `{}`{}", printable(filter), did_you_mean(filter, names)),
                     "Filters are " + join(names, ", ") + ".");
  const auto classes = int64_t(joint.thresholds.size()), count = int64_t(labels.size());
  const Rows rows(probabilities, classes);
  std::vector<std::vector<int64_t>> of(static_cast<size_t>(classes));
  for (int64_t row = 0; row < count; ++row) of[size_t(labels[size_t(row)])].push_back(row);
  std::vector<bool> by_rate(size_t(count), false), by_class(size_t(count), false), confident(size_t(count), false);
  auto take = [](std::vector<int64_t> order, int64_t some, std::vector<bool>& to, const auto& before) {
    std::stable_sort(order.begin(), order.end(), before);
    for (int64_t i = 0; i < std::min(some, int64_t(order.size())); ++i) to[size_t(order[size_t(i)])] = true;
  };
  for (int64_t given = 0; given < classes; ++given) {
    const auto& own = of[size_t(given)];
    take(own, int64_t(own.size()) - joint.calibrated[size_t(given)][size_t(given)], by_class,
         [&](int64_t a, int64_t b) { return rows.at(a, given) < rows.at(b, given); });
    for (int64_t c = 0; c < classes; ++c)
      if (c != given)
        take(own, joint.calibrated[size_t(given)][size_t(c)], by_rate, [&](int64_t a, int64_t b) {
          return rows.at(a, c) - rows.at(a, given) > rows.at(b, c) - rows.at(b, given);
        });
    for (int64_t row : own)
      if (const int64_t seen = rows.confident(row, joint.thresholds); seen >= 0 && seen != given)
        confident[size_t(row)] = true;
  }
  std::vector<int64_t> found;
  for (int64_t row = 0; row < count; ++row) {
    const auto at = size_t(row);
    const bool out = filter == "noise-rate" ? by_rate[at]
                     : filter == "by-class" ? by_class[at]
                     : filter == "both"     ? by_rate[at] && by_class[at]
                                            : confident[at];
    if (out && !rows.most_probable(row, labels[at])) found.push_back(row);
  }
  std::stable_sort(found.begin(), found.end(), [&](int64_t a, int64_t b) {
    return rows.margin(a, labels[size_t(a)]) < rows.margin(b, labels[size_t(b)]);
  });
  return found;
}

}  // namespace netmend::selection
