// The program gdrjit: results on stdout, everything else on stderr, exit codes as in ErrorKind.
#include <CLI/CLI.hpp>
#include <exception>
#include <iostream>

#include "cli/bench.hpp"
#include "cli/compile.hpp"
#include "cli/doctor.hpp"
#include "cli/plan.hpp"
#include "cli/run.hpp"
#include "gdr/error.hpp"
#include "gdr/version.hpp"

namespace {

// Results that cannot be written are no results.
int finish(int code) {
  std::cout.flush();
  if (std::cout || code != 0) return code;
  std::cerr << "gdrjit: GDR-L09 standard output cannot be written\n";
  return static_cast<int>(gdr::ErrorKind::device);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Plans, generates and runs kernels for the chunked gated delta rule", "gdrjit");
  app.set_version_flag("--version", GDRJIT_VERSION);
  app.require_subcommand(1);
  app.failure_message([](const CLI::App* failed, const CLI::Error& error) {
    return "gdrjit: " + CLI::FailureMessage::simple(failed, error);
  });
  gdr::add_plan_command(app, std::cout);
  gdr::add_verify_command(app, std::cout);
  gdr::add_emit_command(app, std::cout);
  gdr::add_compile_command(app, std::cout);
  gdr::add_run_command(app, std::cout);
  gdr::add_bench_command(app, std::cout);
  gdr::add_doctor_command(app, std::cout);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return finish(app.exit(error) == 0 ? 0 : static_cast<int>(gdr::ErrorKind::config));
  } catch (const gdr::Error& error) {
    std::cerr << "gdrjit: " << error.what() << '\n';
    return error.exit_code();
  } catch (const std::exception& error) {
    std::cerr << "gdrjit: " << error.what() << '\n';
    return static_cast<int>(gdr::ErrorKind::internal);
  }
  return finish(0);
}
