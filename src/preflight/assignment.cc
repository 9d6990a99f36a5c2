#include "preflight/assignment.h"

#include <cmath>
#include <limits>

namespace netmend::preflight {

std::vector<int64_t> largest_assignment(const std::vector<std::vector<double>>& worth) {
  const size_t n = worth.size();
  // Rows are added one at a time; each finds the cheapest way to a free column, along which earlier rows move over.
  // Column 0 stands for the row that is being added; rows and columns count from 1.
  std::vector<double> row_price(n + 1), column_price(n + 1);
  std::vector<size_t> row_of(n + 1), came_from(n + 1);
  for (size_t row = 1; row <= n; ++row) {
    row_of[0] = row;
    size_t column = 0;
    std::vector<double> cost(n + 1, std::numeric_limits<double>::infinity());
    std::vector<bool> done(n + 1);
    while (row_of[column] != 0) {
      done[column] = true;
      size_t next = 0, from = row_of[column];
      double least = std::numeric_limits<double>::infinity();
      for (size_t c = 1; c <= n; ++c) {
        if (done[c]) continue;
        double here = -worth[from - 1][c - 1] - row_price[from] - column_price[c];
        if (here < cost[c]) cost[c] = here, came_from[c] = column;
        if (cost[c] < least) least = cost[c], next = c;
      }
      for (size_t c = 0; c <= n; ++c) {
        if (done[c])
          row_price[row_of[c]] += least, column_price[c] -= least;
        else
          cost[c] -= least;
      }
      column = next;
    }
    for (; column != 0; column = came_from[column]) row_of[column] = row_of[came_from[column]];
  }
  std::vector<int64_t> column_of(n);
  for (size_t c = 1; c <= n; ++c) column_of[row_of[c] - 1] = int64_t(c) - 1;
  return column_of;
}

std::vector<int64_t> best_assignment(const observers::PredictionSettings& settings,
                                     const std::vector<observers::SampleRow>& rows) {
  const size_t classes = settings.classes.size();
  std::vector<std::vector<double>> worth(classes, std::vector<double>(classes));
  for (size_t c = 0; c < classes; ++c) worth[c][c] = 0.5;  // what nothing speaks against stays where it is
  for (const observers::SampleRow& row : rows)
    if (!std::isnan(row.predicted)) ++worth[size_t(row.label)][size_t(row.predicted)];
  return largest_assignment(worth);
}

}  // namespace netmend::preflight
