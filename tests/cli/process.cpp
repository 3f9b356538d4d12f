#include "process.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include "../cache/support.hpp"
#include "cli/compile.hpp"
#include "cli/doctor.hpp"
#include "cli/plan.hpp"
#include "cli/run.hpp"
#include "core/error.hpp"

namespace gdr::test {

ProcessOutcome gdrjit_process(const std::vector<std::string>& arguments,
                              const std::map<std::string, std::string>& environment) {
  const TempFolder folder;
  const std::string told = (folder.path() / "told").string();
  const std::string text = in_child([&] {
    for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
    const int file = ::open(told.c_str(), O_WRONLY | O_CREAT, 0644);
    ::dup2(file, STDERR_FILENO);
    CLI::App app("test", "gdrjit");
    app.require_subcommand(1);
    std::ostringstream out;
    add_plan_command(app, out);
    add_compile_command(app, out);
    add_run_command(app, out);
    add_doctor_command(app, out);
    nlohmann::json outcome = {{"exit_code", 0}, {"error", ""}};
    try {
      app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    } catch (const CLI::ParseError& error) {
      outcome = {{"exit_code", 2}, {"error", error.what()}};
    } catch (const Error& error) {
      outcome = {{"exit_code", error.exit_code()}, {"error", error.what()}};
    }
    outcome["out"] = out.str();
    return outcome.dump();
  });
  const nlohmann::json outcome = nlohmann::json::parse(text);
  return {outcome.at("exit_code"), outcome.at("out"), outcome.at("error"), read_file(told)};
}

}  // namespace gdr::test
