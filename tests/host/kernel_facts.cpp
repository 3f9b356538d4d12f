#include "kernel_facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "schedule/layout.hpp"

namespace gdr::host {
namespace {

constexpr int kCellBytes = 2, kBarrierBytes = 8;

bool is_shared(const Kernel& kernel, const Operand& operand) {
  return !operand.is_tensor && kernel.tile(operand.name).space == Space::smem;
}

int element_bytes(const Tile& tile) { return static_cast<int>(size_bytes(tile.dtype)); }

}  // namespace

KernelFacts::KernelFacts(const Kernel& kernel, const std::map<std::string, int>& tile_bytes)
    : kernel_(kernel), tile_bytes_(tile_bytes), ops_(kernel.ops.size()) {}

const KernelFacts::OpFacts& KernelFacts::facts_of(int op) const {
  std::optional<OpFacts>& facts = ops_[static_cast<std::size_t>(op)];
  if (!facts) facts = make_facts(kernel_.ops[static_cast<std::size_t>(op)]);
  return *facts;
}

KernelFacts::OpFacts KernelFacts::make_facts(const Op& op) const {
  OpFacts facts;
  for (const Operand& operand : op.operands) {
    const bool reads = operand.access != Access::write, writes = operand.access != Access::read;
    if (operand.is_tensor) {
      if (reads) facts.read_tensors.push_back(operand.name);
      if (writes) facts.written_tensors.push_back(operand.name);
    } else if (is_shared(kernel_, operand)) {
      facts.period = std::lcm(facts.period, kernel_.tile(operand.name).stages);
    }
  }
  const auto cells = static_cast<std::size_t>((kernel_.smem_bytes + kCellBytes - 1) / kCellBytes);
  for (int iteration = 0; iteration < facts.period; ++iteration) {
    std::vector<bool> read(cells), written(cells);
    for (const Operand& operand : op.operands) {
      if (!is_shared(kernel_, operand)) continue;
      const Tile& tile = kernel_.tile(operand.name);
      const auto limited = tile_bytes_.find(tile.name);
      const int end = tile.offset_bytes + (limited == tile_bytes_.end() ? gdr::tile_bytes(tile) : limited->second);
      for (int row = operand.rows.begin; row < operand.rows.end; ++row)
        for (int col = operand.cols.begin; col < operand.cols.end; ++col) {
          if (!element_exists(tile, row, col)) continue;
          const int first = element_byte(tile, iteration, row, col);
          for (int byte = first; byte < std::min(first + element_bytes(tile), end); byte += kCellBytes) {
            if (operand.access != Access::write) read[static_cast<std::size_t>(byte / kCellBytes)] = true;
            if (operand.access != Access::read) written[static_cast<std::size_t>(byte / kCellBytes)] = true;
          }
        }
    }
    facts.reads.push_back(std::move(read));
    facts.writes.push_back(std::move(written));
  }
  return facts;
}

const Role& KernelFacts::role_of_warp(int warp) const {
  for (const Role& role : kernel_.roles) {
    if (warp < role.warps) return role;
    warp -= role.warps;
  }
  return kernel_.roles.back();
}

int KernelFacts::first_warp(const Role& role) const {
  int first = 0;
  for (const Role& other : kernel_.roles) {
    if (other.name == role.name) break;
    first += other.warps;
  }
  return first;
}

bool KernelFacts::may_touch(int op, int iteration, int byte, int bytes, bool writes) const {
  const OpFacts& facts = facts_of(op);
  const std::vector<bool>& cells =
      (writes ? facts.writes : facts.reads)[static_cast<std::size_t>(std::max(iteration, 0) % facts.period)];
  for (int at = byte; at < byte + bytes; at += kCellBytes)
    if (!cells[static_cast<std::size_t>(at / kCellBytes)]) return false;
  return true;
}

const std::vector<std::string>& KernelFacts::tensors(int op, bool writes) const {
  const OpFacts& facts = facts_of(op);
  return writes ? facts.written_tensors : facts.read_tensors;
}

KernelFacts::Found KernelFacts::find(int op, int iteration, int byte) const {
  const auto in_tile = [&](const Tile& tile, Range rows, Range cols, int at) {
    for (int row = rows.begin; row < rows.end; ++row)
      for (int col = cols.begin; col < cols.end; ++col) {
        if (!element_exists(tile, row, col)) continue;
        const int first = element_byte(tile, at, row, col);
        if (byte >= first && byte < first + element_bytes(tile)) return Found{&tile, row, col};
      }
    return Found{};
  };
  if (op >= 0)
    for (const Operand& operand : kernel_.ops[static_cast<std::size_t>(op)].operands) {
      if (!is_shared(kernel_, operand)) continue;
      const Found found = in_tile(kernel_.tile(operand.name), operand.rows, operand.cols, std::max(iteration, 0));
      if (found.tile != nullptr) return found;
    }
  for (const Tile& tile : kernel_.tiles) {
    if (tile.space != Space::smem) continue;
    for (int stage = 0; stage < tile.stages; ++stage) {
      const Found found = in_tile(tile, {0, tile.rows}, {0, tile.cols}, stage);
      if (found.tile != nullptr) return found;
    }
  }
  return {};
}

std::string KernelFacts::name_byte(int op, int iteration, int byte) const {
  const Found found = find(op, iteration, byte);
  if (found.tile == nullptr) return fmt::format("byte {}, in no tile", byte);
  return fmt::format("tile {} ({}, {}) at byte {}", found.tile->name, found.row, found.col, byte);
}

std::string KernelFacts::tile_at(int op, int iteration, int byte) const {
  const Found found = find(op, iteration, byte);
  return found.tile == nullptr ? "" : found.tile->name;
}

std::optional<BarrierPlace> KernelFacts::barrier_at(int byte) const {
  int first = kernel_.barrier_offset_bytes;
  for (const Barrier& barrier : kernel_.barriers) {
    if (barrier.kind != BarrierKind::mbarrier) continue;
    if (byte >= first && byte < first + barrier.stages * kBarrierBytes)
      return BarrierPlace{&barrier, (byte - first) / kBarrierBytes};
    first += barrier.stages * kBarrierBytes;
  }
  return std::nullopt;
}

const Barrier* KernelFacts::barrier_of(int op) const {
  for (const Barrier& barrier : kernel_.barriers)
    if (barrier.name == kernel_.ops[static_cast<std::size_t>(op)].barrier) return &barrier;
  return nullptr;
}

}  // namespace gdr::host
