#include "model/guard.h"

#include "base/text.h"

namespace netmend::model {

std::string plain_reason(const c10::Error& error) {
  std::string text = error.what_without_backtrace();
  std::string line(trim(std::string_view(text).substr(0, text.find('\n'))));
  size_t assertion = line.find("INTERNAL ASSERT FAILED");
  if (assertion != std::string::npos) line = line.substr(0, assertion) + "LibTorch cannot do this";
  if (line.size() > 300) line = line.substr(0, 300) + "…";
  return line;
}

}  // namespace netmend::model
