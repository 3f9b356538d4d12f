# gdr_room and gdr_test: the folders of src as targets that see only what they list.
#
# A room's include path is a folder of the build tree that holds a link to this room alone, so `#include "plan/x.hpp"`
# in a room that does not stand above plan fails to compile, and calling into it fails to link.

# gdr_room(NAME SOURCES a.cpp... [DEPS core config...] [LIBS fmt::fmt...] [PUBLIC_HEADERS gdr.hpp...])
#   SOURCES         relative to src/NAME; headers need no mention
#   DEPS            the rooms it may include and call; what those depend on is visible too
#   LIBS            outside libraries
#   PUBLIC_HEADERS  files of src/include/gdr that this room implements; rooms below it cannot include them
function(gdr_room name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS;LIBS;PUBLIC_HEADERS" ${ARGN})
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES)
    message(FATAL_ERROR "gdr_room(${name}): takes SOURCES (at least one), DEPS, LIBS, PUBLIC_HEADERS")
  endif()
  foreach(dep IN LISTS arg_DEPS)
    if(NOT TARGET gdr_${dep})
      message(FATAL_ERROR "gdr_room(${name}): room '${dep}' does not stand before '${name}' in GDR_ROOMS")
    endif()
  endforeach()

  set(visible "${PROJECT_BINARY_DIR}/rooms/${name}")
  file(MAKE_DIRECTORY "${visible}")
  file(CREATE_LINK "${PROJECT_SOURCE_DIR}/src/${name}" "${visible}/${name}" SYMBOLIC)
  file(REMOVE_RECURSE "${visible}/gdr")
  foreach(header IN LISTS arg_PUBLIC_HEADERS)
    file(MAKE_DIRECTORY "${visible}/gdr")
    file(CREATE_LINK "${PROJECT_SOURCE_DIR}/src/include/gdr/${header}" "${visible}/gdr/${header}" SYMBOLIC)
  endforeach()

  add_library(gdr_${name} OBJECT ${arg_SOURCES})
  target_include_directories(gdr_${name} PUBLIC "${visible}")
  target_link_libraries(gdr_${name} PUBLIC ${arg_LIBS})
  gdr_set_warnings(gdr_${name})

  # Object libraries hand on usage requirements but not objects: who links a room links its closure.
  set(closure "${name}")
  foreach(dep IN LISTS arg_DEPS)
    target_link_libraries(gdr_${name} PUBLIC gdr_${dep})
    get_property(below GLOBAL PROPERTY GDR_CLOSURE_${dep})
    list(APPEND closure ${below})
  endforeach()
  list(REMOVE_DUPLICATES closure)
  set_property(GLOBAL PROPERTY GDR_CLOSURE_${name} "${closure}")
endfunction()

# gdr_link_rooms(TARGET ROOM...): gives TARGET the headers and objects of these rooms and of all they depend on.
function(gdr_link_rooms target)
  set(closure "")
  foreach(room IN LISTS ARGN)
    if(NOT TARGET gdr_${room})
      message(FATAL_ERROR "${target}: there is no room '${room}'")
    endif()
    get_property(below GLOBAL PROPERTY GDR_CLOSURE_${room})
    list(APPEND closure ${below})
  endforeach()
  list(REMOVE_DUPLICATES closure)
  list(TRANSFORM closure PREPEND gdr_)
  target_link_libraries(${target} PRIVATE ${closure})
endfunction()

# gdr_test(NAME SOURCES x_test.cpp... [DEPS rooms...] [LIBS libs...] [PROPERTIES name value...])
#   One doctest executable test_NAME; each of its test cases is a test of ctest, named NAME.<case>, with PROPERTIES.
#   If LIBS holds rapidcheck and there is none for this target machine, ctest reports the tests as skipped.
function(gdr_test name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS;LIBS;PROPERTIES" ${ARGN})
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES)
    message(FATAL_ERROR "gdr_test(${name}): takes SOURCES (at least one), DEPS, LIBS, PROPERTIES")
  endif()
  if("rapidcheck" IN_LIST arg_LIBS AND NOT TARGET rapidcheck)
    add_test(NAME ${name}.all COMMAND "${CMAKE_COMMAND}" -E echo "skipped: no RapidCheck for this target machine")
    set_tests_properties(${name}.all PROPERTIES SKIP_REGULAR_EXPRESSION "^skipped")
    return()
  endif()
  add_executable(test_${name} ${arg_SOURCES})
  gdr_link_rooms(test_${name} ${arg_DEPS})
  target_link_libraries(test_${name} PRIVATE gdr_test_main ${arg_LIBS})
  target_compile_definitions(test_${name} PRIVATE GDR_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  gdr_set_warnings(test_${name})
  # Tests say the same on a machine with a GPU as on one without: they see no driver.
  doctest_discover_tests(test_${name} TEST_PREFIX "${name}."
                         PROPERTIES TIMEOUT 1500 ENVIRONMENT "GDRJIT_LIBCUDA=/nowhere/libcuda.so.1"
                                    ${arg_PROPERTIES})
endfunction()

function(gdr_set_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wconversion $<$<BOOL:${GDRJIT_WERROR}>:-Werror>)
  # g++ 12 sees an overlapping copy in every std::string sum that it inlines at -O3 (GCC bug 105651).
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(${target} PRIVATE -Wno-restrict)
  endif()
endfunction()
