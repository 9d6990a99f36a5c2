// The change of DeepImportance's RQ1 (see deepimportance.h): pixels whose relevance is above the 90th percentile of
// their image become 0 where it is above half of the largest, else 1.
#pragma once

#include "inputs/method.h"

namespace netmend::studies {

/// A pixel is a place with all its channels, and is as relevant as they are together.
inputs::Changed erase_relevant(const inputs::Network& network, const inputs::Originals& originals,
                               const inputs::Settings& settings);

}  // namespace netmend::studies
