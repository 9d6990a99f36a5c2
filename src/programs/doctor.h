// What the training doctor says of a version of a program: findings above a note from the record of its training and
// from its text. Those that the clean program has too say nothing about a bug.
#pragma once

#include <string>
#include <vector>

namespace netmend::programs {

struct DoctorSaid {
  bool recorded = false;           ///< a training was seen
  std::vector<std::string> kinds;  ///< in the order in which they are told, each once
};

/// `record`: a file, "" for none; `text`: the program as it is run, "" for none. `python` parses it.
DoctorSaid ask_doctor(const std::string& record, const std::string& text, const std::string& python);

}  // namespace netmend::programs
