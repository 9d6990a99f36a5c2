// --on: what a command is after. class=cat, confusion=cat:dog, slice=hour=night, inputs=FILE; one meaning everywhere.
#pragma once

#include <string>

#include "observers/result.h"
#include "observers/target.h"
#include "observers/task.h"

namespace netmend::dataset {
class Dataset;
}

namespace netmend::session {

struct NamedTarget {
  std::string text;   ///< as typed; "" for everything
  std::string words;  ///< `cat predicted as dog`; for messages
  observers::Target target;
};

/// Classes go by name or number. A confusion is label:prediction, failing against right inputs of that label. A slice
/// is column=value of the groups that the data keeps aside. A file lists names of inputs, in a column `id` or one per
/// line: their failures are compared with everything that is right. Throws InputError for what does not exist.
NamedTarget parse_target(const std::string& text, const observers::PredictionSettings& settings,
                         const dataset::Dataset& data);

/// Throws InputError, with what there is instead, unless there are failing and passing inputs to compare.
void require_both_sides(const NamedTarget& target, const observers::PredictionSettings& settings,
                        const observers::PredictionResult& result, int64_t failing, int64_t passing);

}  // namespace netmend::session
