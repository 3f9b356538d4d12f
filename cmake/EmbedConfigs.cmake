# cmake -DCONFIGS=<folder> -DOUTPUT=<file.cpp> -P EmbedConfigs.cmake
# Writes a C++ file that holds every <folder>/*/*.json as text, in a fixed order.
file(GLOB files RELATIVE "${CONFIGS}" "${CONFIGS}/*/*.json")
list(SORT files)
set(cpp "// Written by cmake/EmbedConfigs.cmake from configs/. Change those files, not this one.\n")
string(APPEND cpp "#include \"config/shipped.hpp\"\n\nnamespace gdr {\nnamespace {\n\n"
                  "constexpr ShippedConfig kConfigs[] = {\n")
foreach(file IN LISTS files)
  get_filename_component(folder "${file}" DIRECTORY)
  get_filename_component(name "${file}" NAME_WE)
  file(READ "${CONFIGS}/${file}" text)
  string(APPEND cpp "    {\"${folder}\", \"${name}\", R\"json(${text})json\"},\n")
endforeach()
string(APPEND cpp "};\n\n}  // namespace\n\n"
                  "std::span<const ShippedConfig> shipped_configs() { return kConfigs; }\n\n}  // namespace gdr\n")
file(WRITE "${OUTPUT}" "${cpp}")
