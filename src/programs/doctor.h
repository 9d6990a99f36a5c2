// What the training doctor says of a version of a program: findings above a note from the record of its training and
// from its text. Those that the clean program has too say nothing about a bug.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace netmend::programs {

struct DoctorSaid {
  bool recorded = false;           ///< a training was seen
  std::vector<std::string> kinds;  ///< in the order in which they are told, each once
};

/// `record`: a file, "" for none.
DoctorSaid ask_doctor(const std::string& record);
/// Of programs' texts, by file; empty where one of them cannot be read. Not from several threads: it starts `python`.
std::map<std::string, std::vector<std::string>> kinds_in_texts(const std::vector<std::string>& files,
                                                               const std::string& python);
/// What `said` and a text's kinds have that those of the clean program do not.
DoctorSaid beyond(const DoctorSaid& clean, DoctorSaid said, const std::vector<std::string>& text);

}  // namespace netmend::programs
