// The project's table of correctness cases (tests/data/correctness.json) on the CPU backend, as far as the time a CPU
// needs allows. A key or value that this test does not know is a failure: a case must not look tested when it is not.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>
#include <string>

#include "build_kind.hpp"
#include "support.hpp"

namespace gdr::cpu::test {
namespace {

// Most tokens x v-heads x K V of a case. The recurrence does 2e8 of it a second and thread, but only 5e6 under the
// thread sanitizer or an emulator; GDRJIT_TEST_LARGE=1 asks for the cases that take half a minute each on two cores.
double most_work() {
  if (test_is_slowest()) return 0.01e9;
  if (test_is_slow()) return 0.05e9;
  return std::getenv("GDRJIT_TEST_LARGE") != nullptr ? 10e9 : 1.2e9;
}

constexpr const char* kNaNTail =
    "rows past the last boundary hold NaN in every input; outputs and gradients there are "
    "exactly 0";
constexpr const char* kViews = "q, k, v are views of one [T,3,H,D] tensor";
constexpr const char* kBaseOff =
    "each base pointer off by one row of a larger tensor, and by 2 bytes (not 16-byte aligned)";
// Notes that say something about GPU kernels or sizes and ask nothing more of the CPU.
constexpr const char* kOtherNotes[] = {"fits or is refused with the missing bytes",
                                       "more than 65,535 (sequence, head) pairs",
                                       "one sequence, T*H*V over 2^31 elements; GPU only"};

struct Case {
  std::string name;
  Spec spec;
  std::string note;
  bool is_vk = false;
};

// Most elements of a state tensor; the tests hold several of them in float64.
constexpr double kMostStateElems = 1e8;

bool is_too_large(const Spec& spec) {
  const double state = static_cast<double>(spec.v_heads * spec.dim_k * spec.dim_v);
  const double tokens = static_cast<double>(std::accumulate(spec.lengths.begin(), spec.lengths.end(), std::int64_t{0}));
  return tokens * state > most_work() || static_cast<double>(spec.lengths.size()) * state > kMostStateElems;
}

// Throws std::invalid_argument on anything unknown.
Case read_case(const nlohmann::json& json) {
  Case result;
  Spec& spec = result.spec;
  spec.lengths = json.at("lengths").get<std::vector<std::int64_t>>();
  std::int64_t total = 0;
  for (const std::int64_t length : spec.lengths) total += length;
  for (const auto& [key, value] : json.items()) {
    if (key == "lengths") continue;
    if (key == "name") {
      result.name = value.get<std::string>();
    } else if (key == "k_heads") {
      spec.k_heads = value.get<std::int64_t>();
    } else if (key == "v_heads") {
      spec.v_heads = value.get<std::int64_t>();
    } else if (key == "head_dim_k") {
      spec.dim_k = value.get<std::int64_t>();
    } else if (key == "head_dim_v") {
      spec.dim_v = value.get<std::int64_t>();
    } else if (key == "dtype") {
      spec.dtype = spec.aux_dtype = parse_dtype(value.get<std::string>(), "dtype");
    } else if (key == "state_layout") {
      const std::string layout = value.get<std::string>();
      if (layout != "kv" && layout != "vk") throw std::invalid_argument("unknown state_layout " + layout);
      result.is_vk = layout == "vk";
    } else if (key == "initial_state") {
      spec.initial_state = value.get<bool>();
    } else if (key == "final_state_grad") {
      spec.final_state_grad = value.get<bool>();
    } else if (key == "gates") {
      spec.gates = value.get<std::string>();
    } else if (key == "varlen") {
      spec.varlen = value.get<bool>();
    } else if (key == "batch") {
      if (value.get<std::size_t>() != spec.lengths.size()) throw std::invalid_argument("batch is not lengths' size");
    } else if (key == "total_tokens") {
      spec.pad = value.get<std::int64_t>() - total;
    } else if (key == "beta") {
      spec.beta = value.get<std::string>();
    } else if (key == "keys") {
      spec.keys = value.get<std::string>();
    } else if (key == "note") {
      result.note = value.get<std::string>();
    } else {
      throw std::invalid_argument("unknown key " + key);
    }
  }
  const bool known = result.note.empty() || result.note == kNaNTail || result.note == kViews ||
                     result.note == kBaseOff ||
                     std::find(std::begin(kOtherNotes), std::end(kOtherNotes), result.note) != std::end(kOtherNotes);
  if (!known) throw std::invalid_argument("unknown note: " + result.note);
  Spec short_spec = spec;  // draws a token of every kind named, so that an unknown kind is found in every case
  short_spec.lengths = {1};
  short_spec.pad = 0;
  Problem probe(short_spec);
  return result;
}

void relayout(Tensor& tensor, std::array<std::int64_t, 4> strides, std::int64_t first_byte) {
  if (!tensor.present()) return;
  Tensor other(tensor.dtype(), tensor.shape(), strides, first_byte);
  other.poison();
  other.assign(tensor.values());
  tensor = other;
}

// Puts the inputs where the case says they lie.
void place(const Case& test_case, Problem& problem) {
  const auto [B, T, Hk, Hv, K, V] = problem.sizes;
  if (test_case.note == kViews) {
    const auto third = [](std::int64_t tokens, std::int64_t heads, std::int64_t dim) {
      return std::array<std::int64_t, 4>{tokens * 3 * heads * dim, 3 * heads * dim, dim, 1};
    };
    relayout(problem.q, third(T, Hk, K), 0);
    relayout(problem.k, third(T, Hk, K), 2 * Hk * K);  // bf16: the second third begins Hk K elements later
    relayout(problem.v, third(T, Hv, V), 4 * Hv * V);
  } else if (test_case.note == kBaseOff) {
    const auto off = [](std::int64_t row_elems) { return 2 * row_elems + 2; };
    relayout(problem.q, {T * Hk * K, Hk * K, K, 1}, off(Hk * K));
    relayout(problem.k, {T * Hk * K, Hk * K, K, 1}, off(Hk * K));
    relayout(problem.v, {T * Hv * V, Hv * V, V, 1}, off(Hv * V));
    relayout(problem.do_, {T * Hv * V, Hv * V, V, 1}, off(Hv * V));
    relayout(problem.g, {T * Hv, Hv, 1, 1}, off(Hv));
    relayout(problem.beta, {T * Hv, Hv, 1, 1}, off(Hv));
  }
  if (test_case.is_vk) {
    const std::array<std::int64_t, 4> strides = {Hv * K * V, K * V, 1, K};
    relayout(problem.initial_state, strides, 0);
    relayout(problem.final_state_grad, strides, 0);
  }
}

std::vector<nlohmann::json> all_cases() {
  std::ifstream file(GDR_SOURCE_DIR "/tests/data/correctness.json");
  const nlohmann::json table = nlohmann::json::parse(file);
  return table.at("cases").get<std::vector<nlohmann::json>>();
}

}  // namespace

TEST_CASE("cases: the table of correctness cases") {
  const std::uint64_t seed = fresh_seed();
  MESSAGE("seed ", seed);
  std::string too_large;
  int num_run = 0, num_too_large = 0;
  double worst_fp64 = 0, worst_fp32 = 0;
  for (const nlohmann::json& json : all_cases()) {
    Case test_case;
    REQUIRE_NOTHROW(test_case = read_case(json));
    CAPTURE(test_case.name);
    test_case.spec.seed = seed;
    if (is_too_large(test_case.spec)) {
      ++num_too_large;
      too_large += (too_large.empty() ? "" : ", ") + test_case.name;
      continue;
    }
    ++num_run;
    Problem problem(test_case.spec);
    place(test_case, problem);
    const Errors found = compare_chunked(problem);
    const auto &fp64 = found.fp64, &fp32 = found.fp32;
    INFO("float64 ", to_text(fp64));
    INFO("float32 ", to_text(fp32));
    CHECK(largest(fp64) < 1e-10);
    CHECK(largest(fp32) < 1e-5);
    worst_fp64 = std::max(worst_fp64, largest(fp64));
    worst_fp32 = std::max(worst_fp32, largest(fp32));
  }
  MESSAGE(
      fmt::format("{} cases run, worst relative L2: float64 {:.1e}, float32 {:.1e}", num_run, worst_fp64, worst_fp32));
  MESSAGE(fmt::format("{} cases too large here: {}", num_too_large, too_large));
  CHECK(num_run >= (test_is_slowest() ? 17 : test_is_slow() ? 27 : 42));
}

TEST_CASE("cases: what the test does not know is refused") {
  const nlohmann::json good = all_cases().at(0);
  CHECK_NOTHROW(read_case(good));
  using Change = std::pair<std::string, std::string>;
  for (const auto& entry : {Change{"gates", "sideways"},
                            {"beta", "three"},
                            {"beta", "0.5x"},
                            {"keys", "parallel"},
                            {"note", "upside down"},
                            {"state_layout", "kk"},
                            {"colour", "red"},
                            {"dtype", "fp8"}}) {
    const auto& key = entry.first;
    const auto& value = entry.second;
    CAPTURE(key);
    nlohmann::json bad = good;
    bad[key] = value;
    CHECK_THROWS(read_case(bad));
  }
}

}  // namespace gdr::cpu::test
