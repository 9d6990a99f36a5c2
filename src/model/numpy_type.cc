#include "model/numpy_type.h"

#include "model/small_float.h"

namespace netmend::model {

std::string numpy_type(Element type) {
  if (!supported(type) || type == Element::kBFloat16 || stored_bits(type) < 8 || is_small_float(type)) return "";
  const std::string name = element_name(type);
  const char kind = name == "bool" ? 'b' : name[0];  // float, int, uint
  const int64_t bytes = stored_bits(type) / 8;
  return std::string(bytes == 1 ? "|" : "<") + kind + std::to_string(bytes);
}

}  // namespace netmend::model
