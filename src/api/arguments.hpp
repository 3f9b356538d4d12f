// Checks of the arguments of a call. What passes is a problem of which every tensor has the rank, sizes, dtype, strides
// and device it must have; what does not is a config Error that names function, argument, value and expectation.
//
// Codes: A01 missing (null pointer, no shape), A02 dtype, A03 rank, A04 size, A05 strides, A06 shared memory,
// A07 cu_seqlens, A08 head counts, A11 options and scale; kind unsupported: A09 device, A10 backend.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "cpu/call.hpp"
#include "gdr/gdr.hpp"

namespace gdr {

// A call that is checked, its tensors as strided views. Only cu_seqlens is read, so of tensors in device memory it must
// not be one (gpu/support.hpp refuses it before).
cpu::FwdCall check_fwd(const FwdArgs& args, const Options& options);
cpu::BwdCall check_bwd(const BwdArgs& args, const Options& options);

// The device that the tensors of a call lie on; Error A09 if they do not agree.
Device device_of(const FwdArgs& args);
Device device_of(const BwdArgs& args);

// Head counts and dimensions: positive, v_heads a multiple of k_heads. Throws Error A04, A08.
void check_heads(std::string_view function, std::int64_t k_heads, std::int64_t v_heads, std::int64_t dim_k,
                 std::int64_t dim_v);

// Values that are wrong for every backend. Throws Error A11.
void check_options(std::string_view function, const Options& options);

}  // namespace gdr
