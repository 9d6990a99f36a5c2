# One target per folder. A folder names the folders it uses and whether it needs tensors (then it gets LibTorch and the
# one precompiled header); `x_test.cc` files beside the code become the folder's test program.

add_library(netmend_flags INTERFACE)
# -Wno-restrict: GCC 12 sees overlaps in std::string that are not there (its bug 105651). -Wno-subobject-linkage: files
# that compile in groups look like headers to it.
target_compile_options(netmend_flags INTERFACE -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers
                       -Wno-restrict -Wno-subobject-linkage)
target_include_directories(netmend_flags INTERFACE ${PROJECT_SOURCE_DIR}/src)
if(NETMEND_SANITIZE)
  add_compile_options(-fsanitize=${NETMEND_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${NETMEND_SANITIZE})
endif()

# Code without hot loops (commands, tests, checks): a third less time to compile.
function(netmend_compile_lightly target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# Sources of a target compile in groups (unity.py): a third of the time of compiling them one by one. A change then costs a
# group; -DNETMEND_UNITY=OFF compiles file by file.
option(NETMEND_UNITY "Compile the sources of a folder in groups" ON)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
function(netmend_group target)
  if(NOT NETMEND_UNITY)
    return()
  endif()
  execute_process(COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/cmake/unity.py 2500 ${ARGN}
                  OUTPUT_VARIABLE groups OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" "|" groups "${groups}")
  string(REPLACE ";" "," groups "${groups}")
  string(REPLACE "|" ";" groups "${groups}")
  set(number 0)
  foreach(group ${groups})
    string(REPLACE "," ";" files "${group}")
    math(EXPR number "${number} + 1")
    set_source_files_properties(${files} PROPERTIES UNITY_GROUP "${target}_${number}")
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

# netmend_folder(NAME [TENSORS] [USES folder…] [LIBS target…] [TEST_LIBS target…])
function(netmend_folder name)
  cmake_parse_arguments(F "TENSORS" "" "USES;LIBS;TEST_LIBS" ${ARGN})
  file(GLOB_RECURSE all CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cc)
  set(sources ${all})
  set(tests ${all})
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(TRANSFORM F_USES PREPEND netmend_)

  add_library(netmend_${name} STATIC ${sources})
  netmend_group(netmend_${name} ${sources})
  set_property(GLOBAL APPEND PROPERTY NETMEND_FOLDERS ${name})
  target_link_libraries(netmend_${name} PUBLIC netmend_flags ${F_USES} ${F_LIBS})
  if(F_TENSORS)
    target_link_libraries(netmend_${name} PUBLIC netmend_torch)
    netmend_use_pch(netmend_${name})
  endif()

  if(tests)
    add_executable(${name}_test ${tests})
    netmend_group(${name}_test ${tests})
    netmend_compile_lightly(${name}_test)
    target_link_libraries(${name}_test PRIVATE netmend_${name} ${F_TEST_LIBS} GTest::gtest GTest::gtest_main)
    if(F_TENSORS)
      netmend_use_pch(${name}_test)
    endif()
    netmend_test(${name}_test)
  endif()
endfunction()

# A test program runs once a level: tests whose suite begins with Slow are the slow level.
function(netmend_test program)
  foreach(level fast slow)
    set(filter "-Slow*")
    if(NETMEND_SANITIZE)
      set(filter "-Slow*:RealData.*")  # minutes under a sanitizer, and nothing about it is hostile
    endif()
    if(level STREQUAL slow)
      set(filter "Slow*")
    endif()
    add_test(NAME ${program}.${level} COMMAND ${program} --gtest_filter=${filter} --gtest_brief=1)
    set_tests_properties(${program}.${level} PROPERTIES LABELS ${level} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  endforeach()
endfunction()
