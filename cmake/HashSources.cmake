# cmake -DROOT=<source tree> -DFOLDERS=<a;b> -DOUTPUT=<file.cpp> -P HashSources.cmake
# Writes a C++ file that holds a hash of the names and contents of all files below these folders: what decides a plan
# and its kernels' text, for the keys of the cache. The same sources give the same hash wherever they lie.
set(text "")
foreach(folder IN LISTS FOLDERS)
  file(GLOB_RECURSE files RELATIVE "${ROOT}" "${ROOT}/${folder}/*")
  list(SORT files)
  foreach(file IN LISTS files)
    file(SHA256 "${ROOT}/${file}" hash)
    string(APPEND text "${file} ${hash}\n")
  endforeach()
endforeach()
string(SHA256 hash "${text}")
file(WRITE "${OUTPUT}" "// Written by cmake/HashSources.cmake.\n#include \"gpu/keys.hpp\"\n\nnamespace gdr {\n\n"
                       "std::string_view build_hash() { return \"${hash}\"; }\n\n}  // namespace gdr\n")
