// Confident learning's counts: how many labels of one class are confidently of another, what that says of all labels
// (the joint of given and true classes, noise rates), and which labels four filters take out. Northcutt, Jiang, Chuang:
// Confident Learning: Estimating Uncertainty in Dataset Labels, JAIR 2021; as cleanlab does it. Probabilities must come
// from networks that were not trained on these labels.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace netmend::selection {

using Matrix = std::vector<std::vector<double>>;  ///< rows: given class

struct ConfidentJoint {
  std::vector<double> thresholds;            ///< mean probability of a class where the label says so; 2 without inputs
  std::vector<std::vector<int64_t>> counts;  ///< given × confident class; the diagonal at least 1
  int64_t counted = 0;                       ///< inputs that are confidently of some class
  std::vector<std::vector<int64_t>> calibrated;  ///< scaled to the number of labels, whole numbers
  Matrix joint;                                  ///< of given and true class
  Matrix noise;                                  ///< given × true: P(given | true)
  Matrix inverse;                                ///< given × true: P(true | given)
  std::vector<double> prior;                     ///< of true classes
  int64_t issues() const;                        ///< off the diagonal of the counts
  int64_t estimated() const;                     ///< off the diagonal of the calibrated counts
};

/// `probabilities`: inputs × classes, row by row; `labels`: the given ones, in 0 … classes − 1.
ConfidentJoint confident_joint(std::span<const double> probabilities, std::span<const int64_t> labels, int64_t classes);

/// Which labels are taken out: `noise-rate`, `by-class`, `both`, `confident`. In the order of the normalised margin,
/// the most convincing first. Throws InputError with the nearest.
std::vector<int64_t> filtered(const std::string& filter, const ConfidentJoint& joint,
                              std::span<const double> probabilities, std::span<const int64_t> labels);
const std::vector<std::string>& label_filters();

}  // namespace netmend::selection
