// Values of the host's primitives against scalar models of their own: what PTX says of layout, rounding and lanes.
#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "block.hpp"

namespace gdr::host {
namespace {

using namespace device;

// Decodes a 16-bit float by its fields.
double decoded(std::uint16_t bits, int exponent_bits) {
  const int mantissa_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1), mantissa = bits & ((1 << mantissa_bits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1)
    return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
}

// The bits nearest to x, ties to the even ones, by looking at neighbours from below; what lies half a step or more
// beyond the largest number is infinite.
std::uint16_t nearest(float x, int exponent_bits) {
  if (std::isnan(x)) return 0x7fff;
  const std::uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  const double size = std::abs(static_cast<double>(x));
  const std::uint16_t infinite = static_cast<std::uint16_t>(((1 << exponent_bits) - 1) << (15 - exponent_bits));
  std::uint16_t low = 0, high = infinite;  // numbers rise with their bits
  while (high - low > 1) {
    const auto middle = static_cast<std::uint16_t>((low + high) / 2);
    (decoded(middle, exponent_bits) <= size ? low : high) = middle;
  }
  const double below = decoded(low, exponent_bits);
  const double above = high == infinite ? 2 * below - decoded(static_cast<std::uint16_t>(low - 1), exponent_bits)
                                        : decoded(high, exponent_bits);
  const bool up = size - below > above - size || (size - below == above - size && low % 2 != 0);
  return static_cast<std::uint16_t>(sign | (up ? high : low));
}

std::vector<float> sample_floats() {
  const float inf = std::numeric_limits<float>::infinity();
  std::vector<float> floats = {0.0f,
                               -0.0f,
                               1.0f,
                               -1.0f,
                               inf,
                               -inf,
                               65504.0f,
                               65519.9f,
                               65520.0f,
                               -70000.0f,
                               3.4e38f,
                               3.39e38f,
                               1e-45f,
                               -1e-45f,
                               5.96e-8f,
                               2.98e-8f,
                               2.9e-8f,
                               1e-39f,
                               6.1e-5f,
                               std::numeric_limits<float>::quiet_NaN(),
                               std::bit_cast<float>(0xffc12345u)};
  for (const std::uint32_t bits : {0x3f808000u, 0x3f818000u, 0x3f807fffu, 0x3f808001u, 0x3f801000u, 0x3f803000u})
    floats.push_back(std::bit_cast<float>(bits));  // ties and their neighbours
  std::mt19937 random(7);
  for (int i = 0; i < 20'000; ++i) floats.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  std::normal_distribution<float> normal;
  for (int i = 0; i < 20'000; ++i) floats.push_back(normal(random));
  return floats;
}

// A failed check inside `body` must not throw: there is nothing on a fiber to catch it.
void run_clean(HandBlock& block, const std::function<void()>& body) {
  const std::optional<Fault> fault = block.run(body);
  REQUIRE_MESSAGE(!fault, fault->text);
}

}  // namespace

TEST_CASE("conversions to 16 bits round to the nearest, ties to even, and know one NaN") {
  const std::vector<float> floats = sample_floats();
  for (std::size_t i = 0; i + 1 < floats.size(); ++i) {
    const u32 bf16 = pack_bf16(floats[i], floats[i + 1]), fp16 = pack_fp16(floats[i], floats[i + 1]);
    const auto lo = std::bit_cast<u32>(floats[i]);
    CAPTURE(lo);
    REQUIRE((bf16 & 0xffff) == nearest(floats[i], 8));
    REQUIRE((bf16 >> 16) == nearest(floats[i + 1], 8));
    REQUIRE((fp16 & 0xffff) == nearest(floats[i], 5));
    REQUIRE((fp16 >> 16) == nearest(floats[i + 1], 5));
  }
}

TEST_CASE("every fp16 is read as what its fields say") {
  for (u32 bits = 0; bits < 0x10000; ++bits) {
    const double wanted = decoded(static_cast<u16>(bits), 5);
    const auto found = static_cast<double>(float_of_fp16(static_cast<u16>(bits)));
    REQUIRE((std::isnan(wanted) ? std::isnan(found) : found == wanted && std::signbit(found) == std::signbit(wanted)));
  }
  CHECK(float_of_bits(0x40490fdbu) == 3.14159274f);
}

TEST_CASE("exp_of is e^x to an error that grows with |x|, zero below the normal numbers") {
  HandBlock block;
  run_clean(block, [] {
    if (thread_index() != 0) return;
    for (float x = -86.0f; x < 88.0f; x += 0.013f) {
      const double wanted = std::exp(static_cast<double>(x));
      // x log2(e) is rounded to 24 bits before the power is taken.
      const double allowed = (2 + std::abs(x)) * 1.2e-7 * wanted;
      CHECK(std::abs(static_cast<double>(exp_of(x)) - wanted) <= allowed);
    }
    CHECK(exp_of(0.0f) == 1.0f);
    CHECK(exp_of(-88.0f) == 0.0f);  // 6.1e-39
    CHECK(exp_of(-std::numeric_limits<float>::infinity()) == 0.0f);
    CHECK(exp_of(100.0f) == std::numeric_limits<float>::infinity());
    CHECK(std::isnan(exp_of(std::numeric_limits<float>::quiet_NaN())));
  });
}

TEST_CASE("shuffles: a lane takes another's value, or keeps its own at the edge") {
  for (const int by : {1, 2, 5, 16, 31}) {
    CAPTURE(by);
    HandBlock block;
    run_clean(block, [&] {
      const int lane = thread_index();
      const auto value = static_cast<float>(100 + lane);
      CHECK(shuffle_xor(value, by) == static_cast<float>(100 + (lane ^ by)));
      CHECK(shuffle_up(value, by) == static_cast<float>(100 + (lane >= by ? lane - by : lane)));
      CHECK(shuffle_down(value, by) == static_cast<float>(100 + (lane + by < 32 ? lane + by : lane)));
      CHECK(shuffle_from(value, by) == static_cast<float>(100 + by));
    });
  }
}

TEST_CASE("load_matrices: a lane holds two neighbours of row lane / 4, or of column lane / 4 if transposed") {
  constexpr int kRowBytes = 16, kPitch = 48;  // rows lie apart
  HandBlock block;
  const auto element = [](int matrix, int row, int col) { return static_cast<u16>(matrix * 1000 + row * 10 + col); };
  run_clean(block, [&] {
    const int lane = thread_index(), matrix = lane / 8, row = lane % 8;
    const int byte = (31 - lane) * kPitch;
    for (int col = 0; col < 8; ++col) shared_store<u16>(byte + col * 2, element(matrix, row, col));
    static_assert(kPitch >= kRowBytes);
    warp_sync();
    u32 r[4], t[4];
    load_matrices(r, byte);
    load_matrices_transposed(t, byte);
    for (int i = 0; i < 4; ++i) {
      CHECK(r[i] == (element(i, lane / 4, lane % 4 * 2) | u32{element(i, lane / 4, lane % 4 * 2 + 1)} << 16));
      CHECK(t[i] == (element(i, lane % 4 * 2, lane / 4) | u32{element(i, lane % 4 * 2 + 1, lane / 4)} << 16));
    }
  });
}

TEST_CASE("transpose_matrix: a lane gets two neighbours of column lane / 4") {
  HandBlock block;
  const auto element = [](int row, int col) { return static_cast<u32>(1000 + row * 10 + col); };
  run_clean(block, [&] {
    const int lane = thread_index(), row = lane / 4, col = lane % 4 * 2;
    CHECK(warp_index() == 0);
    CHECK(forgotten(lane) == lane);
    CHECK(transpose_matrix(element(row, col) | element(row, col + 1) << 16) ==
          (element(col, row) | element(col + 1, row) << 16));
  });
}

// Small whole numbers: every sum is exact, so that nothing depends on its order.
TEST_CASE("matrix_product: d += a b for bf16 and fp16 fragments") {
  for (const bool is_bf16 : {true, false}) {
    CAPTURE(is_bf16);
    std::mt19937 random(3);
    int a[16][16], b[16][8], d[16][8];
    for (auto& row : a)
      for (int& x : row) x = static_cast<int>(random() % 17) - 8;
    for (auto& row : b)
      for (int& x : row) x = static_cast<int>(random() % 17) - 8;
    for (auto& row : d)
      for (int& x : row) x = static_cast<int>(random() % 1000);
    HandBlock block;
    run_clean(block, [&] {
      const int group = thread_index() / 4, in_group = thread_index() % 4;  // PTX: groupID, threadID_in_group
      const auto pair = [&](int lo, int hi) {
        const auto x = static_cast<float>(lo), y = static_cast<float>(hi);
        return is_bf16 ? pack_bf16(x, y) : pack_fp16(x, y);
      };
      u32 fragment[4];
      for (int i = 0; i < 4; ++i) {
        const int row = group + (i == 1 || i == 3 ? 8 : 0), col = in_group * 2 + (i >= 2 ? 8 : 0);
        fragment[i] = pair(a[row][col], a[row][col + 1]);
      }
      const u32 b0 = pair(b[in_group * 2][group], b[in_group * 2 + 1][group]);
      const u32 b1 = pair(b[in_group * 2 + 8][group], b[in_group * 2 + 9][group]);
      float sums[4];
      for (int i = 0; i < 4; ++i) sums[i] = static_cast<float>(d[group + (i >= 2 ? 8 : 0)][in_group * 2 + i % 2]);
      if (is_bf16)
        matrix_product(bf16{}, sums, fragment, b0, b1);
      else
        matrix_product(fp16{}, sums, fragment, b0, b1);
      for (int i = 0; i < 4; ++i) {
        const int row = group + (i >= 2 ? 8 : 0), col = in_group * 2 + i % 2;
        int wanted = d[row][col];
        for (int l = 0; l < 16; ++l) wanted += a[row][l] * b[l][col];
        CHECK(sums[i] == static_cast<float>(wanted));
      }
    });
  }
}

TEST_CASE("copies bring 16 bytes or zeros, and are there when a barrier behind them has been waited for") {
  constexpr int kBarrier = 2048;
  for (const Landing landing : {Landing::late, Landing::random, Landing::early})
    for (const std::uint64_t seed : {1u, 2u, 3u}) {
      HandBlock block;
      block.threads = 64;
      block.options.landing = landing;
      block.options.seed = seed;
      std::byte* const source = block.global.allocate("source", 1024, AllocationKind::input);
      for (int i = 0; i < 256; ++i) std::memcpy(source + i * 4, &i, 4);
      block.global.give("source", 0, 1024);
      run_clean(block, [&] {
        const int thread = thread_index();
        if (thread == 0) barrier_init(kBarrier, 32);
        block_sync();
        if (thread < 32) {  // the second half in front, every third one absent
          copy_16(thread * 16, source + (63 - thread) * 16, thread % 3 != 0);
          barrier_arrive_after_copies(kBarrier);
        }
        barrier_wait(kBarrier, 0);
        const int unit = thread % 32;
        for (int i = 0; i < 4; ++i)
          CHECK(shared_load<u32>(unit * 16 + i * 4) == (unit % 3 != 0 ? static_cast<u32>((63 - unit) * 4 + i) : 0u));
      });
    }
}

TEST_CASE("a barrier in shared memory counts phases, producer and consumer alternate by parity") {
  constexpr int kFull = 1024, kFree = 1032;
  for (const std::uint64_t seed : {1u, 2u, 3u, 4u, 5u}) {
    HandBlock block;
    block.threads = 64;
    block.options.seed = seed;
    run_clean(block, [&] {
      const int lane = thread_index() % 32;
      if (thread_index() == 0) {
        barrier_init(kFull, 1);
        barrier_init(kFree, 32);
      }
      block_sync();
      for (int i = 0; i < 7; ++i) {
        if (thread_index() < 32) {
          if (i > 0) barrier_wait(kFree, (i - 1) & 1);
          shared_store<u32>(lane * 4, static_cast<u32>(i * 100 + lane));
          warp_sync();
          if (lane == 0) barrier_arrive(kFull);
        } else {
          barrier_wait(kFull, i & 1);
          CHECK(shared_load<u32>((31 - lane) * 4) == static_cast<u32>(i * 100 + 31 - lane));
          barrier_arrive(kFree);
        }
      }
    });
  }
}

TEST_CASE("meetings under a hardware barrier order their threads, and can follow each other") {
  HandBlock block;
  block.threads = 128;
  run_clean(block, [&] {
    const int thread = thread_index();
    if (thread < 64) {
      for (int i = 0; i < 3; ++i) {
        shared_store<u32>(thread * 4, static_cast<u32>(thread + i));
        role_sync<1, 64>();
        CHECK(shared_load<u32>((63 - thread) * 4) == static_cast<u32>(63 - thread + i));
        role_sync<1, 64>();
      }
    } else {
      role_sync<2, 64>();
    }
    block_sync();
  });
}

TEST_CASE("elements of 2, 4 and 16 bytes in shared and global memory") {
  HandBlock block;
  std::byte* const data = block.global.allocate("data", 256, AllocationKind::output);
  struct alignas(16) Unit {
    u32 word[4];
  };
  run_clean(block, [&] {
    CHECK(block_index() == 0);
    if (thread_index() != 3) return;
    shared_store<u16>(2, 0x1234);
    shared_store<u16>(0, 0x5678);
    CHECK(shared_load<u32>(0) == 0x12345678u);
    shared_store<Unit>(16, Unit{{1, 2, 3, 4}});
    CHECK(shared_load<float>(20) == std::bit_cast<float>(2u));
    global_store(reinterpret_cast<Unit*>(data), shared_load<Unit>(16));
    global_store(reinterpret_cast<float*>(data + 16), 2.5f);
  });
  u32 words[5];
  std::memcpy(words, data, sizeof words);
  CHECK(words[3] == 4);
  CHECK(std::bit_cast<float>(words[4]) == 2.5f);
  CHECK(block.global.first_unwritten("data") == 20);
}

TEST_CASE("a program that uses all warps alike runs to its end in any order") {
  std::array<int, 256> times{};
  HandBlock block;
  block.threads = 256;
  run_clean(block, [&] {
    for (int i = 0; i < 10; ++i) {
      ++times[static_cast<std::size_t>(thread_index())];
      block_sync();
    }
  });
  for (const int t : times) CHECK(t == 10);
}

}  // namespace gdr::host
