// The parts of the table of kinds, a file each: what the graph and the weights show, what predictions show, what the
// data shows, what tests, trials and other models show, what the record of a training shows.
#pragma once

#include <span>

#include "findings/kinds.h"

namespace netmend::findings {

std::span<const Kind> model_kinds();
std::span<const Kind> answer_kinds();
std::span<const Kind> data_kinds();
std::span<const Kind> test_kinds();
std::span<const Kind> training_kinds();

}  // namespace netmend::findings
