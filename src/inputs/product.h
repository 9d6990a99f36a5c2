// Changed inputs as a file that opens again as data: raw values, so that the preprocessing of its spec is done once.
#pragma once

#include <string>
#include <vector>

#include "inputs/campaign.h"

namespace netmend::inputs {

/// What one method made.
struct MadeBy {
  std::string method;
  const CampaignResult* result = nullptr;
};

/// All inputs of all methods in that order: `x` (or the features under their names), `label`, `sample`, `before` (the
/// network's prediction for the original), `method` and the names of the methods. Inputs of which nothing valid was
/// made are left out. With `whole`, values are stored as bytes. Returns the spec that opens the file with the
/// preprocessing of `data`.
std::string write_product(const std::string& path, const dataset::Dataset& data, const model::Graph& graph,
                          const Network& network, const std::vector<MadeBy>& made, bool whole);
/// The file's size, to be compared with the 4 GB that an archive may have before any work is done.
int64_t product_bytes(const dataset::Dataset& data, const Network& network, int64_t inputs, bool whole);

}  // namespace netmend::inputs
