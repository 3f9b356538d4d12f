// NumPy's .npy files, strictly: little-endian float16, float32, float64, int32 and int64 in C order. A file that is
// anything else, or whose length does not fit its header exactly, is a config Error (GDR-R01) that names the file,
// what was found and what is allowed; no byte of it is trusted before that.
#pragma once

#include <filesystem>

#include "cli/owned_tensor.hpp"

namespace gdr {

OwnedTensor read_npy(const std::filesystem::path& path);

// Writes the tensor, whole or not at all (write_file). bf16, which NumPy does not have, is written as float32. Throws a
// config Error (GDR-L01) with the reason if it cannot be written.
void write_npy(const std::filesystem::path& path, const OwnedTensor& tensor);

}  // namespace gdr
