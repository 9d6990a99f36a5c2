// Whether netmend prepares inputs as the framework did, and if not, which scale, offset, colour order or layout is
// missing.
#pragma once

#include <string>

namespace netmend::dataset {
class Dataset;
}
namespace netmend::model {
struct Graph;
}

namespace netmend::stream {

struct Reference;

struct InputFit {
  bool equal = true;
  double max = 0;           ///< largest difference
  std::string explanation;  ///< one sentence; "" when equal
  std::string config;       ///< the line for netmend.toml that would make them equal; "" when none is known
};

/// Reads the samples that the reference names from `data` and compares them with the recorded inputs. Throws InputError
/// when the data does not have these samples or does not fit the network at all.
InputFit compare_inputs(const model::Graph& graph, const std::string& model_name, const Reference& reference,
                        const dataset::Dataset& data, double tolerance);

}  // namespace netmend::stream
