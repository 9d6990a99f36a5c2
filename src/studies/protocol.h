// How the study of importance-driven coverage is done: as the authors' program did it in two of its states, and
// corrected. One structure, so that differences can be switched one at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace netmend::studies {

/// How combinations are counted.
struct IdcForm {
  bool swapped = false;       ///< clusters in the order of units' numbers, values in that of their relevance
  bool layer_before = false;  ///< tests are read one layer before the one where units and clusters are from
  bool rounded = false;       ///< clusters as the authors' program cuts them (observers::QuantiseOptions)
  enum Zeros { kKept, kOutOfDense, kOut } zeros = kKept;  ///< before clustering
  bool by_class = true;    ///< units, clusters and tests of a class, averaged over classes; else all at once
  bool right_only = true;  ///< clusters from training inputs that are predicted correctly; else from all
  int64_t clusters = 0;    ///< exactly so many a unit; 0: by silhouette
  bool operator==(const IdcForm&) const = default;
};

struct Protocol {
  std::string name = "corrected";
  IdcForm idc;
  /// Relevance by a copy of the network whose convolutions are not rectified; a convolution's is read behind its pool.
  bool plain_convolutions = false;
  bool spread_bias = true;
  /// Table 2: pixels are turned over by their own value, else by their relevance (above half of the largest: 0).
  bool flip_by_value = false;
  double flip_percentile = 90;
  /// Noise on the pixels above this percentile of relevance, for tables 3 and 5.
  double noise = 0.3, percentile = 98, layer_percentile = 98;
  int64_t copies = 1, nc_copies = 1;  ///< noisy copies of each test, for IDC and for NC; other criteria see one
  bool cleverhans = false;            ///< attacks as CleverHans has them, on all tests; else those of this program
  bool surprise_alone = false;        ///< table 4: surprise of the set alone, without the tests
  bool published_criteria = false;    ///< rivals as the authors' program counts them
  IdcForm layers;                     ///< of table 5
  int64_t layer_classes = 10;
  /// The rivals' state is not reset between sets: frame, relevant, random pixels.
  bool accumulated = false;
  /// As it is told in keys and reports, with what was changed.
  std::string text() const;
};

/// `corrected`, `df63927` (the state of the paper), `head` (the newest). Throws InputError with the nearest.
Protocol find_protocol(const std::string& name);
const std::vector<std::string>& protocol_names();

/// What a user may change of a protocol; what is left open stays.
struct ProtocolChanges {
  int64_t copies = 0;
  double noise = 0, percentile = 0;
  std::string order, bias, attacks;  ///< fresh, accumulated; keep, spread; cleverhans, own
};
/// Throws InputError.
Protocol changed(Protocol protocol, const ProtocolChanges& changes);

/// Each difference from the corrected form alone, and the authors' two forms: why coverage is lower or higher there.
struct IdcSwitch {
  std::string name;
  IdcForm form;
  bool published_relevance = false;
};
std::vector<IdcSwitch> idc_switches();

}  // namespace netmend::studies
