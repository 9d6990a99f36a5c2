// How relevance is shared out by operators with weights: the rules of layer-wise relevance propagation (Bach et al.
// 2015, Montavon et al. 2017 and 2019), and which layers use which.
#pragma once

#include <string>

namespace netmend::explain {

struct Rule {
  enum Kind {
    kZ,          ///< in proportion to the contributions x·w; a bias keeps its share
    kEpsilon,    ///< the same with a larger denominator: weak sums keep some of their relevance
    kGamma,      ///< contributions of the output's own sign count 1 + parameter times
    kAlphaBeta,  ///< parameter α to positive, 1 − α to negative contributions, each part shared out by itself
    kFlat,       ///< evenly over the inputs that are connected
    kW2,         ///< in proportion to w²
  } kind = kZ;
  double parameter = 0;
  bool spread_bias = false;  ///< a bias gives its share to its inputs, to each as much, instead of keeping it
  bool operator==(const Rule&) const = default;
};

/// One rule for each kind of layer.
struct Rules {
  Rule dense, conv;  ///< conv: convolutions of any kind; dense: products with a matrix
  Rule first;        ///< layers that read the network's inputs
};

/// What becomes of a bias's share, by name: `keep` (false), or `spread` (true; the paper of DeepImportance has it so,
/// its program keeps it). Rules that do not look at contributions have no such share. Throws InputError.
bool parse_bias(const std::string& text);

/// `z` (the default, DeepImportance's choice), `epsilon[:0.01]`, `gamma[:0.25]`, `alpha-beta[:3]`, `flat`, `w2`,
/// `composite` (epsilon for dense, α = 1 for convolutions, flat for the first layer), or by kind of layer:
/// `dense=epsilon,conv=gamma:0.1,first=flat`; what is not named stays z. Throws InputError with the nearest name.
Rules parse_rules(const std::string& text);
std::string rules_text(const Rules& rules);

}  // namespace netmend::explain
