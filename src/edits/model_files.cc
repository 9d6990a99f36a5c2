#include "edits/model_files.h"

#include <ATen/ATen.h>

#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/file.h"
#include "base/npy.h"
#include "edits/difference.h"
#include "edits/edit_file.h"
#include "executor/layers.h"
#include "model/numpy_type.h"
#include "onnx/reader.h"
#include "onnx/writer.h"

namespace netmend::edits {
namespace {

/// Reverting starts from the changed model, whose checksum the file does not know; its values are compared anyway.
void require_same_model(const std::string& model, const std::string& edit_file, const EditFile& file) {
  if (file.checksum.empty()) return;
  const std::string found = file_checksum(model);
  if (found == file.checksum) return;
  throw InputError(fmt::format("{} was made for {} with checksum {}, {} has {}", edit_file,
                               file.model.empty() ? "a model" : file.model, file.checksum, model, found),
                   "Give the model that the edits were made for; netmend diff shows what differs between two models.");
}

/// By name: everything stored as a parameter, and constants among the nodes that are used as one.
std::map<std::string, model::ValueId> weights_of(const model::Graph& graph) {
  std::map<std::string, model::ValueId> names;
  for (const auto& [id, constant] : graph.constants)
    if (constant.origin.kind == model::Origin::kInitializer) names[graph.values[size_t(id)].name] = id;
  for (model::ValueId id : executor::find_parameters(graph)) names[graph.values[size_t(id)].name] = id;
  return names;
}

std::string npy_member(const model::Constant& constant) {
  // bfloat16 is the one type NumPy lacks; every value of it is a float32.
  const model::Element type = model::numpy_type(constant.stored).empty() ? model::Element::kFloat : constant.stored;
  return npy_header(model::numpy_type(type), constant.value.sizes()) + model::encode(type, constant.value);
}

}  // namespace

AppliedEdits apply_file(const std::string& model, const std::string& edit_file, const std::string& product,
                        bool revert_them) {
  const EditFile file = read_edits(edit_file);
  model::Graph graph = onnx::read_model(model);
  if (!revert_them) require_same_model(model, edit_file, file);
  require_fit(graph, file);
  (revert_them ? revert : apply)(graph, file.edits);
  onnx::write_model(graph, product);
  AppliedEdits done;
  done.edits = int64_t(file.edits.size());
  for (const Edit& edit : file.edits) {
    if (!edit.unit.empty()) done.units.insert(edit.unit);
    done.parameters.insert(edit.parameter);
  }
  return done;
}

Difference compare_files(const std::string& before, const std::string& after) {
  const model::Graph a = onnx::read_model(before), b = onnx::read_model(after);
  return compare(a, b, executor::find_layers(a));
}

int64_t write_edits_between(const std::string& before, const std::string& after, const std::string& product) {
  const model::Graph a = onnx::read_model(before), b = onnx::read_model(after);
  const std::string name = std::filesystem::path(before).filename().string();
  const EditFile file = describe(a, edits_between(a, b, executor::find_layers(a)), name, file_checksum(before));
  write_edits(file, product);
  return int64_t(file.edits.size());
}

WrittenWeights write_weights(const std::string& model, const std::string& product) {
  const model::Graph graph = onnx::read_model(model);
  const std::map<std::string, model::ValueId> names = weights_of(graph);
  WrittenWeights done{int64_t(names.size()), 0};
  write_file(product, [&](std::ostream& out) {
    ZipWriter zip(out);
    for (const auto& [name, id] : names) {
      const model::Constant& constant = graph.constants.at(id);
      zip.add(name + ".npy", npy_member(constant));
      done.values += constant.value.numel();
    }
    zip.finish();
  });
  return done;
}

}  // namespace netmend::edits
