// Changes of a table's rows, column by column: noise by the column's own deviation, one column with the value of
// another row, one category exchanged for another. The columns that one category was spread over change together.
#include <ATen/ATen.h>

#include <cmath>

#include "inputs/method.h"
#include "inputs/noise.h"

namespace netmend::inputs {
namespace {

/// The encoded values that one column of the table became.
struct Column {
  int64_t first = 0, width = 1;
  bool category = false;
};

std::vector<Column> columns_of(const dataset::Feature& about) {
  std::vector<Column> columns;
  std::string last;
  for (size_t i = 0; i < about.columns.size(); ++i) {
    const size_t equals = about.columns[i].find('=');
    const std::string name = about.columns[i].substr(0, equals);
    const bool category = equals != std::string::npos;
    if (category && !columns.empty() && columns.back().category && name == last)
      ++columns.back().width;
    else
      columns.push_back({int64_t(i), 1, category});
    last = name;
  }
  return columns;
}

/// Rows that another one changed or not.
Changed with_made(const at::Tensor& units, const Originals& originals) {
  Changed changed{units};
  at::Tensor differs = (units != originals.units).flatten(1).any(1);
  for (int64_t i = 0; i < units.size(0); ++i) changed.made.push_back(differs[i].item<bool>());
  return changed;
}

}  // namespace

Changed column_noise(const Network& network, const Originals& originals, const Settings& settings) {
  const at::Tensor& pool = settings.pool;
  at::Tensor deviation = at::zeros({originals.units.size(1)}, at::kFloat);
  for (const Column& column : columns_of(network.changed().about))
    if (!column.category) deviation[column.first] = pool.select(1, column.first).std(false);
  at::Tensor noise = draw_normal(originals, settings, "column-noise") * deviation.nan_to_num(0) * settings.eps;
  return with_made(clipped(originals.units + noise, originals.units), originals);
}

Changed column_permute(const Network& network, const Originals& originals, const Settings& settings) {
  const std::vector<Column> columns = columns_of(network.changed().about);
  at::Tensor units = originals.units.clone();
  for (int64_t row = 0; row < units.size(0); ++row) {
    Random random = random_for(settings.seed, "column-permute", originals.batch.samples[size_t(row)], settings.attempt);
    for (int draw = 0; draw < 50; ++draw) {
      const Column& column = columns[random.below(columns.size())];
      at::Tensor own = units[row].narrow(0, column.first, column.width);
      at::Tensor other =
          settings.pool[int64_t(random.below(uint64_t(settings.pool.size(0))))].narrow(0, column.first, column.width);
      if (at::equal(own, other)) continue;
      own.copy_(other);
      break;
    }
  }
  return with_made(units, originals);
}

Changed category_swap(const Network& network, const Originals& originals, const Settings& settings) {
  std::vector<Column> categories;
  for (const Column& column : columns_of(network.changed().about))
    if (column.category && column.width > 1) categories.push_back(column);
  at::Tensor units = originals.units.clone();
  for (int64_t row = 0; row < units.size(0) && !categories.empty(); ++row) {
    Random random = random_for(settings.seed, "category-swap", originals.batch.samples[size_t(row)], settings.attempt);
    const Column& column = categories[random.below(categories.size())];
    at::Tensor own = units[row].narrow(0, column.first, column.width);
    const auto now = own.argmax(0).item<int64_t>();
    const auto other = (now + 1 + int64_t(random.below(uint64_t(column.width - 1)))) % column.width;
    // Values of a category are 0 and 1 of their range, whatever they were encoded as.
    own.zero_()[other] = 1;
  }
  return with_made(units, originals);
}

}  // namespace netmend::inputs
