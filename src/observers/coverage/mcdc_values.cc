#include "observers/coverage/mcdc_values.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "observers/coverage/materials.h"

namespace netmend::observers {
namespace {

/// Smallest and largest size of some values.
struct Sizes {
  float low = INFINITY, high = -INFINITY;
  void add(float size) { low = std::min(low, size), high = std::max(high, size); }
  bool any() const { return high >= low; }
};

/// One pair of connected layers.
class PairTable {
 public:
  PairTable(const UnitBatch& kept, const UnitSpace& space, size_t lower, size_t upper, double factor)
      : kept_(kept),
        from_(space.first(lower)),
        to_(space.first(upper)),
        lower_(space.units(lower)),
        upper_(space.units(upper)),
        factor_(float(factor)),
        covered_(size_t(lower_ * upper_)) {
    std::map<std::string, std::vector<int64_t>> groups;
    for (int64_t row = 0; row < kept.count(); ++row) {
      std::string pattern(size_t(lower_), '-');
      bool numbers = true;
      for (int64_t i = 0; i < lower_; ++i) {
        numbers = numbers && std::isfinite(below(row, i));
        if (below(row, i) > 0) pattern[size_t(i)] = '+';
      }
      for (int64_t j = 0; j < upper_; ++j) numbers = numbers && std::isfinite(above(row, j));
      if (numbers) groups[pattern].push_back(row);
    }
    groups_ = {groups.begin(), groups.end()};
  }

  int64_t count(McdcKind kind) {
    if (kind == McdcKind::kSignValue)
      sign_value();
    else
      for (const auto& [pattern, rows] : groups_)
        if (rows.size() > 1) kind == McdcKind::kValueSign ? value_sign(rows) : value_value(rows);
    return std::count(covered_.begin(), covered_.end(), true);
  }

 private:
  float below(int64_t row, int64_t i) const { return kept_.input(row)[from_ + i]; }
  float above(int64_t row, int64_t j) const { return kept_.input(row)[to_ + j]; }
  bool changes(float small, float large) const { return large > 0 && large >= factor_ * small; }
  bool changes(const Sizes& a, const Sizes& b) const {
    return a.any() && b.any() && (changes(a.low, b.high) || changes(b.low, a.high));
  }
  void cover(int64_t i, int64_t j) { covered_[size_t(i * upper_ + j)] = true; }

  void value_sign(const std::vector<int64_t>& rows) {
    std::vector<Sizes> sides(static_cast<size_t>(2 * lower_));
    for (int64_t j = 0; j < upper_; ++j) {
      std::fill(sides.begin(), sides.end(), Sizes());
      for (int64_t row : rows)
        for (int64_t i = 0; i < lower_; ++i) sides[size_t(2 * i + (above(row, j) > 0))].add(std::abs(below(row, i)));
      for (int64_t i = 0; i < lower_; ++i)
        if (changes(sides[size_t(2 * i)], sides[size_t(2 * i + 1)])) cover(i, j);
    }
  }

  /// Pairs of inputs of one group and one sign of the upper unit, sorted by the size of the lower unit: for each the
  /// extremes of all that are smaller by the factor are known.
  void value_value(const std::vector<int64_t>& rows) {
    std::vector<int64_t> order = rows;
    for (int64_t i = 0; i < lower_; ++i) {
      std::sort(order.begin(), order.end(),
                [&](int64_t a, int64_t b) { return std::abs(below(a, i)) < std::abs(below(b, i)); });
      if (!changes(std::abs(below(order.front(), i)), std::abs(below(order.back(), i)))) continue;
      for (int64_t j = 0; j < upper_; ++j) {
        Sizes smaller[2];
        size_t next = 0;
        for (int64_t row : order) {
          while (next < order.size() && changes(std::abs(below(order[next], i)), std::abs(below(row, i)))) {
            smaller[above(order[next], j) > 0].add(std::abs(above(order[next], j)));
            ++next;
          }
          Sizes own;
          own.add(std::abs(above(row, j)));
          if (!changes(smaller[above(row, j) > 0], own)) continue;
          cover(i, j);
          break;
        }
      }
    }
  }

  void sign_value() {
    // By group, upper unit and its sign.
    std::unordered_map<std::string, size_t> places;
    std::vector<std::vector<Sizes>> sizes(groups_.size(), std::vector<Sizes>(static_cast<size_t>(2 * upper_)));
    for (size_t g = 0; g < groups_.size(); ++g) {
      places[groups_[g].first] = g;
      for (int64_t row : groups_[g].second)
        for (int64_t j = 0; j < upper_; ++j) sizes[g][size_t(2 * j + (above(row, j) > 0))].add(std::abs(above(row, j)));
    }
    for (size_t g = 0; g < groups_.size(); ++g) {
      std::string pattern = groups_[g].first;
      for (int64_t i = 0; i < lower_; ++i) {
        if (pattern[size_t(i)] == '+') continue;  // each two groups once
        pattern[size_t(i)] = '+';
        const auto other = places.find(pattern);
        pattern[size_t(i)] = '-';
        if (other == places.end()) continue;
        for (int64_t j = 0; j < upper_; ++j)
          for (size_t sign : {0, 1})
            if (changes(sizes[g][size_t(2 * j) + sign], sizes[other->second][size_t(2 * j) + sign])) cover(i, j);
      }
    }
  }

  const UnitBatch& kept_;
  int64_t from_, to_, lower_, upper_;
  float factor_;
  std::vector<bool> covered_;
  std::vector<std::pair<std::string, std::vector<int64_t>>> groups_;
};

CriterionRow row_of(const char* name, const char* full_name, const char* asks,
                    MadeCriteria (*make)(const CriterionMaterials&)) {
  return {.name = name,
          .full_name = full_name,
          .asks = asks,
          .reference = "Sun, Huang, Kroening: Testing Deep Neural Networks, 2018",
          .parameter = {"factor", 2, false, 1},
          .needs = {.layers = 2},
          .memory = CriterionRow::Memory::kPerInput,
          .asked_for = true,
          .make = make};
}

}  // namespace

ValueMcdc::ValueMcdc(SpacePtr space, McdcKind kind, double factor)
    : space_(std::move(space)), kind_(kind), factor_(factor), traces_(space_, 0, space_->layers().size()) {}

std::string ValueMcdc::name() const {
  return kind_ == McdcKind::kValueSign ? "VSC" : kind_ == McdcKind::kSignValue ? "SVC" : "VVC";
}

Figure ValueMcdc::figure(const Tally& tally) const {
  const UnitBatch& kept = dynamic_cast<const TraceTally&>(tally).kept;
  Figure figure{name(), {{"factor", factor_}}};
  figure.total = 0;
  for (const auto& [lower, upper] : space_->connections()) {
    Figure::Part part{space_->layers()[lower].name + " → " + space_->layers()[upper].name};
    part.total = double(space_->units(lower)) * double(space_->units(upper));
    part.covered = double(PairTable(kept, *space_, lower, upper, factor_).count(kind_));
    figure.covered += part.covered, figure.total += part.total;
    figure.layers.push_back(std::move(part));
  }
  figure.value = figure.total > 0 ? figure.covered / figure.total : 0;
  if (figure.layers.empty()) figure.notes.push_back("needs two connected layers at least");
  return figure;
}

CriterionRow vsc_row() {
  return row_of("VSC", "value-sign MC/DC", "each unit's value decides signs in a layer that reads it",
                [](const CriterionMaterials& m) {
                  return make_criterion<ValueMcdc>(m.space, McdcKind::kValueSign, m.parameter);
                });
}
CriterionRow svc_row() {
  return row_of("SVC", "sign-value MC/DC", "each unit's sign decides values in a layer that reads it",
                [](const CriterionMaterials& m) {
                  return make_criterion<ValueMcdc>(m.space, McdcKind::kSignValue, m.parameter);
                });
}
CriterionRow vvc_row() {
  return row_of("VVC", "value-value MC/DC", "each unit's value decides values in a layer that reads it",
                [](const CriterionMaterials& m) {
                  return make_criterion<ValueMcdc>(m.space, McdcKind::kValueValue, m.parameter);
                });
}

}  // namespace netmend::observers
