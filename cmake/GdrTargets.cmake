# The products: libgdrjit.a and libgdrjit.so from the objects of the rooms up to api, and the program gdrjit.
# gdrjit::gdrjit is the static library unless BUILD_SHARED_LIBS is on.
include(GNUInstallDirs)

set(library_rooms ${GDR_ROOMS})
list(REMOVE_ITEM library_rooms cli)

foreach(kind IN ITEMS static shared)
  string(TOUPPER ${kind} KIND)
  add_library(gdrjit_${kind} ${KIND})
  foreach(room IN LISTS library_rooms)
    target_sources(gdrjit_${kind} PRIVATE $<TARGET_OBJECTS:gdr_${room}>)
  endforeach()
  target_include_directories(gdrjit_${kind} INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(gdrjit_${kind} INTERFACE cxx_std_20)
  target_link_libraries(gdrjit_${kind} PUBLIC Threads::Threads)
  set_target_properties(gdrjit_${kind} PROPERTIES OUTPUT_NAME gdrjit LINKER_LANGUAGE CXX)
  add_library(gdrjit::gdrjit_${kind} ALIAS gdrjit_${kind})
endforeach()
# Below 1.0 a new minor version may change the ABI, so it is part of the soname.
set_target_properties(gdrjit_shared PROPERTIES
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
  LINK_DEPENDS "${CMAKE_CURRENT_LIST_DIR}/gdrjit.map")
target_link_options(gdrjit_shared PRIVATE "-Wl,--version-script=${CMAKE_CURRENT_LIST_DIR}/gdrjit.map")
if(BUILD_SHARED_LIBS)
  add_library(gdrjit::gdrjit ALIAS gdrjit_shared)
else()
  add_library(gdrjit::gdrjit ALIAS gdrjit_static)
endif()

add_executable(gdrjit "${PROJECT_SOURCE_DIR}/src/cli/main.cpp")
gdr_link_rooms(gdrjit cli)
gdr_set_warnings(gdrjit)
