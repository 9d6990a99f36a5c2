// A data set whose inputs and labels lie in arrays: IDX, CIFAR, NPY, NPZ.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dataset/array.h"
#include "dataset/dataset.h"
#include "dataset/labels.h"
#include "dataset/transform.h"

namespace netmend::dataset {

struct ArrayInput {
  std::string name;
  Array array;
  Form form = Form::kPlain;
};

class ArrayDataset : public Dataset {
 public:
  /// `options` are the spec's, with the source's defaults filled in.
  ArrayDataset(std::vector<ArrayInput> inputs, std::optional<LabelArray> labels,
               const std::map<std::string, std::string>& options, std::vector<std::string> files = {});

  Batch read(std::span<const int64_t> samples) const override;
  Display display(int64_t sample) const override;

 private:
  struct Input {
    Array array;
    Transform transform;
    bool ids = false;
  };
  void add_input(ArrayInput input, const std::map<std::string, std::string>& options);
  static void give_shape(ArrayInput& input, const std::vector<int64_t>& shape);
  at::Tensor read_input(const Input& input, std::span<const int64_t> samples) const;

  std::vector<Input> inputs_;
  std::optional<Labels> labels_;
};

/// What the axes of an array of samples probably are: images are bytes in rows and columns, or have 1, 3 or 4 channels
/// in front or at the end.
Form guess_form(const Array& array);

/// The values of an array's row as those of a table, for people; columns without names are numbered. Empty for what is
/// no row, and for more values than there are here.
std::vector<std::pair<std::string, std::string>> row_values(const Feature& feature, const std::vector<double>& values);

}  // namespace netmend::dataset
