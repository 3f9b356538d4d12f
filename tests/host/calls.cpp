// What templates/device/host.hpp declares, as calls of the machine that runs.
#include <bit>
#include <cmath>

#include "core/dtype.hpp"
#include "machine.hpp"

// The declarations, so that the compiler compares them with the definitions.
namespace gdr::host::declared {
#include "device/host.hpp"
}  // namespace gdr::host::declared

using gdr::host::Machine;
using gdr::host::Together;

namespace {

// Conversions of the GPU give one NaN.
constexpr std::uint32_t kNanBf16 = 0x7fff, kNanFp16 = 0x7fff;
std::uint32_t bf16_bits(float x) { return std::isnan(x) ? kNanBf16 : gdr::bf16_from_float(x); }
std::uint32_t fp16_bits(float x) { return std::isnan(x) ? kNanFp16 : gdr::fp16_from_float(x); }

}  // namespace

// The place of the program that makes an access: what its n-th access of one lane has in common with the other lanes'.
#define GDR_SITE __builtin_return_address(0)

extern "C" {

void gdr_host_at_op(int op, int iteration) { Machine::current().at_op(op, iteration); }
int gdr_host_block_index() { return Machine::current().block(); }
int gdr_host_thread_index() { return Machine::current().thread(); }
void gdr_host_shared_load(int byte, void* value, int bytes) {
  Machine::current().shared_load(byte, value, bytes, GDR_SITE);
}
void gdr_host_shared_store(int byte, const void* value, int bytes) {
  Machine::current().shared_store(byte, value, bytes, GDR_SITE);
}
void gdr_host_global_load(const void* at, void* value, int bytes) { Machine::current().global_load(at, value, bytes); }
void gdr_host_global_store(void* at, const void* value, int bytes) {
  Machine::current().global_store(at, value, bytes);
}
float gdr_host_float_of_bits(std::uint32_t bits) { return std::bit_cast<float>(bits); }
std::uint32_t gdr_host_pack_bf16(float lo, float hi) { return bf16_bits(lo) | bf16_bits(hi) << 16; }
std::uint32_t gdr_host_pack_fp16(float lo, float hi) { return fp16_bits(lo) | fp16_bits(hi) << 16; }
float gdr_host_float_of_fp16(std::uint16_t bits) { return gdr::float_from_fp16(bits); }
float gdr_host_exp_of(float x) { return Machine::current().exponential(x); }
float gdr_host_shuffle_xor(float value, int mask) {
  return Machine::current().shuffle(Together::shuffle_xor, value, mask);
}
float gdr_host_shuffle_up(float value, int distance) {
  return Machine::current().shuffle(Together::shuffle_up, value, distance);
}
float gdr_host_shuffle_down(float value, int distance) {
  return Machine::current().shuffle(Together::shuffle_down, value, distance);
}
float gdr_host_shuffle_from(float value, int lane) {
  return Machine::current().shuffle(Together::shuffle_from, value, lane);
}
void gdr_host_warp_sync() { Machine::current().warp_sync(); }
void gdr_host_load_matrices(std::uint32_t* r, int byte, bool transposed) {
  Machine::current().load_matrices(r, byte, transposed);
}
std::uint32_t gdr_host_transpose_matrix(std::uint32_t pair) { return Machine::current().transpose_matrix(pair); }
void gdr_host_matrix_product_bf16(float* d, const std::uint32_t* a, std::uint32_t b0, std::uint32_t b1) {
  Machine::current().matrix_product(Together::product_bf16, d, a, b0, b1);
}
void gdr_host_matrix_product_fp16(float* d, const std::uint32_t* a, std::uint32_t b0, std::uint32_t b1) {
  Machine::current().matrix_product(Together::product_fp16, d, a, b0, b1);
}
void gdr_host_copy_16(int byte, const void* source, bool is_there) {
  Machine::current().copy_16(byte, source, is_there, GDR_SITE);
}
void gdr_host_barrier_init(int byte, int arrivals) { Machine::current().barrier_init(byte, arrivals); }
void gdr_host_barrier_arrive(int byte) { Machine::current().barrier_arrive(byte); }
void gdr_host_barrier_arrive_after_copies(int byte) { Machine::current().barrier_arrive_after_copies(byte); }
void gdr_host_barrier_wait(int byte, int parity) { Machine::current().barrier_wait(byte, parity); }
void gdr_host_block_sync() { Machine::current().block_sync(); }
void gdr_host_role_sync(int id, int threads) { Machine::current().role_sync(id, threads); }
void gdr_host_set_registers(int registers, bool more) { Machine::current().set_registers(registers, more); }
}
