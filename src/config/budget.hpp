// A Budget says how much memory a kernel may use. It is a wish: what an architecture grants is decided by
// smem_limit_bytes, which refuses what the architecture cannot give.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "config/arch.hpp"
#include "config/json.hpp"

namespace gdr {

struct Budget {
  std::string name;
  std::optional<std::int64_t> smem_bytes_per_block;  // absent ("optin"): what the arch grants a block
  int blocks_per_sm = 1;                             // that must fit on an SM together
  std::optional<std::int64_t> max_workspace_bytes;   // in global memory; absent: no cap

  bool operator==(const Budget&) const = default;
};

// Reads a budget config. Throws a config Error (codes of config/json.hpp).
Budget read_budget(const JsonDocument& document);

// A budget given as a number of bytes, for example "98304": digits alone. Throws a config Error (C08).
Budget parse_budget(std::string_view bytes);

// The most shared memory in bytes that one block may use on `arch`: the budget's figure, or else the opt-in limit,
// or an equal share of an SM (less what the system reserves, in steps of 128 bytes) if several blocks must fit.
// Throws an unsupported Error (GDR-C12) with both figures if the budget asks for more than that.
std::int64_t smem_limit_bytes(const Budget& budget, const Arch& arch);

}  // namespace gdr
