// The ways in which data is commonly prepared for a network, to be tried when it seems to have been prepared
// differently from training.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "dataset/dataset.h"

namespace netmend::preflight {

struct Setup {
  std::string about;  ///< scale, color, layout, orientation, mask, ids: what it changes
  std::string words;  ///< for people: `scaled to 0…1`
  /// What to write into `input.x` of netmend.toml, as in data specs; empty when that cannot be said there.
  std::map<std::string, std::string> options;
  std::function<void(dataset::Batch&)> apply;  ///< turns a batch as the data gives it into one of this set-up
};

/// Set-ups that differ from what `data` does now in how values are scaled and shifted. `sample` shows the range of the
/// values; statistics of the data itself are taken from it.
std::vector<Setup> scalings(const dataset::Info& data, const dataset::Batch& sample);
/// Set-ups that differ in the order of colours, axes, tokens: each is tried on top of a scaling.
std::vector<Setup> arrangements(const dataset::Info& data, const dataset::Batch& sample);

}  // namespace netmend::preflight
