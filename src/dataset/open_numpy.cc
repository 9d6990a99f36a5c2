// Specs whose data lies in NumPy's files.
#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "dataset/array_dataset.h"
#include "dataset/npy.h"
#include "dataset/npz.h"
#include "dataset/readers.h"
#include "dataset/spec.h"

namespace netmend::dataset {

namespace {

/// The name that people usually give; "" when none is there.
std::string usual(const std::vector<std::string>& names, std::initializer_list<const char*> candidates) {
  for (const char* candidate : candidates)
    for (const std::string& name : names)
      if (lower(name) == candidate) return name;
  return "";
}

std::vector<std::string> input_names(const Npz& file, const Spec& spec, const std::string& labels) {
  if (auto given = spec.options.find("x"); given != spec.options.end()) return split_list(given->second);
  std::vector<std::string> names = file.names();
  std::erase(names, labels);
  std::string known = usual(names, {"x", "images", "inputs", "data", "features", "x_test", "arr_0"});
  if (!known.empty()) return {known};
  if (names.size() == 1) return names;
  throw InputError(
      fmt::format("{} holds several arrays: {}", spec.rest, join(file.names(), ", ")),
      fmt::format("Say which are inputs and which are labels: npz:{},x={},y=…", spec.rest, file.names()[0]));
}

}  // namespace

std::unique_ptr<Dataset> open_npz(const Spec& spec) {
  Npz file(open_bytes(spec.rest));
  auto given = spec.options.find("y");
  std::string labels_name = given != spec.options.end()
                                ? given->second
                                : usual(file.names(), {"y", "labels", "label", "targets", "target", "y_test"});
  std::vector<ArrayInput> inputs;
  for (const std::string& name : input_names(file, spec, labels_name)) {
    Array array = file.read(name);
    inputs.push_back({name, array, guess_form(array)});
  }
  std::optional<LabelArray> labels;
  if (!labels_name.empty()) labels = read_label_array(file.content(labels_name), spec.options);
  return std::make_unique<ArrayDataset>(std::move(inputs), labels, spec.options, std::vector{spec.rest});
}

std::unique_ptr<Dataset> open_npy(const Spec& spec) {
  Array array = read_npy(open_bytes(spec.rest));
  std::vector<std::string> files = {spec.rest};
  std::optional<LabelArray> labels;
  if (auto given = spec.options.find("y"); given != spec.options.end()) {
    labels = read_label_array(open_bytes(given->second), spec.options);
    files.push_back(given->second);
  }
  return std::make_unique<ArrayDataset>(std::vector<ArrayInput>{{"x", array, guess_form(array)}}, labels, spec.options,
                                        files);
}

}  // namespace netmend::dataset
