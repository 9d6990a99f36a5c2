// The page without its data, as report/ builds it: what comes before the document and what comes after.
#pragma once

#include <string_view>

namespace netmend::report {

std::string_view template_head();
std::string_view template_tail();

}  // namespace netmend::report
