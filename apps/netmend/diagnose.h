// What `watch` and `diagnose` share: a record becomes findings, and findings become a screen.
#pragma once

#include <string>

#include "diagnosis/diagnose.h"
#include "netmend/terminal.h"

namespace netmend::app {

/// A folder, a file, or the name of a run in netmend-runs; "" for the newest that has a record. Throws InputError.
std::string find_run(const std::string& name);
/// Values of a TOML file in place of the usual ones; "" for none.
diagnosis::Thresholds read_thresholds(const std::string& file);
void print_diagnosis(std::FILE* out, const diagnosis::Diagnosis& diagnosis, const records::Record& record);
/// evidence.json and report.html of a run folder.
void write_training_page(const std::string& folder, const records::Record& record, const diagnosis::Diagnosis& found,
                         const std::vector<std::string>& command);
/// 1 where a finding is at this level or above; `never` is allowed. Throws InputError for other words.
int status_of(const diagnosis::Diagnosis& diagnosis, const std::string& fail_on);

}  // namespace netmend::app
