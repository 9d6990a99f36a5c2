// The record of a training for the report page and for the terminal.
#pragma once

#include <string>
#include <vector>

#include "diagnosis/diagnose.h"

namespace netmend::diagnosis {

/// The figure of the page that shows a finding of this kind; "" where none does.
std::string plot_of(const std::string& kind);

/// A report document (report/evidence.schema.json) with curves, layers over time and events. `command` is the one that
/// made the run, `run` its folder.
findings::Json training_report(const records::Record& record, const Diagnosis& diagnosis, const std::string& command,
                               const std::string& run);

/// The same in lines: curves, findings with a curve that shows them, what is unknown, the next command.
std::vector<std::string> training_screen(const records::Record& record, const Diagnosis& diagnosis);

}  // namespace netmend::diagnosis
