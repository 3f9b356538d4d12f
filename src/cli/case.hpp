// A folder with one problem, as tools/oracle.py case writes it: case.json, the inputs as .npy files, and optionally the
// expected outputs out_NAME.npy.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "cli/owned_tensor.hpp"
#include "gdr/gdr.hpp"

namespace gdr {

enum class Direction { fwd, bwd };

struct Case {
  std::int64_t batch = 0, tokens = 0, sequences = 0, k_heads = 0, v_heads = 0, dim_k = 0, dim_v = 0;
  double scale = 1;
  StateLayout layout = StateLayout::kv;
  // As read: q, k, v, g, beta and where they belong to the case h0, cu_seqlens, and for bwd do, dht.
  std::map<std::string, OwnedTensor> inputs;
  // The outputs of this direction that the folder holds, by their names without "out_".
  std::map<std::string, OwnedTensor> expected;

  // Shape of a tensor by its name in the folder (q, dq, h0, final_state ...).
  Dims shape_of(const std::string& name) const;
};

// Reads what the direction needs. Throws config Errors: GDR-C.. (case.json is not JSON, or a key is missing, unknown or
// wrong), GDR-R01 (a .npy file), GDR-R02 (a file and case.json disagree).
Case read_case(const std::filesystem::path& folder, Direction direction);

// The names of a direction's outputs.
const std::vector<std::string>& output_names(Direction direction);

}  // namespace gdr
