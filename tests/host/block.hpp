// The primitives of templates/device/host.hpp for tests that write a block by hand.
#pragma once

#include "engine.hpp"

namespace gdr::host::device {
#include "device/host.hpp"
}  // namespace gdr::host::device

namespace gdr::host {

struct HandBlock {
  int threads = 32;
  int smem_bytes = 4096;
  EngineOptions options;
  GlobalMemory global;
  BankCounter* banks = nullptr;

  std::optional<Fault> run(const std::function<void()>& body) {
    BlockRun run;
    run.threads = threads;
    run.smem_bytes = smem_bytes;
    run.global = &global;
    run.options = options;
    run.banks = banks;
    global.begin_launch();
    return run_block(run, 0, body);
  }
};

}  // namespace gdr::host
