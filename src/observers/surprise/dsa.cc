#include "observers/surprise/dsa.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

#include "observers/surprise/surprise_scores.h"
#include "ops/vector_clones.h"

namespace netmend::observers {
namespace {

constexpr int64_t kQueries = 256, kRows = 1024;  // their product stays in the second-level cache

/// The least of squares[i] − 2·products[i].
NETMEND_VECTOR_CLONES float least_of(const float* products, const float* squares, int64_t count) {
  constexpr int64_t kLanes = 16;
  float lanes[kLanes];
  for (float& lane : lanes) lane = std::numeric_limits<float>::infinity();
  int64_t at = 0;
  for (; at + kLanes <= count; at += kLanes)
    for (int64_t i = 0; i < kLanes; ++i) {
      const float value = squares[at + i] - 2 * products[at + i];
      lanes[i] = value < lanes[i] ? value : lanes[i];
    }
  for (; at < count; ++at) lanes[0] = std::min(lanes[0], squares[at] - 2 * products[at]);
  return *std::min_element(lanes, lanes + kLanes);
}

double squared_distance(const float* a, const float* b, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double apart = double(a[i]) - double(b[i]);
    sum += apart * apart;
  }
  return sum;
}

std::vector<float> squared_norms(const at::Tensor& rows) {
  std::vector<float> squares(size_t(rows.size(0)));
  const float* at = rows.data_ptr<float>();
  for (float& square : squares) {
    double sum = 0;
    for (int64_t i = 0; i < rows.size(1); ++i) sum += double(at[i]) * double(at[i]);
    square = float(sum);
    at += rows.size(1);
  }
  return squares;
}

}  // namespace

Points::Points(const at::Tensor& traces, const at::Tensor& middle)
    : exact(traces.contiguous()), centred((traces - middle).contiguous()), squares(squared_norms(centred)) {}

Points Points::rows(const std::vector<int64_t>& which) const {
  at::Tensor index = at::tensor(which, at::kLong);
  Points chosen;
  chosen.exact = exact.index_select(0, index);
  chosen.centred = centred.index_select(0, index);
  for (int64_t row : which) chosen.squares.push_back(squares[size_t(row)]);
  return chosen;
}

void search_nearest(const Points& queries, int64_t first, int64_t count, const Points& base, int64_t from, int64_t to,
                    std::vector<Nearest>& nearest) {
  const int64_t width = queries.exact.size(1);
  const float *asked = queries.exact.data_ptr<float>(), *rows = base.exact.data_ptr<float>();
  const double epsilon = std::numeric_limits<float>::epsilon();
  at::Tensor block = queries.centred.narrow(0, first, count);
  at::Tensor room = at::empty({count * std::min(kRows, std::max<int64_t>(to - from, 0))}, at::kFloat);
  for (int64_t begin = from; begin < to; begin += kRows) {
    const int64_t here = std::min(kRows, to - begin);
    at::Tensor products = room.narrow(0, 0, count * here).view({count, here});
    at::mm_out(products, block, base.centred.narrow(0, begin, here).t());
    const float* squares = base.squares.data() + begin;
    const double farthest = *std::max_element(squares, squares + here);
    for (int64_t q = first; q < first + count; ++q) {
      const float* product = products.data_ptr<float>() + (q - first) * here;
      const float least = least_of(product, squares, here);
      const double own = queries.squares[size_t(q)];
      // How far a sum of `width` products in float can be off, and what centring rounds away.
      const double margin =
          2 * double(width + 8) * epsilon * (std::sqrt(own * farthest) + farthest) + 4 * epsilon * own;
      Nearest& best = nearest[size_t(q)];
      if (double(least) > best.squared - own + margin) continue;
      const double limit = double(least) + 2 * margin;
      for (int64_t i = 0; i < here; ++i) {
        if (!(double(squares[i] - 2 * product[i]) <= limit)) continue;
        const double exact = squared_distance(asked + q * width, rows + (begin + i) * width, width);
        if (exact < best.squared) best = {begin + i, exact};
      }
    }
  }
}

Dsa::Dsa(const ClassTraces& training, Published published) : training_(training), published_(published) {
  at::NoGradGuard no_grad;
  middle_ = training.values.size(0) > 0 ? training.values.mean(0) : at::zeros({training.values.size(1)}, at::kFloat);
  known_ = Points(training.values, middle_);
}

std::vector<double> Dsa::scores(const ClassTraces& traces, int jobs) const {
  struct Item {
    int64_t c, first, count;
  };
  auto cut = [](std::vector<Item>& items, int64_t c, int64_t first, int64_t count) {
    for (int64_t at = 0; at < count; at += kQueries) items.push_back({c, first + at, std::min(kQueries, count - at)});
  };
  const int64_t classes = std::min(traces.classes(), training_.classes());
  const Points asked(traces.values, middle_);
  std::vector<Nearest> same(asked.squares.size());
  std::vector<Item> items;
  for (int64_t c = 0; c < classes; ++c)
    if (training_.size(c) > 0) cut(items, c, traces.starts[size_t(c)], traces.size(c));
  share_out(int64_t(items.size()), jobs, [&](int64_t i) {
    const Item& item = items[size_t(i)];
    search_nearest(asked, item.first, item.count, known_, training_.starts[size_t(item.c)],
                   training_.starts[size_t(item.c + 1)], same);
  });

  // From where the second distance is measured: distinct nearest traces, or (NLC) the inputs themselves.
  const bool from_input = published_ == Published::kNlc;
  std::vector<int64_t> from;
  std::vector<Item> others;
  for (int64_t c = 0; c < classes; ++c) {
    const auto first = int64_t(from.size());
    for (int64_t row = traces.starts[size_t(c)]; row < traces.starts[size_t(c + 1)]; ++row)
      if (same[size_t(row)].row >= 0) from.push_back(from_input ? row : same[size_t(row)].row);
    std::sort(from.begin() + first, from.end());
    from.erase(std::unique(from.begin() + first, from.end()), from.end());
    cut(others, c, first, int64_t(from.size()) - first);
  }
  std::vector<Nearest> other(from.size());
  const Points queries = (from_input ? asked : known_).rows(from);
  share_out(int64_t(others.size()), jobs, [&](int64_t i) {
    const Item& item = others[size_t(i)];
    const int64_t all = training_.starts.back();
    search_nearest(queries, item.first, item.count, known_, 0, training_.starts[size_t(item.c)], other);
    search_nearest(queries, item.first, item.count, known_, training_.starts[size_t(item.c + 1)], all, other);
  });

  std::vector<double> scores(size_t(traces.source_rows), kNoScore);
  for (int64_t c = 0, first = 0; c < classes; ++c) {
    auto end = std::upper_bound(others.begin(), others.end(), c, [](int64_t a, const Item& b) { return a < b.c; });
    const int64_t last = end == others.begin() ? 0 : (end - 1)->first + (end - 1)->count;
    for (int64_t row = traces.starts[size_t(c)]; row < traces.starts[size_t(c + 1)]; ++row) {
      if (same[size_t(row)].row < 0) continue;
      auto place =
          std::lower_bound(from.begin() + first, from.begin() + last, from_input ? row : same[size_t(row)].row);
      const Nearest& away = other[size_t(place - from.begin())];
      if (away.row >= 0 && away.squared > 0)
        scores[size_t(traces.rows[size_t(row)])] = std::sqrt(same[size_t(row)].squared / away.squared);
    }
    first = std::max(first, last);
  }
  return scores;
}

CriterionRow dsc_row() {
  return {.name = "DSC",
          .full_name = "distance-based surprise coverage",
          .asks = "surprise by distance: every degree of it",
          .reference = "Kim, Feldt, Yoo: Guiding Deep Learning System Testing using Surprise Adequacy, ICSE 2019",
          .also = "DSA",
          .parameter = {"buckets", 1000, true, 2},
          .needs = {.training = true, .classes = 2},
          .fine = true,
          .score = [](const SurpriseMaterials& m) {
            return SurpriseScores{"DSA", 0, m.published == Published::kSadl ? 2000.0 : 2.0,
                                  Dsa(m.training, m.published).scores(m.tests, m.jobs)};
          }};
}

}  // namespace netmend::observers
