// Loads and stores, and how faults are told.
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "machine.hpp"

namespace gdr::host {

std::string Machine::who(int thread, Place place) const {
  const int warp = thread / kLanes, lane = thread % kLanes;
  if (run_.facts == nullptr) return fmt::format("warp {} lane {}", warp, lane);
  const Role& role = run_.facts->role_of_warp(warp);
  const std::string op = place.op < 0 ? "before the first op" : "op " + run_.facts->op(place.op).id;
  return fmt::format("role {}, warp {} lane {}, {}, iteration {}", role.name, warp - run_.facts->first_warp(role), lane,
                     op, place.iteration);
}

void Machine::fail(FaultKind kind, int thread, Place place, const std::string& what, int byte) {
  if (fault_) return;
  Fault fault;
  fault.kind = kind;
  std::string kernel;
  if (run_.facts != nullptr) {
    kernel = fmt::format("kernel {}, ", run_.facts->kernel().name);
    fault.role = run_.facts->role_of_warp(thread / kLanes).name;
    if (place.op >= 0) fault.op = run_.facts->op(place.op).id;
    if (byte >= 0) fault.tile = run_.facts->tile_at(place.op, place.iteration, byte);
  }
  fault.text = fmt::format("{}: {}block {}, {}: {}", to_string(kind), kernel, block_, who(thread, place), what);
  fault_ = std::move(fault);
}

void Machine::clash(int thread, const Clash& clash, const char* verb) {
  const Place place = thread_at(thread).place;
  const std::string what = run_.facts != nullptr ? run_.facts->name_byte(place.op, place.iteration, clash.byte)
                                                 : fmt::format("byte {}", clash.byte);
  const int other = clash.component >= 0 ? clocks_.thread_of(clash.component) : thread;
  std::string how;
  switch (clash.kind) {
    case ClashKind::none:
      return;
    case ClashKind::unwritten:
      fail(FaultKind::unwritten, thread, place, fmt::format("{} {}, which was never written", verb, what), clash.byte);
      return;
    case ClashKind::barrier:
      fail(FaultKind::bounds, thread, place, fmt::format("{} {}, where a barrier lies", verb, what), clash.byte);
      return;
    case ClashKind::with_write:
      how = "wrote it";
      break;
    case ClashKind::with_read:
      how = "reads it";
      break;
    case ClashKind::with_copy:
      how = "copies into it";
      break;
  }
  std::string there;
  if (run_.facts != nullptr && clash.place.op >= 0)
    there = fmt::format(" ({} there)", run_.facts->name_byte(clash.place.op, clash.place.iteration, clash.byte));
  fail(FaultKind::race, thread, place,
       fmt::format("{} {}, and nothing orders that after: {} {}{}", verb, what, who(other, clash.place), how, there),
       clash.byte);
}

// Bounds and alignment of an access of the running thread to shared memory.
bool Machine::check_access(int byte, int bytes, bool writes) {
  const Place place = me().place;
  const char* verb = writes ? "writes" : "reads";
  if (byte < 0 || byte + bytes > memory_.size()) {
    fail(FaultKind::bounds, thread_, place,
         fmt::format("{} bytes {} to {}, shared memory has {}", verb, byte, byte + bytes - 1, memory_.size()));
  } else if (byte % bytes != 0) {
    fail(FaultKind::bounds, thread_, place, fmt::format("{} {} bytes at {}, no multiple of that", verb, bytes, byte),
         byte);
  } else if (run_.facts != nullptr && place.op >= 0 &&
             !run_.facts->may_touch(place.op, place.iteration, byte, bytes, writes)) {
    fail(FaultKind::bounds, thread_, place,
         fmt::format("{} {}, outside what the op may ({} bytes)", verb,
                     run_.facts->name_byte(place.op, place.iteration, byte), bytes),
         byte);
  }
  return !fault_;
}

void Machine::shared_load(int byte, void* value, int bytes, const void* site) {
  if (check_access(byte, bytes, false)) {
    if (const Clash found = memory_.read(thread_, byte, bytes, me().place)) clash(thread_, found, "reads");
    std::memcpy(value, memory_.at(byte), static_cast<std::size_t>(bytes));
    note_access(byte, bytes, site);
  }
  stop_if_faulty();
}

void Machine::shared_store(int byte, const void* value, int bytes, const void* site) {
  if (check_access(byte, bytes, true)) {
    if (const Clash found = memory_.write(thread_, byte, bytes, me().place)) clash(thread_, found, "writes");
    std::memcpy(memory_.at(byte), value, static_cast<std::size_t>(bytes));
    note_access(byte, bytes, site);
    Warp& warp = warp_at(thread_ / kLanes);
    if (run_.observer && !warp.visits.empty())
      warp.visits[static_cast<std::size_t>(me().ops_entered - 1 - warp.first_visit)].stored.push_back({byte, bytes});
  }
  stop_if_faulty();
}

// The tensors that the running op reads or writes; null: it is not known.
const std::vector<std::string>* Machine::operands(bool writes) {
  return run_.facts != nullptr && me().place.op >= 0 ? &run_.facts->tensors(me().place.op, writes) : nullptr;
}

bool Machine::check_global(const std::string& wrong, const char* verb) {
  if (!wrong.empty()) fail(FaultKind::global, thread_, me().place, fmt::format("{} {}", verb, wrong));
  return wrong.empty();
}

void Machine::global_load(const void* at, void* value, int bytes) {
  if (check_global(run_.global->read(at, bytes, operands(false)), "reads"))
    std::memcpy(value, at, static_cast<std::size_t>(bytes));
  stop_if_faulty();
}

void Machine::global_store(void* at, const void* value, int bytes) {
  if (check_global(run_.global->write(at, bytes, operands(true)), "writes"))
    std::memcpy(at, value, static_cast<std::size_t>(bytes));
  stop_if_faulty();
}

// ex2.approx.ftz: subnormal operands and results are zero.
float Machine::exponential(float x) const {
  if (run_.options.exponential == Exponential::library) return std::exp(x);
  constexpr float kLog2E = 1.4426950408889634f;
  const auto flushed = [](float y) { return std::fpclassify(y) == FP_SUBNORMAL ? std::copysign(0.0f, y) : y; };
  return flushed(std::exp2(flushed(x * kLog2E)));
}

}  // namespace gdr::host
