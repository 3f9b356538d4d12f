// Executes the threads of a block, one fiber each, under the rules of the hardware: emitted text compiled by the host
// compiler against templates/device/host.hpp, or any function that calls those primitives. Threads run in a seeded
// random order; copies land as late as they may; accesses that nothing orders are found by vector clocks, so that a
// missing barrier is seen whatever the order was. The first fault ends the run.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bank_counter.hpp"
#include "global_memory.hpp"
#include "kernel_facts.hpp"

namespace gdr::host {

// Who runs next: any warp; or those of one role (chosen by the seed) first, or last.
enum class Order { random, role_ahead, role_behind };
// When asynchronous copies land: when nobody can run; at random; at once.
enum class Landing { late, random, early };
// e^x: as the GPU's instruction rounds (2^(x log2 e)), or as the interpreter's library does.
enum class Exponential { device, library };

enum class FaultKind {
  race,        // an access that nothing orders after another one
  unwritten,   // a read of shared bytes that nobody wrote
  bounds,      // outside shared memory, the op's tiles, or a tensor; misaligned
  global,      // a tensor: unwritten, written twice, written by the same launch
  phase,       // an arrival or a wait falls into another phase of an mbarrier than its own
  barrier,     // a barrier used against its rules
  divergence,  // lanes of a warp at different collective operations
  registers,   // setmaxnreg against its rules
  deadlock,
};
const char* to_string(FaultKind kind);

struct Fault {
  FaultKind kind = FaultKind::race;
  std::string text;  // kernel, block, role, warp, lane, op, iteration: what, and the other party
  std::string role, op, tile;
};

struct EngineOptions {
  std::uint64_t seed = 1;
  Order order = Order::random;
  Landing landing = Landing::late;
  Exponential exponential = Exponential::device;
  bool counts_banks = false;
  // Changes of the text that need no compiler. Indices of waits, arrivals, meetings and copies that do nothing; of ops
  // whose warp_syncs do nothing; what is added to a barrier's count, by its name.
  std::set<int> skipped_ops, unsynced_ops;
  std::map<std::string, int> added_arrivals;
};

struct StoredBytes {
  int byte = 0, bytes = 0;
};

// One warp has left an op, with what it wrote to shared memory there.
struct Published {
  int block = 0, op = 0, iteration = 0, warp = 0;  // of its role
  std::vector<StoredBytes> stored;                 // in some order
  std::function<const std::byte*(int byte)> memory;
};

struct BlockRun {
  const KernelFacts* facts = nullptr;  // null: no names, no tiles' bounds
  int threads = 32;
  int smem_bytes = 0;
  GlobalMemory* global = nullptr;
  EngineOptions options;
  BankCounter* banks = nullptr;  // filled if options.counts_banks
  std::function<void(const Published&)> observer;
};

// Runs block `index`: every thread executes `body`.
std::optional<Fault> run_block(const BlockRun& run, int index, const std::function<void()>& body);

}  // namespace gdr::host
