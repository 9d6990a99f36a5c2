# libnetmend for other people's programs: one shared library of all folders, the headers that are public (none of them
# knows a tensor), a CMake package and a pkg-config file.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(netmend_folders GLOBAL PROPERTY NETMEND_FOLDERS)
list(TRANSFORM netmend_folders PREPEND netmend_)
add_library(netmend_library SHARED EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/cmake/library.cc)
set_target_properties(netmend_library PROPERTIES OUTPUT_NAME netmend VERSION ${PROJECT_VERSION} SOVERSION 0)
target_link_libraries(netmend_library PRIVATE netmend_flags -Wl,--whole-archive ${netmend_folders} -Wl,--no-whole-archive)
set_target_properties(netmend_library PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)

# A program that includes these sees no header of LibTorch.
set(netmend_public
    base/budget.h base/error.h base/run_folder.h base/text.h base/version.h checks/check.h checks/request.h
    evidence/check_run.h executor/head.h executor/runtime.h findings/accepted.h findings/finding.h findings/kinds.h
    model/ids.h observers/figures.h observers/result.h observers/task.h preflight/preflight.h repair/names.h repair/repair_run.h repair/sbfl_choice.h
    session/config.h session/request.h session/session.h stats/intervals.h)
foreach(header ${netmend_public})
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${PROJECT_SOURCE_DIR}/src/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/netmend/${folder}
          COMPONENT library)
endforeach()
install(TARGETS netmend_library LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library OPTIONAL)
# What netmend runs inside Python programs (base/python_package.h).
install(DIRECTORY ${PROJECT_SOURCE_DIR}/python/netmend DESTINATION ${CMAKE_INSTALL_DATADIR}/netmend/python COMPONENT program
        PATTERN __pycache__ EXCLUDE)
install(TARGETS netmend netmend-engine netmend-files RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)

configure_package_config_file(cmake/netmend-config.cmake.in ${CMAKE_BINARY_DIR}/netmend-config.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/netmend
                              PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/netmend-config-version.cmake COMPATIBILITY SameMinorVersion)
configure_file(cmake/netmend.pc.in ${CMAKE_BINARY_DIR}/netmend.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/netmend-config.cmake ${CMAKE_BINARY_DIR}/netmend-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/netmend COMPONENT library)
install(FILES ${CMAKE_BINARY_DIR}/netmend.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)
# The program of `lab study injected-bugs`.
install(FILES ${PROJECT_SOURCE_DIR}/examples/injected-bugs/train.py
        DESTINATION ${CMAKE_INSTALL_DATADIR}/netmend/examples/injected-bugs COMPONENT program)
