# Of every library that gdrjit uses only headers are taken, so that nothing else has to exist for the target machine:
# the same packages serve the native build and the cross build for aarch64, and an installed gdrjit has no library
# to find besides the threads of the system.

find_package(nlohmann_json 3.11 REQUIRED)
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_package(CLI11 2.1 REQUIRED)
find_package(Threads REQUIRED)

# Debian keeps fmt's and xxHash's package files in a folder of the host architecture, where a cross build does not look.
find_path(GDR_FMT_INCLUDE_DIR fmt/core.h REQUIRED)
find_path(GDR_XXHASH_INCLUDE_DIR xxhash.h REQUIRED)
mark_as_advanced(GDR_FMT_INCLUDE_DIR GDR_XXHASH_INCLUDE_DIR)

add_library(fmt::fmt INTERFACE IMPORTED GLOBAL)
target_include_directories(fmt::fmt INTERFACE "${GDR_FMT_INCLUDE_DIR}")
# Room core compiles fmt's library part (src/core/fmt_library.cpp) if it is of the version that it was written for.
file(STRINGS "${GDR_FMT_INCLUDE_DIR}/fmt/core.h" fmt_version REGEX "^#define FMT_VERSION ")
if(fmt_version MATCHES " 9[0-9][0-9][0-9][0-9]$")
  set(GDR_FMT_SOURCE fmt_library.cpp)
else()
  target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY=1)
endif()

add_library(xxhash::xxhash INTERFACE IMPORTED GLOBAL)
target_include_directories(xxhash::xxhash INTERFACE "${GDR_XXHASH_INCLUDE_DIR}")
target_compile_definitions(xxhash::xxhash INTERFACE XXH_INLINE_ALL)

if(GDRJIT_TESTS)
  find_package(doctest 2.4 REQUIRED)
  include("${doctest_DIR}/doctest.cmake")  # doctest_discover_tests
  # RapidCheck is compiled code: there is none for a cross build, and the property tests are then reported as skipped.
  if(NOT CMAKE_CROSSCOMPILING)
    find_package(rapidcheck REQUIRED)
  endif()
endif()
