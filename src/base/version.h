#pragma once

namespace netmend {
inline constexpr const char* kVersion = "0.1.0";
}
