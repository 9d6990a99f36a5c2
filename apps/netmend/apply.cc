// netmend apply: edits into a model's weights, or back out of them.
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "edits/edit_file.h"
#include "netmend/show.h"
#include "onnx/reader.h"
#include "onnx/writer.h"

namespace netmend::app {
namespace {

/// Reverting starts from the changed model, whose checksum the file does not know; its values are compared anyway.
void require_same_model(const ApplyOptions& options, const edits::EditFile& file) {
  if (options.revert || file.checksum.empty()) return;
  std::string found = file_checksum(options.model);
  if (found == file.checksum) return;
  throw InputError(fmt::format("{} was made for {} with checksum {}, {} has {}", options.edits,
                               file.model.empty() ? "a model" : file.model, file.checksum, options.model, found),
                   "Give the model that the edits were made for; netmend diff shows what differs between two models.");
}

std::set<std::string> unit_names(const edits::EditFile& file) {
  std::set<std::string> units;
  for (const edits::Edit& edit : file.edits)
    if (!edit.unit.empty()) units.insert(edit.unit);
  return units;
}

void report(const Common& common, const ApplyOptions& options, const edits::EditFile& file) {
  std::set<std::string> units = unit_names(file), parameters;
  for (const edits::Edit& edit : file.edits) parameters.insert(edit.parameter);
  if (common.json)
    return print_json({{"model", options.product},
                       {"edits", file.edits.size()},
                       {"reverted", options.revert},
                       {"units", units},
                       {"parameters", parameters}});
  fmt::print("  {}: {} {}, {}, {}\n", printable(options.product), counted(int64_t(file.edits.size()), "edit"),
             options.revert ? "taken back" : "applied", counted(int64_t(parameters.size()), "parameter"),
             counted(int64_t(units.size()), "unit"));
}

}  // namespace

int apply(const Common& common, const ApplyOptions& options) {
  edits::EditFile file = edits::read_edits(options.edits);
  model::Graph graph = onnx::read_model(options.model);
  require_same_model(options, file);
  edits::require_fit(graph, file);
  (options.revert ? edits::revert : edits::apply)(graph, file.edits);
  onnx::write_model(graph, options.product);
  report(common, options, file);
  return 0;
}

}  // namespace netmend::app
