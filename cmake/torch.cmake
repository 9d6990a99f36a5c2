# LibTorch: Debian's libtorch-dev by default, or PyPI's torch. The precompiled header is built once and shared, since
# ATen/ATen.h alone costs eight seconds a file.
set(NETMEND_LIBTORCH "" CACHE PATH "Another LibTorch than Debian's: the folder of PyPI's torch (2.7 or newer) or an unpacked libtorch")
if(NETMEND_LIBTORCH)
  # Its own CMake files ask for CUDA's compiler, which is only needed to write kernels.
  foreach(library torch torch_cpu c10)
    if(NOT EXISTS ${NETMEND_LIBTORCH}/lib/lib${library}.so)
      message(FATAL_ERROR "${NETMEND_LIBTORCH} is no LibTorch: lib/lib${library}.so is missing. "
                          "For PyPI's torch it is the folder that python3 -c 'import torch; print(torch.__path__[0])' prints.")
    endif()
  endforeach()
  set(TORCH_INCLUDE_DIRS ${NETMEND_LIBTORCH}/include ${NETMEND_LIBTORCH}/include/torch/csrc/api/include)
  # The wheel exports parts of the C++ library that it was linked with: the system's comes first. What registers CUDA's
  # kernels is used by nobody's name.
  set(TORCH_LIBRARIES -Wl,--no-as-needed -l:libstdc++.so.6)
  foreach(library torch torch_cpu torch_cuda c10 c10_cuda)
    if(EXISTS ${NETMEND_LIBTORCH}/lib/lib${library}.so)
      list(APPEND TORCH_LIBRARIES ${NETMEND_LIBTORCH}/lib/lib${library}.so)
    endif()
  endforeach()
  list(APPEND TORCH_LIBRARIES -Wl,--as-needed -Wl,--allow-shlib-undefined)
  # The wheel carries an old protobuf and a newer fmt, whose headers would be found before ours.
  get_target_property(fmt_headers fmt::fmt-header-only INTERFACE_INCLUDE_DIRECTORIES)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/headers)
  file(CREATE_LINK ${Protobuf_INCLUDE_DIRS}/google ${CMAKE_BINARY_DIR}/headers/google SYMBOLIC)
  file(CREATE_LINK ${fmt_headers}/fmt ${CMAKE_BINARY_DIR}/headers/fmt SYMBOLIC)
  list(PREPEND TORCH_INCLUDE_DIRS ${CMAKE_BINARY_DIR}/headers)
else()
  find_package(Torch REQUIRED)
endif()
add_library(netmend_torch INTERFACE)
# Everything that defines a macro has to be here: a precompiled header is ignored where macros differ.
target_link_libraries(netmend_torch INTERFACE netmend_flags netmend_fmt nlohmann_json::nlohmann_json Threads::Threads)
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
