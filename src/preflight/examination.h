// The preflight of parts: a network on data, without a session.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "observers/predictions.h"
#include "preflight/preflight.h"
#include "stream/pass.h"

namespace netmend::preflight {

/// What the user said should be so.
struct Expected {
  double metric = -1;       ///< what training reported on this data; below 0 when it is not known
  std::string output_kind;  ///< logits, probabilities, log-probabilities, or ""
};

/// Other data that the user may have meant: the name of the split and how to open it.
struct OtherData {
  std::string line;  ///< for netmend.toml: `data = { test = "mnist:test" }`
  std::string words;
  std::function<std::shared_ptr<const dataset::Dataset>()> open;
};

struct PreflightOptions {
  int jobs = 0;
  std::vector<OtherData> others;
  bool free = false;  ///< nobody said how inputs are prepared: the best way is wanted, however little better it is
};

/// Throws InputError when the model cannot run on the data at all.
Preflight examine(const stream::Subject& subject, const observers::PredictionSettings& settings,
                  const Expected& expected, const PreflightOptions& options);

}  // namespace netmend::preflight
