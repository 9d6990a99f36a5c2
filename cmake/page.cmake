# The report page: report/ is built by Vite in the build folder and becomes a source file of src/report. The packages are
# fetched once; both steps run again only when their sources change.
find_program(NODE_PROGRAM NAMES node nodejs)
find_program(NPM_PROGRAM npm)
set(NETMEND_PAGE "" CACHE FILEPATH "page_template.cc of another build, for machines without Node.js")
if(NETMEND_PAGE)
  set(page_source ${NETMEND_PAGE})
  return()
endif()
if(NOT NODE_PROGRAM OR NOT NPM_PROGRAM)
  message(FATAL_ERROR "The report page needs Node.js 18 or newer and npm, and they were not found. `./dev setup` installs Debian's "
                      "(packages nodejs and npm); elsewhere put node and npm on the PATH.")
endif()
execute_process(COMMAND ${NODE_PROGRAM} --version OUTPUT_VARIABLE node_version OUTPUT_STRIP_TRAILING_WHITESPACE)
string(REPLACE "v" "" node_version "${node_version}")
if(node_version VERSION_LESS 18)
  message(FATAL_ERROR "The report page needs Node.js 18 or newer; ${NODE_PROGRAM} is ${node_version}.")
endif()

set(page_from ${PROJECT_SOURCE_DIR}/report)
set(page_home ${CMAKE_BINARY_DIR}/report)
set(page_source ${CMAKE_BINARY_DIR}/report/page_template.cc)
file(GLOB page_files CONFIGURE_DEPENDS ${page_from}/src/*.ts ${page_from}/src/*.css)
set(page_tools ${page_from}/vite.config.ts ${page_from}/tsconfig.json ${page_from}/embed.mjs ${page_from}/types.mjs ${page_from}/evidence.schema.json)

add_custom_command(
  OUTPUT ${page_home}/packages.stamp
  COMMAND ${CMAKE_COMMAND} -E make_directory ${page_home}
  COMMAND ${CMAKE_COMMAND} -E copy ${page_from}/package.json ${page_from}/package-lock.json ${page_from}/.npmrc ${page_home}
  COMMAND ${CMAKE_COMMAND} -E chdir ${page_home} ${NPM_PROGRAM} ci --prefer-offline --loglevel=error
  COMMAND ${CMAKE_COMMAND} -E touch ${page_home}/packages.stamp
  DEPENDS ${page_from}/package.json ${page_from}/package-lock.json ${page_from}/.npmrc
  COMMENT "Fetching the packages of the report page" VERBATIM)
add_custom_command(
  OUTPUT ${page_source}
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${page_home}/src
  COMMAND ${CMAKE_COMMAND} -E copy_directory ${page_from}/src ${page_home}/src
  COMMAND ${CMAKE_COMMAND} -E copy ${page_tools} ${page_home}
  COMMAND ${CMAKE_COMMAND} -E chdir ${page_home} ${NPM_PROGRAM} run --silent build
  COMMAND ${NODE_PROGRAM} ${page_home}/embed.mjs ${page_home}/dist/template.html ${page_source}
  DEPENDS ${page_home}/packages.stamp ${page_files} ${page_tools}
  COMMENT "Building the report page" VERBATIM)
set_source_files_properties(${page_source} PROPERTIES GENERATED ON)
