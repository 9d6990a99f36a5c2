#include "observers/top_predictions.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "stream/pass.h"

namespace netmend::observers {
namespace {

// Rows are saved as they lie in memory.
static_assert(sizeof(TopRow) == 24 + 8 * TopRow::kKept);

/// Outputs as probabilities in place; false when one of them is no number.
bool to_probabilities(double* row, int64_t width, bool probabilities) {
  double most = -INFINITY, sum = 0;
  for (int64_t c = 0; c < width; ++c) {
    if (!std::isfinite(row[c])) return false;
    most = std::max(most, row[c]);
  }
  if (probabilities) {
    for (int64_t c = 0; c < width; ++c) row[c] = std::clamp(row[c], 0.0, 1.0);
    return true;
  }
  for (int64_t c = 0; c < width; ++c) sum += row[c] = std::exp(row[c] - most);
  for (int64_t c = 0; c < width; ++c) row[c] /= sum;
  return true;
}

/// Equal probabilities: the smaller class first, as everywhere.
void keep_likeliest(const double* probabilities, int64_t width, TopRow& row) {
  std::array<double, TopRow::kKept> best;
  int64_t kept = 0;
  for (int64_t c = 0; c < width; ++c) {
    if (kept == TopRow::kKept && probabilities[c] <= best[TopRow::kKept - 1]) continue;
    int64_t at = std::min(kept, TopRow::kKept - 1);
    for (; at > 0 && best[size_t(at - 1)] < probabilities[c]; --at) {
      best[size_t(at)] = best[size_t(at - 1)];
      row.classes[size_t(at)] = row.classes[size_t(at - 1)];
    }
    best[size_t(at)] = probabilities[c];
    row.classes[size_t(at)] = int32_t(c);
    kept = std::min(kept + 1, TopRow::kKept);
  }
  for (int64_t i = 0; i < kept; ++i) row.probabilities[size_t(i)] = float(best[size_t(i)]);
}

}  // namespace

std::vector<stream::Tap> TopPredictions::taps() const { return {{settings_.head.logits, 0}}; }

std::unique_ptr<stream::State> TopPredictions::fresh() const { return std::make_unique<TopState>(settings_); }

void TopState::observe(const stream::View& view) {
  const executor::Head& head = settings_.head;
  const bool normalised = head.without_logits();
  at::Tensor columns = as_columns(view.value(head.logits).to(at::kCPU, at::kDouble)).contiguous();
  const int64_t width = columns.size(1), classes = std::max<int64_t>(width, 2);
  at::Tensor labels;
  if (settings_.by_class() && view.batch.labels.defined()) labels = view.batch.labels.to(at::kLong).contiguous();
  const double* values = columns.data_ptr<double>();
  std::vector<double> scores(static_cast<size_t>(classes));
  for (size_t i = 0; i < view.batch.samples.size(); ++i, values += width) {
    TopRow row;
    row.sample = view.batch.samples[i];
    row.classes.fill(-1);
    if (labels.defined()) {
      int64_t label = labels.data_ptr<int64_t>()[i];
      if (label < 0 || label >= classes)
        fail("{}: input {} has label {}, the model has {} classes", settings_.data, row.sample, label, classes);
      row.label = int32_t(label);
    }
    if (width == 1) {
      // One sigmoid is the second of two classes.
      scores[0] = normalised ? 1 - values[0] : 0;
      scores[1] = values[0];
    } else {
      std::copy(values, values + width, scores.begin());
    }
    if (to_probabilities(scores.data(), classes, normalised)) {
      double squares = 0, entropy = 0;
      for (double p : scores) {
        squares += p * p;
        if (p > 0) entropy -= p * std::log(p);
      }
      row.gini = float(std::max(0.0, 1 - squares));
      row.entropy = float(std::max(0.0, entropy));
      if (row.label >= 0) row.given = float(scores[size_t(row.label)]);
      keep_likeliest(scores.data(), classes, row);
    }
    rows.push_back(row);
  }
}

void TopState::merge(const stream::State& later) {
  const auto& other = dynamic_cast<const TopState&>(later);
  rows.insert(rows.end(), other.rows.begin(), other.rows.end());
}

void TopState::save(std::ostream& out) const {
  stream::put(out, std::string(reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(TopRow)));
}

void TopState::load(std::istream& in) {
  std::string bytes = stream::get_text(in);
  if (bytes.size() % sizeof(TopRow) != 0) fail("the state file is damaged");
  rows.resize(bytes.size() / sizeof(TopRow));
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(rows.data()));
}

}  // namespace netmend::observers
