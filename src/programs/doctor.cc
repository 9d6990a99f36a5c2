#include "programs/doctor.h"

#include <algorithm>

#include "base/error.h"
#include "diagnosis/diagnose.h"
#include "diagnosis/lint.h"

namespace netmend::programs {
namespace {

void add(std::vector<std::string>& kinds, const findings::Finding& finding) {
  if (finding.level > findings::Level::kNote && std::find(kinds.begin(), kinds.end(), finding.kind) == kinds.end())
    kinds.push_back(finding.kind);
}

}  // namespace

DoctorSaid ask_doctor(const std::string& record, const std::string& text, const std::string& python) {
  DoctorSaid said;
  if (!record.empty()) try {
      const records::Record read = records::read_record(record);
      const diagnosis::Diagnosis found = diagnosis::diagnose(read, {}, {}, record);
      said.recorded = found.summary["steps"].get<int64_t>() > 0 || found.summary["epochs"].get<int64_t>() > 0;
      for (const findings::Finding& one : found.findings) add(said.kinds, one);
    } catch (const InputError&) {  // the program damaged its record: nothing was seen
    }
  if (!text.empty()) try {
      for (const diagnosis::LintFinding& one : diagnosis::lint_files({text}, python)) add(said.kinds, one.finding);
    } catch (const InputError&) {  // another encoding than UTF-8
    }
  return said;
}

}  // namespace netmend::programs
