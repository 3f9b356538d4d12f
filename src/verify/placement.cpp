#include "verify/placement.hpp"

#include <algorithm>
#include <cstdint>

#include "core/dtype.hpp"
#include "schedule/layout.hpp"
#include "verify/elements.hpp"

namespace gdr::verifying {
namespace {

constexpr int kMatrixAlign = 128;  // a row of 32 banks, so that the swizzle spreads what it is meant to spread
constexpr int kVectorAlign = 16;   // the widest access
constexpr int kBarrierBytes = 8;
constexpr int kMaxSmemBytes = 1 << 20;  // more than any architecture has: a plan beyond it is nonsense

// Plain rows in one panel; everything else is read by ldmatrix.
bool is_vector(const Tile& tile) {
  return !tile.smem.lower16 && tile.smem.xor_mask == 0 && tile.smem.panel_cols >= tile.cols;
}

int barrier_bytes(const Kernel& kernel) {
  int copies = 0;
  for (const Barrier& barrier : kernel.barriers) copies += barrier.kind == BarrierKind::mbarrier ? barrier.stages : 0;
  return copies * kBarrierBytes;
}

// One past the last byte; 64 bits because the offset is whatever the plan says.
std::int64_t end_of(const Tile& tile) { return std::int64_t{tile.offset_bytes} + tile_bytes(tile); }

class Placement {
 public:
  Placement(const KernelIndex& index, Findings& findings)
      : kernel_(*index.kernel), limit_(index.plan->smem_limit_bytes), out_(findings) {}

  bool check() {
    if (kernel_.smem_bytes < 0 || kernel_.smem_bytes > kMaxSmemBytes) {
      out_.add("GDR-V17", "{} B of shared memory; 0 to {} B are possible", kernel_.smem_bytes, kMaxSmemBytes);
      return false;
    }
    if (kernel_.smem_bytes > limit_)
      out_.add("GDR-V17", "{} B of shared memory; a block may have {} B: {} B too many", kernel_.smem_bytes, limit_,
               kernel_.smem_bytes - limit_);
    bool usable = true;
    for (const Tile& tile : kernel_.tiles)
      if (tile.space == Space::smem) usable &= check_place(tile) && check_elements(tile);
    check_barriers();
    return usable;
  }

 private:
  bool check_place(const Tile& tile) {
    const auto bad = [&](const std::string& what, bool usable = false) {
      Finding& finding = out_.add("GDR-V17", "tile {} {}", tile.name, what);
      finding.tile = tile.name;
      finding.byte_begin = tile.offset_bytes;
      return usable;
    };
    if (tile.offset_bytes < 0) return bad("has no offset");
    if (end_of(tile) > kernel_.smem_bytes)
      return bad(fmt::format("ends at byte {}; the block has {} B: {} B too many", end_of(tile), kernel_.smem_bytes,
                             end_of(tile) - kernel_.smem_bytes));
    const int align = is_vector(tile) ? kVectorAlign : kMatrixAlign;
    for (int stage = 0; stage < tile.stages; ++stage)
      for (int part = 0; part < tile.resident; ++part)
        if (slot_offset(tile, stage, part) % align != 0)
          return bad(fmt::format("has a slot at byte {} (stage {}, part {}), which is no multiple of {}",
                                 slot_offset(tile, stage, part), stage, part, align),
                     true);
    return true;
  }

  // Elements of a part lie in its slot, no two on the same byte.
  bool check_elements(const Tile& tile) {
    const int elem = static_cast<int>(size_bytes(tile.dtype));
    const int rows = part_rows(tile);
    for (int stage = 0; stage < tile.stages; ++stage) {
      const ElementMap map = map_elements(tile, stage);
      for (int part = 0; part < tile.parts; ++part) {
        const int begin = slot_offset(tile, stage, part);
        std::vector<bool> taken(static_cast<std::size_t>(part_bytes(tile)), false);
        for (int i = part * rows * tile.cols; i < (part + 1) * rows * tile.cols; ++i) {
          const int byte = at(map.byte, i);
          if (byte < 0) continue;
          const bool inside = byte >= begin && byte + elem <= begin + part_bytes(tile);
          if (inside && !at(taken, byte - begin)) {
            std::fill_n(taken.begin() + (byte - begin), elem, true);
            continue;
          }
          Finding& finding = out_.add(
              "GDR-V16", "tile {} has element ({}, {}) at byte {}, {} its slot {}..{} (stage {}, part {})", tile.name,
              i / tile.cols, i % tile.cols, byte, inside ? "where another element lies in" : "outside", begin,
              begin + part_bytes(tile), stage, part);
          finding.tile = tile.name;
          finding.byte_begin = byte;
          finding.byte_end = byte + elem;
          return false;
        }
      }
    }
    return true;
  }

  void check_barriers() {
    const int bytes = barrier_bytes(kernel_);
    if (bytes == 0) return;
    const int begin = kernel_.barrier_offset_bytes;
    if (begin < 0 || begin % kBarrierBytes != 0 || begin > kernel_.smem_bytes - bytes) {
      out_.add("GDR-V17", "the barriers ({} B) lie at byte {} of {}; they must lie inside, at a multiple of {}", bytes,
               begin, kernel_.smem_bytes, kBarrierBytes);
      return;
    }
    for (const Tile& tile : kernel_.tiles)
      if (tile.space == Space::smem && tile.offset_bytes >= 0 && tile.offset_bytes < begin + bytes &&
          end_of(tile) > begin) {
        Finding& finding = out_.add("GDR-V17", "the barriers at bytes {}..{} lie on tile {} at {}..{}", begin,
                                    begin + bytes, tile.name, tile.offset_bytes, end_of(tile));
        finding.tile = tile.name;
        finding.byte_begin = std::max(begin, tile.offset_bytes);
        finding.byte_end = begin + bytes;
      }
  }

  const Kernel& kernel_;
  int limit_;
  Findings& out_;
};

}  // namespace

bool check_placement(const KernelIndex& index, Findings& findings) { return Placement(index, findings).check(); }

}  // namespace gdr::verifying
