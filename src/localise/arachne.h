// Which single weights are to blame: J. Sohn, S. Kang, S. Yoo, "Arachne: Search-Based Repair of Deep Neural Networks"
// (TOSEM 2023). A weight matters by its forward impact (its share in the input of its unit, times the gradient of the
// output with respect to the unit) and by the gradient of the loss at it. Both are taken on failing inputs and compared
// with passing ones; the weights that no other beats in both (the Pareto front) are blamed.
//
// What differs from the published code: shares are absolute and of one input each, also in convolutions; where nothing
// comes in the share is 0; positions keep their order. The two factors of the forward impact are multiplied input by
// input; as_published their means over inputs are, and passing inputs are drawn evenly over predicted classes.
#pragma once

#include <cstdint>
#include <vector>

#include "model/layer.h"
#include "observers/predictions.h"
#include "stream/pass.h"

namespace netmend::localise {

struct BlamedWeight {
  size_t layer = 0;                 ///< in the list of layers
  int64_t position = 0;             ///< flat, in the layer's `weight` constant
  double impact = 0, gradient = 0;  ///< failing against passing inputs
};

struct ArachneOptions {
  bool as_published = false;
  std::vector<int64_t> passing_classes = {};  ///< how each passing input is predicted; read as_published
};

/// The front, largest gradient first. Of recurrent layers the weights that read their inputs are looked at. Layers that
/// are neither dense, convolutional nor recurrent, whose weights are shared, quantised or computed, are passed over;
/// `passed_over` names them. Inputs beyond a few hundred a side are sampled evenly.
std::vector<BlamedWeight> arachne(const stream::Subject& subject, const observers::PredictionSettings& settings,
                                  const std::vector<model::Layer>& layers, const std::vector<int64_t>& failing,
                                  const std::vector<int64_t>& passing, int jobs,
                                  std::vector<std::string>* passed_over = nullptr, const ArachneOptions& options = {});

/// Indices of points that no other point beats or equals in both coordinates while being better in one.
std::vector<size_t> pareto_front(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace netmend::localise
