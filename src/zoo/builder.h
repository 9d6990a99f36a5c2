// Writes a network down node by node, as the architectures in zoo.cc are told: each call adds an operator with its
// fresh parameters and gives back the value it makes.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "model/graph.h"
#include "zoo/init.h"

namespace netmend::zoo {

class Builder {
 public:
  Builder(std::string name, Scheme scheme, uint64_t seed);

  /// Axis 0 is the batch, of any size; `shape` is the rest.
  model::ValueId input(const std::string& name, std::vector<int64_t> shape,
                       model::Element type = model::Element::kFloat);

  struct Window {
    int64_t kernel = 3, stride = 1, padding = 0;
    bool bias = true;
  };
  /// Two-dimensional, square.
  model::ValueId conv(const std::string& name, model::ValueId x, int64_t channels, int64_t units, Window window);
  /// Over the last of three axes.
  model::ValueId conv1d(const std::string& name, model::ValueId x, int64_t channels, int64_t units, int64_t width);
  model::ValueId dense(const std::string& name, model::ValueId x, int64_t inputs, int64_t units);
  model::ValueId batch_norm(const std::string& name, model::ValueId x, int64_t channels);
  model::ValueId embedding(const std::string& name, model::ValueId ids, int64_t vocabulary, int64_t width);

  model::ValueId relu(model::ValueId x);
  model::ValueId max_pool(model::ValueId x);  ///< 2×2
  model::ValueId dropout(model::ValueId x, float ratio);
  model::ValueId flatten(model::ValueId x);
  model::ValueId add(const std::string& name, model::ValueId a, model::ValueId b);
  /// An operator without parameters, named after its first input.
  model::ValueId plain(const std::string& op, std::vector<model::ValueId> inputs,
                       std::map<std::string, model::Attribute, std::less<>> attributes = {});

  /// The graph with `result` (batch × units) as its output `name`.
  model::Graph finish(model::ValueId result, const std::string& name, int64_t units);

 private:
  model::ValueId constant(const std::string& name, at::Tensor value);
  model::ValueId weight(const std::string& name, at::IntArrayRef shape, Fan fan);
  model::ValueId node(const std::string& name, const std::string& op, std::vector<model::ValueId> inputs,
                      std::map<std::string, model::Attribute, std::less<>> attributes = {});
  model::Graph graph_;
  Scheme scheme_;
  uint64_t seed_, streams_ = 0;
};

}  // namespace netmend::zoo
