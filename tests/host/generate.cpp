// generate ARCH STRATEGY FUNCTION OUTPUT.cpp: the kernel FUNCTION of the plan that the planner makes for the shipped
// shape, as emitted for the host, and its entry in the table of compiled kernels.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <fstream>
#include <string>

#include "plans.hpp"

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fputs("usage: generate ARCH STRATEGY FUNCTION OUTPUT\n", stderr);
    return 2;
  }
  try {
    const std::string arch = argv[1], strategy = argv[2], function = argv[3];
    const gdr::Plan& plan = gdr::host::shipped_plan(arch, strategy);
    const gdr::Kernel& kernel = gdr::host::kernel_of(plan, function);
    const std::string text = gdr::host::host_text(plan, kernel);
    std::string fills;
    for (const gdr::TensorSpec* tensor : plan.tensors_of(kernel))
      fills += fmt::format("  given.fill(\"{0}\", args.t_{0});\n", tensor->name);
    const std::string space = fmt::format("text_of_{}_{}_{}", arch, strategy, function);
    std::ofstream(argv[4]) << fmt::format(
        "#include \"registry.hpp\"\n\nnamespace {0} {{\n\n{1}\n"
        "static std::function<void()> bind(const gdr::host::Arguments& given) {{\n  Args args = {{}};\n{2}"
        "  given.fill_sizes(args);\n  return [args] {{ {3}(args); }};\n}}\n"
        "static const gdr::host::Registered registered(\n"
        "    gdr::host::CompiledKernel{{\"{4}\", \"{5}\", \"{6}\", \"{3}\", \"{7}\", bind}});\n\n}}  // namespace "
        "{0}\n",
        space, text, fills, kernel.name, arch, strategy, function, gdr::host::text_hash(text));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "generate: %s\n", error.what());
    return 1;
  }
  return 0;
}
