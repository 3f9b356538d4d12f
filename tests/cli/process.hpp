// The program's command line in a process of its own: what is read from the environment is read once a process.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace gdr::test {

struct ProcessOutcome {
  int exit_code = 0;
  std::string out;
  std::string error;  // what ended the command, without the name of the program
  std::string told;   // standard error besides
};

ProcessOutcome gdrjit_process(const std::vector<std::string>& arguments,
                              const std::map<std::string, std::string>& environment);

}  // namespace gdr::test
