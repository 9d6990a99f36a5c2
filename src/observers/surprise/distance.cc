#include "observers/surprise/distance.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "ops/vector_clones.h"

namespace netmend::observers {
namespace {

constexpr int64_t kQueries = 128, kRows = 1024;  // their product stays in the second-level cache

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

void search_nearest(const at::Tensor& queries, const at::Tensor& base, const std::vector<float>& squares, int64_t from,
                    int64_t to, Nearest* nearest) {
  const int64_t width = queries.size(1), count = queries.size(0);
  const float *asked = queries.data_ptr<float>(), *rows = base.data_ptr<float>();
  const std::vector<float> own = squared_norms(queries);
  // How far a sum of `width` products in float can be off, beside the norms' own rounding.
  const double slip = double(width + 8) * double(std::numeric_limits<float>::epsilon());
  at::Tensor products = at::empty({count, std::min(kRows, std::max<int64_t>(to - from, 0))}, at::kFloat);
  for (int64_t first = from; first < to; first += kRows) {
    const int64_t here = std::min(kRows, to - first);
    at::Tensor block = products.view({-1}).narrow(0, 0, count * here).view({count, here});
    at::mm_out(block, queries, base.narrow(0, first, here).t());
    const float farthest = *std::max_element(squares.begin() + first, squares.begin() + first + here);
    for (int64_t q = 0; q < count; ++q) {
      const float* product = block.data_ptr<float>() + q * here;
      const float least = least_of(product, squares.data() + first, here);
      const double margin = 2 * slip * (std::sqrt(double(own[size_t(q)]) * double(farthest)) + double(farthest)) + 1e-30;
      if (double(least) > nearest[q].squared - double(own[size_t(q)]) * (1 - slip) + margin) continue;
      const double limit = double(least) + 2 * margin;
      for (int64_t i = 0; i < here; ++i) {
        if (!(double(squares[size_t(first + i)] - 2 * product[i]) <= limit)) continue;
        const double exact = squared_distance(asked + q * width, rows + (first + i) * width, width);
        if (exact < nearest[q].squared) nearest[q] = {first + i, exact};
      }
    }
  }
}

DistanceSurprise::DistanceSurprise(const ClassTraces& training, Published published)
    : training_(training), published_(published) {
  at::NoGradGuard no_grad;
  middle_ = training.values.size(0) > 0 ? training.values.mean(0) : at::zeros({training.values.size(1)}, at::kFloat);
  centred_ = (training.values - middle_).contiguous();
  squares_ = squared_norms(centred_);
}

std::vector<double> DistanceSurprise::scores(const ClassTraces& traces, int jobs) const {
  struct Item {
    int64_t c, first, count;
  };
  auto cut = [](std::vector<Item>& items, int64_t c, int64_t first, int64_t count) {
    for (int64_t at = 0; at < count; at += kQueries) items.push_back({c, first + at, std::min(kQueries, count - at)});
  };
  const int64_t classes = std::min(traces.classes(), training_.classes());
  at::Tensor centred = (traces.values - middle_).contiguous();
  std::vector<Nearest> same(size_t(centred.size(0)));
  std::vector<Item> items;
  for (int64_t c = 0; c < classes; ++c)
    if (training_.size(c) > 0) cut(items, c, traces.starts[size_t(c)], traces.size(c));
  share_out(int64_t(items.size()), jobs, [&](int64_t i) {
    const Item& item = items[size_t(i)];
    search_nearest(centred.narrow(0, item.first, item.count), centred_, squares_, training_.starts[size_t(item.c)],
                   training_.starts[size_t(item.c + 1)], same.data() + item.first);
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
  at::Tensor queries = (from_input ? centred : centred_).index_select(0, at::tensor(from, at::kLong));
  share_out(int64_t(others.size()), jobs, [&](int64_t i) {
    const Item& item = others[size_t(i)];
    at::Tensor block = queries.narrow(0, item.first, item.count);
    Nearest* to = other.data() + item.first;
    search_nearest(block, centred_, squares_, 0, training_.starts[size_t(item.c)], to);
    search_nearest(block, centred_, squares_, training_.starts[size_t(item.c + 1)], centred_.size(0), to);
  });

  std::vector<double> scores(size_t(traces.source_rows), kNoScore);
  for (int64_t c = 0, first = 0; c < classes; ++c) {
    auto end = std::upper_bound(others.begin(), others.end(), c, [](int64_t a, const Item& b) { return a < b.c; });
    const int64_t last = end == others.begin() ? 0 : (end - 1)->first + (end - 1)->count;
    for (int64_t row = traces.starts[size_t(c)]; row < traces.starts[size_t(c + 1)]; ++row) {
      if (same[size_t(row)].row < 0) continue;
      auto place = std::lower_bound(from.begin() + first, from.begin() + last, from_input ? row : same[size_t(row)].row);
      const Nearest& away = other[size_t(place - from.begin())];
      if (away.row >= 0 && away.squared > 0)
        scores[size_t(traces.rows[size_t(row)])] = std::sqrt(same[size_t(row)].squared / away.squared);
    }
    first = std::max(first, last);
  }
  return scores;
}

}  // namespace netmend::observers
