#include "programs/doctor.h"

#include <algorithm>

#include "base/error.h"
#include "diagnosis/diagnose.h"
#include "diagnosis/lint.h"

namespace netmend::programs {
namespace {

void add(std::vector<std::string>& kinds, const std::string& kind) {
  if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
}

}  // namespace

DoctorSaid ask_doctor(const std::string& record) {
  DoctorSaid said;
  if (record.empty()) return said;
  try {
    const records::Record read = records::read_record(record);
    const diagnosis::Diagnosis found = diagnosis::diagnose(read, {}, {}, record);
    said.recorded = found.summary["steps"].get<int64_t>() > 0 || found.summary["epochs"].get<int64_t>() > 0;
    for (const findings::Finding& one : found.findings)
      if (one.level > findings::Level::kNote) add(said.kinds, one.kind);
  } catch (const InputError&) {  // the program damaged its record: nothing was seen
  }
  return said;
}

std::map<std::string, std::vector<std::string>> kinds_in_texts(const std::vector<std::string>& files,
                                                               const std::string& python) {
  std::map<std::string, std::vector<std::string>> kinds;
  try {
    for (const diagnosis::LintFinding& one : diagnosis::lint_files(files, python))
      if (one.finding.level > findings::Level::kNote) add(kinds[one.file], one.finding.kind);
  } catch (const InputError&) {  // another encoding than UTF-8
  }
  return kinds;
}

DoctorSaid beyond(const DoctorSaid& clean, DoctorSaid said, const std::vector<std::string>& text) {
  for (const std::string& kind : text) add(said.kinds, kind);
  std::erase_if(said.kinds, [&](const std::string& kind) {
    return std::find(clean.kinds.begin(), clean.kinds.end(), kind) != clean.kinds.end();
  });
  return said;
}

}  // namespace netmend::programs
