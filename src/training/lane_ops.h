// The operators of a network that is trained sixteen inputs at a time: each knows its way forward and its way back.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "ops/input_lanes.h"
#include "training/parameters.h"

namespace netmend::training {

using ops::kInputs, ops::LanePool, ops::Plane, ops::Vectors;

/// What flows between operators: images in lanes, or rows of numbers, one for each input.
struct LaneValue {
  bool image = false;
  Plane plane;                 ///< of an image, with the margin that those who read it need
  int64_t width = 0;           ///< of a row
  int gradient = -1;           ///< number of the place where its gradient stands; several values may share one
  bool differentiable = true;  ///< whether anyone wants its gradient; nobody wants that of the network's input
};

/// Memory of one pass; used again and again.
struct LaneRoom {
  int64_t groups = 0;  ///< of sixteen inputs
  std::vector<at::Tensor> values, gradients;
  std::vector<at::Tensor> own;  ///< what an operator keeps from its way forward
};

/// One pass over some inputs, forward and back.
struct LanePass {
  LaneRoom& room;
  const std::vector<LaneValue>& values;
  const std::vector<Plane>& planes;  ///< of gradients, by their number
  Parameters& parameters;
  at::Tensor& gradient;  ///< flat, of all parameters
  Vectors vectors = Vectors::kNone;
  int64_t inputs = 0, groups = 0;
  uint64_t seed = 0;
  bool add = false;           ///< to the gradient of the parameters
  std::vector<char> written;  ///< gradients that hold something already

  int64_t inputs_in(int64_t group) const { return std::min(kInputs, inputs - group * kInputs); }
  const float* weight(int64_t offset) const {
    return offset < 0 ? nullptr : static_cast<const float*>(parameters.values().data_ptr()) + offset;
  }
  float* parameter_gradient(int64_t offset) const { return static_cast<float*>(gradient.data_ptr()) + offset; }
  const Plane& plane(int value) const { return values[size_t(value)].plane; }
  const Plane& gradient_plane(int value) const { return planes[size_t(values[size_t(value)].gradient)]; }
  /// Where a group's image begins, margin included.
  float* image(int value, int64_t group) const {
    return static_cast<float*>(room.values[size_t(value)].data_ptr()) + group * plane(value).all();
  }
  float* gradient_image(int value, int64_t group) const {
    return static_cast<float*>(room.gradients[size_t(values[size_t(value)].gradient)].data_ptr()) +
           group * gradient_plane(value).all();
  }
  at::Tensor& row(int value) const { return room.values[size_t(value)]; }
  at::Tensor& gradient_row(int value) const { return room.gradients[size_t(values[size_t(value)].gradient)]; }
  /// Whether a gradient is to be added to what others wrote; from now on it holds something.
  bool joins(int value) {
    char& there = written[size_t(values[size_t(value)].gradient)];
    const bool before = there;
    there = true;
    return before;
  }
};

class LaneOp {
 public:
  virtual ~LaneOp() = default;
  /// Called once, when the sizes of all values are known.
  virtual void prepare(const std::vector<LaneValue>&, const std::vector<Plane>&) {}
  virtual void forward(LanePass& pass) const = 0;
  virtual void backward(LanePass& pass) const = 0;
  virtual bool takes_relu() const { return true; }

  int in = -1, other = -1, out = -1;  ///< values
  size_t number = 0;                  ///< among the operators
  bool relu = false;                  ///< what it makes goes through relu
};

struct LaneConv {
  int64_t weight = -1, bias = -1;  ///< places among the parameters
  int64_t channels = 0, units = 0, height = 1, width = 1, stride_y = 1, stride_x = 1, top = 0, left = 0;
  int64_t products() const { return channels * height * width; }
};
struct LaneNorm {
  int64_t scale = -1, bias = -1;
  size_t mean = 0, variance = 0;  ///< among the statistics
  double epsilon = 1e-5, momentum = 0.9;
};
struct LaneDense {
  int64_t weight = -1, bias = -1, inputs = 0, units = 0;
  bool inputs_first = false;  ///< the matrix is inputs × units
};
struct LaneDropout {
  double ratio = 0;
  uint64_t step = 0;  ///< the node's place in the order in which nodes run
};

/// Which margin a convolution needs around what it reads, and around the gradient of what it makes.
Plane conv_margin(const LaneConv& form, const Plane& in, const Plane& out);
Plane conv_gradient_margin(const LaneConv& form, const Plane& in, const Plane& out);

std::unique_ptr<LaneOp> lane_conv(const LaneConv& form);
std::unique_ptr<LaneOp> lane_pool(const LanePool& form);
std::unique_ptr<LaneOp> lane_norm(const LaneNorm& form);
std::unique_ptr<LaneOp> lane_add();
std::unique_ptr<LaneOp> lane_mean();
std::unique_ptr<LaneOp> lane_flatten();
std::unique_ptr<LaneOp> lane_dense(const LaneDense& form);
std::unique_ptr<LaneOp> lane_dropout(const LaneDropout& form);

}  // namespace netmend::training
