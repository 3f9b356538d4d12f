// Calls on device memory that fail, against the fake driver: what is said, and what is left.
#include <doctest/doctest.h>

#include <functional>
#include <limits>
#include <set>
#include <string>

#include "backend_fixture.hpp"

namespace gdr::test {
namespace {

constexpr const char* kNothingAlive = "0 allocations, 0 modules, 0 contexts";

}  // namespace

TEST_CASE("whichever call of the driver fails: an error that names it, nothing leaks, and the next call works") {
  Fixture fixture;
  CallSizes large;  // one of whose kernels has to ask for its shared memory
  large.dim_k = large.dim_v = 128;
  DeviceCall device(0, large);
  const auto scenario = [&] {
    GpuSession session = fixture.session();
    gpu_backward(session, device.call, on(0));
  };
  scenario();  // fills the cache
  fake().reset();
  scenario();
  const int num_calls = fake().num_calls();
  CHECK(num_calls > 60);
  REQUIRE(fake().alive() == kNothingAlive);
  std::set<std::string> named;
  int num_failed = 0;
  for (int i = 1; i <= num_calls; ++i) {
    CAPTURE(i);
    fake().reset();
    fake().fail_call(i, 2);
    std::string error, again;
    {
      GpuSession session = fixture.session();
      error = thrown([&] { gpu_backward(session, device.call, on(0)); });
      fake().fail_call(0, 0);
      again = thrown([&] { gpu_backward(session, device.call, on(0)); });
    }
    CHECK(again == "none");
    CHECK(fake().alive() == kNothingAlive);
    CHECK(fake().current() == nullptr);
    if (error == "none") continue;  // a call that only frees, or that gdrjit can do without
    ++num_failed;
    CHECK(error.starts_with("5 GDR-D0"));
    CHECK_MESSAGE(error.find(" gave CUDA_ERROR_OUT_OF_MEMORY (out of memory)") != std::string::npos, error);
    const std::size_t end = error.find(" gave ");
    named.insert(error.substr(error.rfind(' ', end - 1) + 1, end - error.rfind(' ', end - 1) - 1));
  }
  const std::set<std::string> all = {"cuInit",
                                     "cuDriverGetVersion",
                                     "cuDeviceGetCount",
                                     "cuDeviceGet",
                                     "cuDeviceGetName",
                                     "cuDeviceGetAttribute",
                                     "cuCtxGetCurrent",
                                     "cuDevicePrimaryCtxRetain",
                                     "cuCtxPushCurrent",
                                     "cuStreamIsCapturing",
                                     "cuModuleLoadData",
                                     "cuModuleGetFunction",
                                     "cuFuncSetAttribute",
                                     "cuPointerGetAttribute",
                                     "cuMemAllocAsync",
                                     "cuLaunchKernel"};
  for (const std::string& call : all) CHECK_MESSAGE(named.contains(call), call);
  for (const std::string& call : named) CHECK_MESSAGE(all.contains(call), call);
  MESSAGE(num_failed, " of ", num_calls, " calls of the driver failed in turn");
}

TEST_CASE("a failed launch names the kernel and its figures") {
  Fixture fixture;
  GpuSession session = fixture.session();
  DeviceCall device;
  const GpuRun run = gpu_backward(session, device.call, on(0));
  const Launch first = launches(fake().log()).front();
  fake().fail_function("cuLaunchKernel", 700);
  CHECK(thrown([&] { gpu_backward(session, device.call, on(0)); }) ==
        "5 GDR-D03 " + run.kernels.front() + ", " + std::to_string(first.blocks) + " blocks of " +
            std::to_string(first.threads) + " threads, " + std::to_string(first.smem_bytes) +
            " bytes of shared memory: cuLaunchKernel gave CUDA_ERROR_ILLEGAL_ADDRESS (unknown error)");
}

TEST_CASE("a driver that is older than the compiler is named with both versions, one that is not is not blamed") {
  Fixture fixture;
  DeviceCall device;
  fake().set_driver_version(12040);
  fake().fail_function("cuModuleLoadData", 200);
  GpuSession session = fixture.session();
  std::string text = thrown([&] { gpu_backward(session, device.call, on(0)); });
  CHECK(text.starts_with("5 GDR-D04 gdr_prepare_"));
  CHECK(text.find(
            "cuModuleLoadData gave CUDA_ERROR_INVALID_IMAGE (unknown error) on Fake GPU 0. It was compiled by NVRTC "
            "13.0, and the driver supports CUDA 12.4: update the driver") != std::string::npos);
  fake().set_driver_version(13000);
  GpuSession newer = fixture.session();
  text = thrown([&] { gpu_backward(newer, device.call, on(0)); });
  CHECK(text.ends_with("CUDA_ERROR_INVALID_IMAGE (unknown error) on Fake GPU 0"));
}

TEST_CASE("a plan that needs more shared memory than the device has is refused before the driver is asked") {
  Fixture fixture;
  GpuSession session = fixture.session();
  CallSizes sizes;
  sizes.dim_k = sizes.dim_v = 128;
  DeviceCall device(1, sizes);
  GpuChoice choice = on(1);
  choice.rules.arch = "sm_90";
  const std::string text = thrown([&] { gpu_backward(session, device.call, choice); });
  CHECK(text.starts_with("3 GDR-D05 gdr_bwd_fused_bf16_k128v128_"));
  CHECK(text.find(" bytes of shared memory, Fake GPU 1 grants a block 101376: ") != std::string::npos);
  // The rules of sm_120 on an sm_90: what stands in for the device that is not there.
  DeviceCall hopper(0, sizes);
  choice = on(0);
  choice.rules.arch = "sm_120";
  const GpuRun run = gpu_backward(session, hopper.call, choice);
  for (const std::string& kernel : run.kernels) CHECK(kernel.ends_with("__sm_120"));
}

TEST_CASE("tensors that the kernels cannot use where they lie are named, before anything is enqueued") {
  Fixture fixture;
  GpuSession session = fixture.session();
  alignas(16) static float host[4096];
  DeviceCall elsewhere(1);
  struct Row {
    std::string name;
    std::function<void(DeviceCall&)> change;
    std::string text;  // its beginning
  };
  const Row rows[] = {
      {"bf16 gates", [](DeviceCall& d) { d.call.g.dtype = DType::bf16; },
       "3 GDR-G03 cuda backend: g is bf16, the kernels take fp32 in device memory"},
      {"fp32 keys", [](DeviceCall& d) { d.call.k.dtype = DType::fp32; },
       "3 GDR-G03 cuda backend: k is fp32, the kernels take bf16 in device memory"},
      {"bf16 state", [](DeviceCall& d) { d.call.initial_state.dtype = DType::bf16; },
       "3 GDR-G03 cuda backend: h0 is bf16, the kernels take fp32 in device memory"},
      {"last dimension", [](DeviceCall& d) { d.call.v.strides[3] = 2; },
       "3 GDR-G03 cuda backend: v has stride 2 in its last dimension, the kernels need 1"},
      {"row stride", [](DeviceCall& d) { d.call.q.strides[1] = 68; },
       "3 GDR-G03 cuda backend: q has stride 68 in dimension 1, 136 bytes; the kernels need a multiple of 16"},
      {"address", [](DeviceCall& d) { d.call.dq.data = static_cast<char*>(d.call.dq.data) + 2; },
       "3 GDR-G03 cuda backend: dq begins at 0x"},
      {"host memory", [](DeviceCall& d) { d.call.beta.data = host; }, "2 GDR-G07 beta: 0x"},
      {"another device", [&](DeviceCall& d) { d.call.dk.data = elsewhere.call.dk.data; }, "2 GDR-G07 dk: 0x"},
      {"no tokens", [](DeviceCall& d) { d.call.sizes.tokens = 0; },
       "3 GDR-G03 cuda backend: there are no tokens; use the cpu backend"},
      {"too many blocks", [](DeviceCall& d) { d.call.sizes.batch = std::int64_t{1} << 31; }, "3 GDR-G02 gdr_prepare_"},
      {"too many bytes", [](DeviceCall& d) { d.call.sizes.tokens = std::int64_t{1} << 58; },
       "3 GDR-G02 workspace: more than 1e+18 bytes"},
      {"too many heads", [](DeviceCall& d) { d.call.sizes.v_heads = d.call.sizes.k_heads << 32; }, "3 GDR-G02 "},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    DeviceCall device;
    row.change(device);
    GpuChoice choice = on(0);
    if (row.name == "too many blocks") {
      choice.workspace = device.call.q.data;
      choice.workspace_bytes = std::numeric_limits<std::int64_t>::max();
    }
    const std::string text = thrown([&] { gpu_backward(session, device.call, choice); });
    CHECK_MESSAGE(text.starts_with(row.text), text);
    CHECK(launches(fake().log()).empty());
  }
  // Managed memory belongs to no device.
  DeviceCall managed;
  void* const moving = fake().allocate_managed(1, 1 << 20);
  managed.call.dk.data = moving;
  CHECK(thrown([&] { gpu_backward(session, managed.call, on(0)); }) == "none");
  fake().release(moving);
  // Strides of dimensions of size one do not count, whatever they are.
  CallSizes one;
  one.batch = 1;
  DeviceCall device(0, one);
  device.call.q.strides[0] = 7;
  CHECK(thrown([&] { gpu_backward(session, device.call, on(0)); }) == "none");
}

TEST_CASE("what is there is said: devices, and why calls cannot be served") {
  Fixture fixture;
  GpuSession session = fixture.session();
  CHECK(gpu_unavailable(session) == "");
  CHECK(gpu_name(session, 0) == "Fake GPU 0");
  CHECK(session.arch_of(1)->name == "sm_120");
  GpuSession none("/nowhere/libcuda.so.1", fixture.options());
  CHECK(gpu_unavailable(none).starts_with("GDR-D01 libcuda: not found"));
  CHECK(gpu_name(none, 0) == "");
  fake().fail_function("cuInit", 100);
  GpuSession broken = fixture.session();
  CHECK(gpu_unavailable(broken) == "GDR-D02 the CUDA driver does not start: cuInit gave unknown (unknown error)");
  // Sizes for which there is no plan.
  const std::string refused = thrown([&] { gpu_check(session, {40, 40, 1}, on(0)); });
  CHECK_MESSAGE(refused.starts_with("3 GDR-P04 "), refused);
  CHECK(thrown([&] { gpu_check(session, {16, 16, 2}, on(0)); }) == "none");
}

}  // namespace gdr::test
