# Checks four rules that nothing else enforces; CMakeLists.txt beside this file sets the variables.

# 1 A room does not reach another by a relative path.
file(GLOB_RECURSE sources "${SRC}/*.cpp" "${SRC}/*.hpp" "${SRC}/*.inl" "${SRC}/*.h")
foreach(source IN LISTS sources)
  file(STRINGS "${source}" found REGEX "#include.*\\.\\./")
  if(found)
    message(SEND_ERROR "${source}: ${found}")
  endif()
endforeach()

# 2 These rooms give the same output for the same input: no files, environment, clocks or random numbers.
foreach(room IN ITEMS schedule verify interp plan emit)
  file(GLOB_RECURSE sources "${SRC}/${room}/*.cpp" "${SRC}/${room}/*.hpp")
  foreach(source IN LISTS sources)
    file(STRINGS "${source}" found
         REGEX "#include <(fstream|filesystem|chrono|ctime|random|cstdio|iostream|unistd\\.h)>|getenv")
    if(found)
      message(SEND_ERROR "${source}: room ${room} may not use ${found}")
    endif()
  endforeach()
endforeach()

# 3 What a room sees is itself and what it lists: core sees its own headers, and none of a room above it.
foreach(probe IN ITEMS "core/hash.hpp:0" "gdr/error.hpp:0" "config/json.hpp:1" "schedule/model.hpp:1" "gdr/gdr.hpp:1")
  string(REPLACE ":" ";" probe "${probe}")
  list(GET probe 0 header)
  list(GET probe 1 must_fail)
  file(WRITE "${WORK}/probe.cpp" "#include \"${header}\"\n")
  execute_process(COMMAND "${COMPILER}" -std=c++20 -fsyntax-only "-I${ROOMS}/core" "${WORK}/probe.cpp"
                  RESULT_VARIABLE result OUTPUT_QUIET ERROR_VARIABLE errors)
  if(must_fail AND result EQUAL 0)
    message(SEND_ERROR "room core can include ${header}")
  elseif(NOT must_fail AND NOT result EQUAL 0)
    message(SEND_ERROR "room core cannot include ${header}: ${errors}")
  endif()
endforeach()

# 4 A test case's name has no semicolon: CMake would cut it there, and ctest would run nothing and call that passed.
file(GLOB_RECURSE sources "${TESTS}/*.cpp")
foreach(source IN LISTS sources)
  file(READ "${source}" text)
  string(REGEX MATCH "TEST_CASE\\(\"[^\"]*;" found "${text}")
  if(found)
    message(SEND_ERROR "${source}: ${found} ...: no semicolon may stand in the name of a test case")
  endif()
endforeach()
