// netmend diff: which parameters, layers and units differ between two models, and by how much.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "edits/model_files.h"
#include "netmend/shared.h"
#include "netmend/terminal.h"

namespace netmend::app {
namespace {

Json amount_json(const edits::Amount& amount) {
  return {{"values", amount.values},
          {"changed", amount.changed},
          {"largest", amount.largest},
          {"relative", amount.relative()}};
}

template <typename Row, typename Extra>
Json rows_json(const std::vector<Row>& rows, const Extra& extra) {
  Json list = Json::array();
  for (const Row& row : rows) {
    Json json = {{"name", row.name}};
    extra(json, row);
    json.update(amount_json(row.amount));
    list.push_back(std::move(json));
  }
  return list;
}

Json to_json(const DiffOptions& options, const edits::Difference& found) {
  Json json = {{"before", options.before}, {"after", options.after}, {"parameters_compared", found.parameters}};
  json["total"] = amount_json(found.total);
  json["parameters"] = rows_json(found.changed, [](Json& json, const edits::ParameterChange& row) {
    json["layer"] = row.layer.empty() ? Json() : Json(row.layer);
    json["shape"] = row.shape;
  });
  json["layers"] = rows_json(found.layers, [](Json& json, const edits::LayerChange& row) {
    json["units"] = row.units, json["units_changed"] = row.units_changed;
  });
  json["units"] = rows_json(found.units, [](Json& json, const edits::UnitChange& row) { json["layer"] = row.layer; });
  return json;
}

std::string relative_text(const edits::Amount& amount) {
  double percent = 100 * amount.relative();
  return std::isinf(percent) ? "from 0" : fmt::format("{:.3g} %", percent);
}

template <typename Row, typename Extra>
void print_rows(const char* title, const std::vector<Row>& rows, int count, const Extra& extra) {
  if (rows.empty()) return;
  Table table{{title, "values changed", "largest", "relative", ""}, "lrrrl"};
  for (size_t i = 0; i < std::min(rows.size(), size_t(count)); ++i)
    table.rows.push_back(
        {rows[i].name, fmt::format("{} of {}", with_commas(rows[i].amount.changed), with_commas(rows[i].amount.values)),
         fmt::format("{:.3g}", rows[i].amount.largest), relative_text(rows[i].amount), extra(rows[i])});
  print("\n");
  print_table(table);
  if (rows.size() > size_t(count))
    print("  … and {} more (--count, --json)\n", with_commas(int64_t(rows.size()) - count));
}

void print_text(const DiffOptions& options, const edits::Difference& found) {
  if (found.changed.empty()) {
    print("  no weight differs: {}, {}\n", counted(int64_t(found.parameters), "parameter"),
          counted(found.total.values, "value"));
    return;
  }
  print_wrapped(fmt::format("{} → {}: {} of {} values differ, in {} of {} and {}; relative change {}", options.before,
                            options.after, with_commas(found.total.changed), with_commas(found.total.values),
                            found.changed.size(), counted(int64_t(found.parameters), "parameter"),
                            counted(int64_t(found.units.size()), "unit"), relative_text(found.total)),
                2);
  print_rows("layer", found.layers, options.count,
             [](const edits::LayerChange& row) { return fmt::format("{} of {} units", row.units_changed, row.units); });
  print_rows("unit", found.units, options.count, [](const edits::UnitChange&) { return ""; });
  print_rows("parameter", found.changed, options.count,
             [](const edits::ParameterChange& row) { return shape_text(row.shape); });
}

}  // namespace

int diff(const Common& common, const DiffOptions& options) {
  const edits::Difference found = edits::compare_files(options.before, options.after);
  const int64_t written =
      options.product.empty() ? 0 : edits::write_edits_between(options.before, options.after, options.product);
  if (common.json) return print_json(to_json(options, found)), 0;
  print_text(options, found);
  if (!options.product.empty()) print("\n  {}: {}\n", printable(options.product), counted(written, "edit"));
  return 0;
}

}  // namespace netmend::app
