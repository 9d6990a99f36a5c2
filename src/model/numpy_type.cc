#include "model/numpy_type.h"

namespace netmend::model {

std::string numpy_type(Element type) {
  if (!supported(type) || type == Element::kBFloat16) return "";
  const std::string name = element_name(type);
  const char kind = name == "bool" ? 'b' : name[0];  // float, int, uint
  const int64_t bytes = stored_bytes(type);
  return std::string(bytes == 1 ? "|" : "<") + kind + std::to_string(bytes);
}

}  // namespace netmend::model
