// The block that runs: what the primitives do. One machine at a time; a primitive finds it by Machine::current().
#pragma once

#include <array>
#include <deque>
#include <memory>

#include "clocks.hpp"
#include "engine.hpp"
#include "fiber.hpp"
#include "shared_memory.hpp"

namespace gdr::host {

constexpr int kLanes = 32;

// What the lanes of a warp do together.
enum class Together {
  shuffle_xor,
  shuffle_up,
  shuffle_down,
  shuffle_from,
  warp_sync,
  load_matrices,
  load_matrices_transposed,
  transpose_matrix,
  product_bf16,
  product_fp16,
  block_sync,
  role_sync,
  set_registers
};
const char* to_string(Together kind);

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {  // splitmix64
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  int below(int limit) { return static_cast<int>(next() % static_cast<std::uint64_t>(limit)); }

 private:
  std::uint64_t state_;
};

class Machine {
 public:
  Machine(const BlockRun& run, int block, const std::function<void()>& body);
  ~Machine();

  static Machine& current();
  std::optional<Fault> execute();

  // The primitives; called on a thread's fiber. After each the thread stops for good if there is a fault.
  void at_op(int op, int iteration);
  int block() const { return block_; }
  int thread() const { return thread_; }
  void shared_load(int byte, void* value, int bytes, const void* site);
  void shared_store(int byte, const void* value, int bytes, const void* site);
  void global_load(const void* at, void* value, int bytes);
  void global_store(void* at, const void* value, int bytes);
  float exponential(float x) const;
  float shuffle(Together kind, float value, int by);
  void warp_sync();
  void load_matrices(std::uint32_t* r, int byte, bool transposed);
  std::uint32_t transpose_matrix(std::uint32_t pair);
  void matrix_product(Together type, float* d, const std::uint32_t* a, std::uint32_t b0, std::uint32_t b1);
  void copy_16(int byte, const void* source, bool is_there, const void* site);
  void barrier_init(int byte, int arrivals);
  void barrier_arrive(int byte);
  void barrier_arrive_after_copies(int byte);
  void barrier_wait(int byte, int parity);
  void block_sync();
  void role_sync(int id, int threads);
  void set_registers(int registers, bool more);

 private:
  enum class Waits { no, for_lanes, for_phase, for_meeting, for_registers, ended };
  struct LaneRequest {  // what a lane brings to, and takes from, what its warp does together
    float value = 0;
    int number = 0;
    std::uint32_t* matrices = nullptr;
    float* d = nullptr;
    const std::uint32_t* a = nullptr;
    std::uint32_t b[2] = {};
  };
  struct PendingCopy {  // or, with barrier >= 0, an arrival behind the copies before it
    int byte = 0;
    const void* source = nullptr;  // null: zeros
    int barrier = -1;
    Place place;
    Epoch epoch = 0;
    Knowledge at_issue;
  };
  struct Thread {
    std::optional<Fiber> fiber;
    Place place;
    std::int64_t ops_entered = 0;
    Waits waits = Waits::no;
    int waits_at = 0;  // barrier byte, meeting id
    LaneRequest request;
    std::deque<PendingCopy> pending;
    Knowledge at_last_copy;
  };
  struct Access {  // for counting banks
    const void* site;
    int lane, byte, bytes;
  };
  struct OpVisit {  // of a warp, until its last lane has left
    Place place;
    int left = 0;
    std::vector<StoredBytes> stored;
    std::vector<Access> accesses;
  };
  struct Warp {
    std::uint32_t ready = 0;    // lanes
    std::uint32_t arrived = 0;  // at what they do together
    Together together = Together::warp_sync;
    int number = 0;  // id or registers of it
    int registers = 0;
    std::int64_t first_visit = 0;  // ordinal of visits.front()
    std::deque<OpVisit> visits;
  };
  struct Phases {  // an mbarrier
    int arrivals = 0;
    int pending = 0;
    std::int64_t completed = 0;
    Gathering gathering;
    Knowledge released;  // by the last complete phase
    int initialiser = 0;
    Epoch init_epoch = 0;
    std::vector<int> waiting;
  };
  struct Meeting {  // a named barrier
    int threads = 0;
    std::vector<int> present;
  };
  struct RegisterRequest {
    int warp, registers;
  };

  // Scheduling (machine.cpp).
  static void run_thread(void* machine);
  int pick_warp();
  void run_lanes(int warp);
  bool land_some(bool forced);
  void land_first(int thread);
  void suspend(Waits reason, int at);
  void stop_if_faulty();
  void wake(int thread);
  void leave_op(int thread);
  void finish_visit(int warp, OpVisit& visit);
  void deadlock();
  std::string what_it_waits_for(int warp) const;

  // Faults.
  std::string who(int thread, Place place) const;
  void fail(FaultKind kind, int thread, Place place, const std::string& what, int byte = -1);
  void clash(int thread, const Clash& clash, const char* verb);
  bool check_access(int byte, int bytes, bool writes);
  const std::vector<std::string>* operands(bool writes);
  bool check_global(const std::string& wrong, const char* verb);
  void note_access(int byte, int bytes, const void* site);

  // What warps do together (collectives.cpp).
  LaneRequest& together(Together kind, int number, const LaneRequest& request);
  void do_together(int warp);
  void shuffle_lanes(int warp);
  void sync_warp(int warp);
  void load_lanes_matrices(int warp);
  void transpose_lanes(int warp);
  void multiply_lanes(int warp);
  void meet(int warp);
  void take_registers(int warp);
  void grant_registers();
  void check_warpgroups();
  bool lanes_know_the_same(int warp) const;

  // mbarriers (barriers.cpp).
  Phases* barrier_at(int byte);
  void complete_arrival(int thread, Place place, int byte, Phases& phases);
  bool phase_is_over(Phases& phases, int byte, int parity);

  Thread& me() { return threads_[static_cast<std::size_t>(thread_)]; }
  Thread& thread_at(int i) { return threads_[static_cast<std::size_t>(i)]; }
  Warp& warp_at(int i) { return warps_[static_cast<std::size_t>(i)]; }
  bool is_skipped() { return me().place.op >= 0 && run_.options.skipped_ops.contains(me().place.op); }

  const BlockRun& run_;
  const int block_;
  const std::function<void()>& body_;
  Random random_;
  Clocks clocks_;
  SharedMemory memory_;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::map<int, Phases> phases_;      // by byte
  std::array<Meeting, 16> meetings_;  // by id; 0 is the whole block
  int free_registers_ = 0;            // of the block's share of the register file
  std::vector<RegisterRequest> register_requests_;
  int thread_ = 0;  // that runs
  int favoured_role_ = 0;
  std::vector<int> with_copies_;  // threads that have pending copies or arrivals
  std::optional<Fault> fault_;
};

}  // namespace gdr::host
