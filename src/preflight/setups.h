// The ways in which data is commonly prepared for a network, to be tried when it seems to have been prepared
// differently from training.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dataset/dataset.h"

namespace netmend::preflight {

using Options = std::map<std::string, std::string>;

/// One respect in which inputs could be prepared differently from how it is done now.
struct Setup {
  std::string about;  ///< scale, color, layout, orientation, mask, ids: what it changes
  std::string words;  ///< for people: `scaled to 0…1`
  /// Options of data specs that it decides, "" for one that goes; nullopt when it cannot be written as options.
  std::optional<Options> changes;
  std::function<void(dataset::Batch&)> apply;  ///< turns a batch as the data gives it into one of this set-up
  bool unusual = false;                        ///< few do it so
  bool of_this_data = false;                   ///< constants of the data set that this is known to be
};

/// Set-ups that differ from what `data` does now in how values are scaled and shifted. `sample` shows the range of the
/// values; statistics of the data itself are taken from it. Constants of another data set are left out where the name
/// of the data or of its classes tells which one it is.
std::vector<Setup> scalings(const dataset::Info& data, const dataset::Batch& sample);
/// Set-ups that differ in the order of colours, axes, tokens. `flat`: the network takes rows, not images.
std::vector<Setup> arrangements(const dataset::Info& data, const dataset::Batch& sample, bool flat = false);
/// Whether both take rows for images of the same order: a scaling by colours speaks of what the axes give.
bool fit_together(const Setup& axes, const Setup& scale);
/// Set-ups that nobody writes down: values as they are prepared in `sample`, stretched and shifted. One that suits a
/// network better shows that its constants are not among the usual ones.
std::vector<Setup> stretches(const dataset::Info& data, const dataset::Batch& sample);
/// What `data` does now with all changes made, without sizes; nullopt when one of them cannot be written.
std::optional<Options> merged(const dataset::Info& data, const std::vector<Setup>& setups);

}  // namespace netmend::preflight
