// The engine's rules, one small block each: what is a fault, and what is not.
#include <doctest/doctest.h>

#include <string>

#include "block.hpp"

namespace gdr::host {
namespace {

using namespace device;

constexpr int kBarrier = 1024;

struct Row {
  const char* name;
  const char* kind;  // "": no fault
  const char* part;  // of the fault's text
  int threads;
  std::function<void()> body;
};

void init_barrier(int arrivals) {
  if (thread_index() == 0) barrier_init(kBarrier, arrivals);
  block_sync();
}
int warp() { return thread_index() / 32; }
int lane() { return thread_index() % 32; }

// Warp 0 writes, then tells warp 1 by the arrival of its lane 0; warp 1 reads.
void tell(bool syncs) {
  init_barrier(1);
  if (warp() == 0) {
    shared_store<u32>(lane() * 4, 1);
    if (syncs) warp_sync();
    if (lane() == 0) barrier_arrive(kBarrier);
  } else {
    barrier_wait(kBarrier, 0);
    (void)shared_load<u32>(lane() * 4);
  }
}

// Warp 0 has read; its lane 0 tells warp 1, which writes the bytes anew.
void refill(bool syncs) {
  init_barrier(1);
  shared_store<u32>(thread_index() * 4, 1);
  block_sync();
  if (warp() == 0) {
    (void)shared_load<u32>(lane() * 4);
    if (syncs) warp_sync();
    if (lane() == 0) barrier_arrive(kBarrier);
  } else {
    barrier_wait(kBarrier, 0);
    shared_store<u32>(lane() * 4, 2);
  }
}

const std::vector<Row>& rows() {
  static const std::vector<Row> kRows = {
      {"the arrival of lane 0 after warp_sync stands for the warp", "", "", 64, [] { tell(true); }},
      {"without warp_sync it stands for lane 0", "race", "warp 0 lane", 64, [] { tell(false); }},
      {"a refill after lane 0's arrival behind warp_sync", "", "", 64, [] { refill(true); }},
      {"a refill without that warp_sync", "race", "reads it", 64, [] { refill(false); }},
      {"a shuffle orders no memory", "race", "wrote it", 32,
       [] {
         shared_store<u32>(lane() * 4, 1);
         (void)shuffle_xor(1.0f, 1);
         (void)shared_load<u32>((lane() ^ 1) * 4);
       }},
      {"load_matrices orders none and wants all lanes' order", "race", "wrote it", 32,
       [] {
         for (int i = 0; i < 4; ++i) shared_store<u32>(lane() * 16 + i * 4, 1);
         u32 r[4];
         load_matrices(r, lane() * 16);
       }},
      {"two lanes write one place", "race", "writes byte 0", 32, [] { shared_store<u32>(0, 1); }},
      {"two warps write one place", "race", "wrote it", 64,
       [] {
         if (lane() == 0) shared_store<u32>(0, 1);
       }},
      {"many read one place", "", "", 64,
       [] {
         if (thread_index() == 5) shared_store<u32>(0, 1);
         block_sync();
         (void)shared_load<u32>(0);
       }},
      {"a read of what nobody wrote", "unwritten", "byte 8, which was never written", 32,
       [] {
         if (lane() == 9) (void)shared_load<u32>(8);
       }},
      {"beyond shared memory", "bounds", "shared memory has 4096", 32, [] { shared_store<u32>(4096, 1); }},
      {"misaligned", "bounds", "no multiple", 32, [] { shared_store<u32>(2, 1); }},
      {"a rows' address of load_matrices off by 8", "bounds", "reads 16 bytes at 8", 32,
       [] {
         u32 r[4];
         load_matrices(r, 8);
       }},
      {"data where a barrier lies", "bounds", "where a barrier lies", 32,
       [] {
         init_barrier(1);
         if (lane() == 1) shared_store<u32>(kBarrier + 4, 1);
       }},
      {"a barrier that nobody initialised", "barrier", "there is no barrier at byte 64", 32,
       [] { barrier_arrive(64); }},
      {"a barrier used before its initialisation is known", "race", "initialisation", 32,
       [] {
         if (thread_index() == 0) barrier_init(kBarrier, 1);
         (void)shuffle_xor(0.0f, 1);
         if (thread_index() == 7) barrier_arrive(kBarrier);
       }},
      {"an arrival too few", "deadlock", "1 of 2 arrivals", 64,
       [] {
         init_barrier(2);
         if (thread_index() == 0) barrier_arrive(kBarrier);
         if (warp() == 1) barrier_wait(kBarrier, 0);
       }},
      {"two phases on: the parity is that of the phase waited for, and the wait blocks", "deadlock",
       "2 phases complete", 64,
       [] {
         init_barrier(1);
         if (thread_index() == 0) barrier_arrive(kBarrier), barrier_arrive(kBarrier);
         block_sync();
         if (warp() == 1) barrier_wait(kBarrier, 0);
       }},
      {"a warp that does not come to a meeting", "deadlock", "meeting 3 (32 of 64 threads)", 64,
       [] {
         if (warp() == 0) role_sync<3, 64>();
       }},
      {"a meeting with two counts", "barrier", "where others meet", 96,
       [] {
         if (warp() == 0) role_sync<3, 96>();
         if (warp() == 1) role_sync<3, 64>();
       }},
      {"a meeting of half a warp", "barrier", "16 threads", 32, [] { role_sync<1, 16>(); }},
      {"lanes that part at a shuffle", "divergence", "warp_sync", 32,
       [] {
         if (lane() < 16)
           (void)shuffle_xor(1.0f, 1);
         else
           warp_sync();
       }},
      {"a lane that has left", "divergence", "ended", 32,
       [] {
         if (lane() > 0) warp_sync();
       }},
      {"what a plain store wrote is not what cp.async's arrival tells", "race", "wrote it", 64,
       [] {
         init_barrier(32);
         if (warp() == 0) {
           shared_store<u32>(lane() * 4, 1);
           warp_sync();
           barrier_arrive_after_copies(kBarrier);
         } else {
           barrier_wait(kBarrier, 0);
           (void)shared_load<u32>(lane() * 4);
         }
       }},
  };
  return kRows;
}

}  // namespace

TEST_CASE("what is a fault, and what is not") {
  for (const Row& row : rows()) {
    CAPTURE(std::string(row.name));
    for (const std::uint64_t seed : {1u, 2u, 3u, 4u}) {
      CAPTURE(seed);
      HandBlock block;
      block.threads = row.threads;
      block.options.seed = seed;
      const std::optional<Fault> fault = block.run(row.body);
      const std::string text = fault ? fault->text : "";
      CAPTURE(text);
      CHECK((fault ? to_string(fault->kind) : std::string()) == row.kind);
      CHECK(text.find(row.part) != std::string::npos);
    }
  }
}

TEST_CASE("copies in flight: neither their own thread nor others may touch the bytes") {
  struct Case {
    const char* name;
    const char* kind;
    std::function<void(std::byte*)> body;
  };
  const auto copy = [](std::byte* source) { copy_16(lane() * 16, source + lane() * 16, true); };
  const std::vector<Case> cases = {
      {"read by the thread that issued it", "race",
       [&](std::byte* source) {
         copy(source);
         (void)shared_load<u32>(lane() * 16);
       }},
      {"overwritten", "race",
       [&](std::byte* source) {
         copy(source);
         shared_store<u32>(lane() * 16, 1);
       }},
      {"read after the arrival of the copies, but without a wait", "race",
       [&](std::byte* source) {
         init_barrier(32);
         copy(source);
         barrier_arrive_after_copies(kBarrier);
         (void)shared_load<u32>(lane() * 16);
       }},
      {"a copy issued behind the arrival", "race",
       [&](std::byte* source) {
         init_barrier(32);
         barrier_arrive_after_copies(kBarrier);
         copy(source);
         barrier_wait(kBarrier, 0);
         (void)shared_load<u32>(lane() * 16);
       }},
      {"a copy over what others still read", "race",
       [&](std::byte* source) {
         shared_store<u32>(lane() * 16, 1);
         warp_sync();
         (void)shared_load<u32>((31 - lane()) * 16);
         copy(source);
       }},
      {"waited for", "",
       [&](std::byte* source) {
         init_barrier(32);
         copy(source);
         barrier_arrive_after_copies(kBarrier);
         barrier_wait(kBarrier, 0);
         (void)shared_load<u32>((31 - lane()) * 16);
       }},
      {"from bytes that do not exist", "global",
       [&](std::byte* source) { copy_16(lane() * 16, source + 16 * (lane() + 1), true); }},
      {"misaligned in global memory", "global",
       [&](std::byte* source) {
         if (lane() < 16) copy_16(lane() * 16, source + lane() * 16 + 8, true);
       }},
  };
  for (const Case& c : cases) {
    CAPTURE(std::string(c.name));
    for (const Landing landing : {Landing::late, Landing::random, Landing::early}) {
      HandBlock block;
      block.options.landing = landing;
      std::byte* const source = block.global.allocate("source", 512, AllocationKind::input);
      block.global.give("source", 0, 512);
      const std::optional<Fault> fault = block.run([&] { c.body(source); });
      const std::string text = fault ? fault->text : "";
      CAPTURE(text);
      CHECK((fault ? to_string(fault->kind) : std::string()) == c.kind);
    }
  }
}

TEST_CASE("global memory: existing bytes, written once, read where somebody wrote them") {
  const auto fault_of = [](const std::function<void(float* in, float* out)>& body) {
    HandBlock block;
    auto* const in = reinterpret_cast<float*>(block.global.allocate("in", 64, AllocationKind::input));
    auto* const out = reinterpret_cast<float*>(block.global.allocate("out", 64, AllocationKind::output));
    block.global.give("in", 0, 64);
    block.global.forbid("in", 32, 48);
    const std::optional<Fault> fault = block.run([&] {
      if (thread_index() == 0) body(in, out);
    });
    return fault ? fault->text : "";
  };
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  CHECK(fault_of([](float* in, float* out) { global_store(out, global_load(in)); }).empty());
  CHECK(has(fault_of([](float* in, float*) { (void)global_load(in + 16); }), "in no tensor"));
  CHECK(has(fault_of([](float* in, float*) { (void)global_load(in + 8); }), "in at byte 32: the row does not exist"));
  CHECK(has(fault_of([](float*, float* out) { (void)global_load(out); }), "never written"));
  CHECK(has(fault_of([](float*, float* out) { global_store(out, 1.0f), global_store(out, 1.0f); }), "written twice"));
  CHECK(has(fault_of([](float*, float* out) { global_store(out, 1.0f), (void)global_load(out); }), "same launch"));
  CHECK(has(fault_of([](float* in, float*) { global_store(in, 1.0f); }), "it is an input"));
}

// Two roles of a warpgroup each, two blocks an SM: 128 registers a thread to begin with.
TEST_CASE("registers move between warpgroups, as many as there are") {
  Kernel kernel;
  kernel.name = "registers";
  kernel.launch_registers = 128;
  kernel.roles = {{"giver", 4, 24, {}, {}, {}}, {"taker", 4, 232, {}, {}, {}}};
  kernel.smem_bytes = 16;
  kernel.blocks_per_sm = 2;
  const auto fault_of = [&](const std::function<void()>& body) {
    const KernelFacts facts(kernel);
    GlobalMemory global;
    BlockRun run;
    run.facts = &facts;
    run.threads = 256;
    run.smem_bytes = 16;
    run.global = &global;
    const std::optional<Fault> fault = run_block(run, 0, body);
    return fault ? fault->text : "";
  };
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  CHECK(fault_of([] { warp() < 4 ? set_registers<24, false>() : set_registers<232, true>(); }).empty());
  CHECK(has(fault_of([] { warp() < 4 ? set_registers<24, false>() : set_registers<240, true>(); }), "240 registers"));
  CHECK(has(fault_of([] { set_registers<120, true>(); }), "than its 128"));
  CHECK(has(fault_of([] {
              if (warp() == 2) set_registers<24, false>();
            }),
            "of its warpgroup"));
}

TEST_CASE("bank conflicts of single accesses") {
  const auto passes = [](int bytes, const std::function<int(int)>& byte_of) {
    std::vector<BankCounter::Lane> lanes;
    for (int i = 0; i < 32; ++i) lanes.push_back({i, byte_of(i)});
    BankCounter counter;
    counter.add(0, lanes, bytes);
    return std::pair(counter.by_op().at(0).passes, counter.by_op().at(0).best);
  };
  CHECK(passes(4, [](int i) { return i * 4; }) == std::pair<std::int64_t, std::int64_t>(1, 1));
  CHECK(passes(4, [](int) { return 64; }) == std::pair<std::int64_t, std::int64_t>(1, 1));  // all the same word
  CHECK(passes(4, [](int i) { return i * 8; }) == std::pair<std::int64_t, std::int64_t>(2, 1));
  CHECK(passes(4, [](int i) { return i * 128; }) == std::pair<std::int64_t, std::int64_t>(32, 1));
  CHECK(passes(2, [](int i) { return i * 2; }) == std::pair<std::int64_t, std::int64_t>(1, 1));
  CHECK(passes(16, [](int i) { return i * 16; }) == std::pair<std::int64_t, std::int64_t>(4, 4));
  CHECK(passes(16, [](int i) { return i * 128; }) == std::pair<std::int64_t, std::int64_t>(32, 4));  // unswizzled rows
  CHECK(passes(16, [](int i) { return i * 128 + (i % 8) * 16; }) == std::pair<std::int64_t, std::int64_t>(4, 4));
}

}  // namespace gdr::host
