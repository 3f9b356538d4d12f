# cmake -DTEMPLATES=<folder> -DOUTPUT=<file.cpp> -P EmbedTemplates.cmake
# Writes a C++ file that holds the texts of templates/, in a fixed order. Long texts are split: compilers limit literals.
file(GLOB_RECURSE files RELATIVE "${TEMPLATES}" "${TEMPLATES}/*.cu" "${TEMPLATES}/*.cuh" "${TEMPLATES}/*.hpp")
list(SORT files)
set(cpp "// Written by cmake/EmbedTemplates.cmake from templates/. Change those files, not this one.\n")
string(APPEND cpp "#include \"emit/texts.hpp\"\n\nnamespace gdr {\nnamespace {\n\n"
                  "constexpr TemplateText kTexts[] = {\n")
foreach(file IN LISTS files)
  file(READ "${TEMPLATES}/${file}" text)
  string(LENGTH "${text}" length)
  set(literals "")
  set(at 0)
  while(at LESS length)
    string(SUBSTRING "${text}" ${at} 8000 piece)
    string(APPEND literals "R\"cuda(${piece})cuda\"\n")
    math(EXPR at "${at} + 8000")
  endwhile()
  string(APPEND cpp "    {\"${file}\", ${literals}},\n")
endforeach()
string(APPEND cpp "};\n\n}  // namespace\n\n"
                  "std::span<const TemplateText> template_texts() { return kTexts; }\n\n}  // namespace gdr\n")
file(WRITE "${OUTPUT}" "${cpp}")
