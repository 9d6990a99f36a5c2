// What can be found out about a model and its data without asking: metadata in the file, files beside it, names of
// folders and columns, what built-in readers know.
#pragma once

#include <string>
#include <vector>

#include "dataset/spec.h"
#include "model/graph.h"
#include "session/toml_edit.h"

namespace netmend::preflight {

/// Class names and where they were found.
struct FoundClasses {
  std::vector<std::string> names;
  std::string source;
};
/// From the model's metadata (names, class_names, classes, labels; JSON or as Python prints lists and dictionaries) and
/// files beside it (labels.txt, classes.txt, classes.json, config.json with id2label). Empty when there are none.
FoundClasses find_classes(const model::Graph& graph, const std::string& model);
/// A list or a dictionary of words in JSON or Python's form; empty when `text` is neither.
std::vector<std::string> parse_words(const std::string& text);

/// Values of `input.NAME`: layout, color, scale, mean, std, resize.
std::vector<session::Fact> find_preprocessing(const model::Graph& graph, const std::string& model);

/// The train and test parts of a folder of images that has such folders inside: `images:cifar` → cifar/train,
/// cifar/test.
dataset::Splits find_splits(const dataset::Spec& spec);

}  // namespace netmend::preflight
