# LibTorch: Debian's libtorch-dev by default, another one by CMAKE_PREFIX_PATH. The precompiled header is built once and
# shared, since ATen/ATen.h alone costs eight seconds a file.
find_package(Torch REQUIRED)
add_library(netmend_torch INTERFACE)
# Everything that defines a macro has to be here: a precompiled header is ignored where macros differ.
target_link_libraries(netmend_torch INTERFACE netmend_flags fmt::fmt nlohmann_json::nlohmann_json Threads::Threads)
target_include_directories(netmend_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
target_link_libraries(netmend_torch INTERFACE ${TORCH_LIBRARIES})
separate_arguments(torch_flags UNIX_COMMAND "${TORCH_CXX_FLAGS}")
target_compile_options(netmend_torch INTERFACE ${torch_flags} $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)

if(NOT EXISTS ${CMAKE_BINARY_DIR}/netmend_pch.cc)  # rewriting it would rebuild everything
  file(WRITE ${CMAKE_BINARY_DIR}/netmend_pch.cc "")
endif()
add_library(netmend_pch STATIC ${CMAKE_BINARY_DIR}/netmend_pch.cc)
target_link_libraries(netmend_pch PUBLIC netmend_torch nlohmann_json::nlohmann_json)
target_precompile_headers(netmend_pch PRIVATE <ATen/ATen.h> <nlohmann/json.hpp> <fmt/format.h> <algorithm> <functional> <map> <memory> <optional> <span>
                          <string> <string_view> <unordered_map> <variant> <vector>)

# Programs share the header too: it is ignored unless code is made position independent in the same way.
function(netmend_use_pch target)
  get_target_property(kind ${target} TYPE)
  if(kind STREQUAL EXECUTABLE)
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE -fPIC)
  endif()
  target_precompile_headers(${target} REUSE_FROM netmend_pch)
endfunction()
