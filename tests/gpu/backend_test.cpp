// Calls on device memory, against the fake driver: what is launched where, in which order and with which arguments.
#include <doctest/doctest.h>

#include <array>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "backend_fixture.hpp"
#include "core/dtype.hpp"

namespace gdr::test {

TEST_CASE("a call enqueues the plan's kernels in order, on the caller's tensors where they lie, and nothing else") {
  Fixture fixture;
  GpuSession session = fixture.session();
  DeviceCall device;
  gpu_backward(session, device.call, on(0));  // loads
  fake().reset();
  const GpuRun run = gpu_backward(session, device.call, on(0));
  CHECK(run.device == "Fake GPU 0");
  const std::vector<std::string> log = fake().log();
  const std::vector<Launch> launched = launches(log);
  REQUIRE(launched.size() == run.kernels.size());
  REQUIRE(log.size() == run.kernels.size() + 2);
  CHECK(log.front().starts_with("alloc_async "));
  CHECK(log.back() == "free_async stream 0");
  const std::int64_t workspace_bytes = std::stoll(log.front().substr(12));

  const std::shared_ptr<const Plan> plan =
      session.library().plan(GpuSession::request({}, {16, 16, 2}, *session.arch_of(0))).plan;
  std::set<std::string> seen;
  std::map<std::string, Launch::Place> workspace;
  for (std::size_t i = 0; i < launched.size(); ++i) {
    const Launch& launch = launched[i];
    const Kernel& kernel = plan->kernels[i];
    CAPTURE(kernel.name);
    CHECK(launch.kernel == kernel.name);
    CHECK(run.kernels[i] == kernel.name);
    CHECK(launch.stream == "0");
    CHECK(launch.threads == kernel.threads());
    CHECK(launch.smem_bytes == kernel.smem_bytes);
    CHECK(launch.blocks == plan->num_blocks(kernel, {2, 2 * ((70 + plan->chunk - 1) / plan->chunk), 2, 4}));
    CHECK(launch.sizes ==
          std::map<std::string, std::string>{{"T", "70"}, {"N", "2"}, {"Hk", "2"}, {"Hv", "4"}, {"scale", "0.25"}});
    for (const auto& entry : launch.tensors) {
      const std::string& name = entry.first;
      const Launch::Place& place = entry.second;
      CAPTURE(name);
      seen.insert(name);
      if (plan->tensor(name).kind == TensorKind::workspace) {
        if (workspace.contains(name)) CHECK(workspace.at(name) == place);
        workspace[name] = place;
        continue;
      }
      const cpu::View& view = device.view(name);
      const bool is_token = plan->tensor(name).index == TensorIndex::token;
      CHECK(place.data == reinterpret_cast<std::uint64_t>(view.data));
      CHECK(place.item == view.strides[0]);
      CHECK(place.head == view.strides[is_token ? 2 : 1]);
      CHECK(place.row == view.strides[is_token ? 1 : 2]);
    }
  }
  for (const std::string& name : DeviceCall::names()) CHECK_MESSAGE(seen.contains(name), name);

  // Workspace tensors lie in the allocation, apart from each other.
  const LaunchSizes sizes = {2, 70, 2, 4, 0.25f};
  REQUIRE(!workspace.empty());
  std::uint64_t begin = ~std::uint64_t{0};
  for (const auto& [name, place] : workspace) begin = std::min(begin, place.data);
  std::map<std::uint64_t, std::uint64_t> ranges;
  for (const auto& [name, place] : workspace) {
    CHECK(place.data % kWorkspaceAlignment == 0);
    const auto bytes = static_cast<std::uint64_t>(num_bytes(plan->tensor(name), sizes, plan->chunk));
    CHECK(place.data + bytes <= begin + static_cast<std::uint64_t>(workspace_bytes));
    ranges[place.data] = place.data + bytes;
  }
  CHECK(ranges.size() == workspace.size());
  std::uint64_t before = 0;
  for (const auto& [from, to] : ranges) {
    CHECK(from >= before);
    before = to;
  }
}

TEST_CASE("strided tensors are used as they are, absent ones are null") {
  Fixture fixture;
  GpuSession session = fixture.session();
  DeviceCall device;
  // q, k, v side by side in one row of a tensor; gates with their heads far apart; a batch that is broadcast.
  device.call.q.strides = {70 * 512, 512, 64, 1};
  device.call.g.strides = {280, 1, 70, 1};
  device.call.beta.strides = {0, 3, 1, 7};
  device.call.dv.strides = {-70 * 128, 128, 32, 1};
  device.call.initial_state.present = device.call.final_state_grad.present = device.call.dh0.present = false;
  gpu_backward(session, device.call, on(0));
  std::map<std::string, Launch::Place> tensors;
  for (const Launch& launch : launches(fake().log()))
    for (const auto& [name, place] : launch.tensors) tensors[name] = place;
  const auto strides = [&](const std::string& name) {
    const Launch::Place& place = tensors.at(name);
    return std::array{place.item, place.row, place.head};
  };
  CHECK(strides("q") == std::array<std::int64_t, 3>{70 * 512, 512, 64});
  CHECK(strides("g") == std::array<std::int64_t, 3>{280, 1, 70});
  CHECK(strides("beta") == std::array<std::int64_t, 3>{0, 3, 1});
  CHECK(strides("dv") == std::array<std::int64_t, 3>{-70 * 128, 128, 32});
  for (const char* name : {"h0", "dht", "dh0"}) CHECK(tensors.at(name) == Launch::Place{});
}

TEST_CASE(
    "a call works in the stream's context, the current one, or the device's primary one, and leaves the thread's") {
  Fixture fixture;
  GpuSession session = fixture.session();
  void* const mine = fake().create_context(1);
  void* const other = fake().create_context(0);
  const std::uintptr_t stream_of_mine = fake().create_stream(mine);
  struct Row {
    std::string name;
    void* current;
    std::uintptr_t stream;
    int num_retained;  // primary contexts, all calls so far
    int num_loads;     // contexts in which the kernels were loaded, all calls so far
  };
  const Row rows[] = {
      {"current context", mine, 0, 0, 1},
      {"the same context by its stream", nullptr, stream_of_mine, 0, 1},
      {"stream and another current context", other, stream_of_mine, 0, 1},
      {"no context", nullptr, 0, 1, 2},
      {"another device is current", other, 0, 1, 2},
      {"the thread's default stream", mine, 2, 1, 2},
  };
  int num_kernels = 0;
  for (const Row& row : rows) {
    CAPTURE(row.name);
    DeviceCall device(1);
    fake().set_current(row.current);
    const GpuRun run = gpu_backward(session, device.call, on(1, row.stream));
    num_kernels = static_cast<int>(run.kernels.size());
    CHECK(run.device == "Fake GPU 1");
    CHECK(fake().current() == row.current);
    const std::vector<std::string> log = fake().log();
    CHECK(count(log, "retain") == row.num_retained);
    CHECK(count(log, "load") == row.num_loads * num_kernels);
    CHECK(launches(log).back().stream == hex(row.stream));
    CHECK(log.back() == "free_async stream " + hex(row.stream));
  }
  // The primary context of the device that the call is for, and of no other.
  CHECK(count(fake().log(), "retain 1") == 1);

  DeviceCall device(0);
  fake().set_current(mine);
  CHECK(thrown([&] { gpu_backward(session, device.call, on(0, stream_of_mine)); }) ==
        "5 GDR-D02 the stream belongs to device 1, the tensors lie on device 0 (Fake GPU 0)");
  CHECK(fake().current() == mine);
  CHECK(thrown([&] { gpu_backward(session, device.call, on(7)); }) == "5 GDR-D02 device 7: the driver has 2 device(s)");
}

TEST_CASE("a context that follows another at the same address gets modules of its own") {
  Fixture fixture;
  GpuSession session = fixture.session();
  const std::shared_ptr<const Driver> driver = session.driver();
  fake().set_current(fake().create_context(0));
  const Context one = driver->context_for(0, 0);
  Context two = one;
  two.id += 1000;
  CHECK(session.get({}, {16, 16, 2}, one) == session.get({}, {16, 16, 2}, one));
  CHECK(session.get({}, {16, 16, 2}, one) != session.get({}, {16, 16, 2}, two));
}

TEST_CASE("the workspace: the caller's or allocated, asked for without a device, refused with both numbers") {
  Fixture fixture;
  GpuSession session = fixture.session();
  DeviceCall device(1);
  gpu_backward(session, device.call, on(1));
  std::string allocated = "none";
  for (const std::string& line : fake().log())
    if (line.starts_with("alloc_async ")) allocated = line.substr(12, line.find(" stream") - 12);
  const std::int64_t bytes = gpu_workspace_bytes(session, device.call.sizes, on(1));
  CHECK(std::to_string(bytes) == allocated);

  GpuSession no_driver("/nowhere/libcuda.so.1", [&] {
    LibraryOptions options = fixture.options();
    options.nvrtc.override_path = kNoNvrtc;
    return options;
  }());
  GpuChoice by_name;
  by_name.rules.arch = "sm_120";
  CHECK(gpu_workspace_bytes(no_driver, device.call.sizes, by_name) == bytes);
  CHECK(thrown([&] {
          gpu_workspace_bytes(no_driver, device.call.sizes, {});
        }).starts_with("5 GDR-D01 libcuda: not found"));

  void* const memory = fake().allocate(1, static_cast<std::size_t>(bytes) + 512);
  GpuChoice choice = on(1);
  choice.workspace = memory;
  choice.workspace_bytes = bytes;
  fake().reset();
  gpu_backward(session, device.call, choice);
  CHECK(count(fake().log(), "alloc") == 0);
  CHECK(count(fake().log(), "free") == 0);
  std::uint64_t lowest = ~std::uint64_t{0};
  for (const Launch& launch : launches(fake().log()))
    for (const auto& [name, place] : launch.tensors)
      if (name.find('_') != std::string::npos) lowest = std::min(lowest, place.data);
  CHECK(lowest == reinterpret_cast<std::uint64_t>(memory));

  fake().reset();
  const auto text = [](const char* format, std::int64_t a, std::int64_t b, std::int64_t c) {
    char line[256];
    std::snprintf(line, sizeof line, format, static_cast<long long>(a), static_cast<long long>(b),
                  static_cast<long long>(c));
    return std::string(line);
  };
  choice.workspace_bytes = bytes - 1;
  CHECK(thrown([&] { gpu_backward(session, device.call, choice); }) ==
        text("2 GDR-G06 workspace: it has %lld bytes, the call needs %lld: %lld too few", bytes - 1, bytes, 1));
  choice.workspace_bytes = bytes;
  choice.workspace = static_cast<char*>(memory) + 16;
  CHECK(
      thrown([&] { gpu_backward(session, device.call, choice); }).starts_with("2 GDR-G06 workspace: it begins at 0x"));
  choice = on(1);
  choice.max_workspace_bytes = bytes;
  CHECK(thrown([&] { gpu_backward(session, device.call, choice); }) == "none");
  fake().reset();
  choice.max_workspace_bytes = bytes - 10;
  const std::string too_many =
      text("3 GDR-G04 workspace: the call needs %lld bytes, max_workspace_bytes is %lld: %lld too many. ", bytes,
           bytes - 10, 10) +
      "Raise it, or split the batch";
  CHECK(thrown([&] { gpu_backward(session, device.call, choice); }) == too_many);
  CHECK(thrown([&] { gpu_workspace_bytes(session, device.call.sizes, choice); }) == too_many);

  fake().set_memory_pools(false);
  GpuSession old = fixture.session();
  CHECK(thrown([&] { gpu_backward(old, device.call, on(1)); }) ==
        "3 GDR-G04 workspace: Fake GPU 1 has no stream-ordered allocation; give the call a workspace of " +
            std::to_string(bytes) + " bytes");
  CHECK(launches(fake().log()).empty());
  fake().release(memory);
}

TEST_CASE("a capture: what is loaded can be captured, what is not is refused, and prepare loads") {
  Fixture fixture;
  GpuSession session = fixture.session();
  void* const context = fake().create_context(0);
  const std::uintptr_t stream = fake().create_stream(context);
  DeviceCall device;
  fake().set_capturing(stream, true);
  CHECK(thrown([&] {
          gpu_backward(session, device.call, on(0, stream));
        }).starts_with("2 GDR-G05 the stream is being captured, and the kernels of this call are not loaded yet"));
  CHECK(fake().log().empty());
  fake().set_capturing(stream, false);
  const GpuRun prepared = gpu_prepare(session, {16, 16, 2}, on(0, stream));
  CHECK(count(fake().log(), "load") == static_cast<std::int64_t>(prepared.kernels.size()));
  CHECK(launches(fake().log()).empty());
  fake().set_capturing(stream, true);
  fake().reset();
  CHECK(gpu_backward(session, device.call, on(0, stream)).kernels == prepared.kernels);
  const std::vector<std::string> log = fake().log();
  CHECK(log.front().starts_with("alloc_async"));
  CHECK(log.back().starts_with("free_async"));
  CHECK(count(log, "load") == 0);
  fake().set_capturing(stream, false);
}

TEST_CASE("threads at once: kernels are loaded once, and every call is enqueued on its own stream") {
  Fixture fixture;
  GpuSession session = fixture.session();
  void* const context = fake().create_context(0);
  constexpr int kThreads = 8, kCalls = 5;
  std::vector<std::uintptr_t> streams;
  for (int i = 0; i < kThreads; ++i) streams.push_back(fake().create_stream(context));
  std::vector<std::thread> threads;
  std::vector<std::string> errors(kThreads);
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      DeviceCall device;
      for (int n = 0; n < kCalls; ++n)
        errors[static_cast<std::size_t>(i)] =
            thrown([&] { gpu_backward(session, device.call, on(0, streams[static_cast<std::size_t>(i)])); });
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& error : errors) CHECK(error == "none");
  const std::vector<std::string> log = fake().log();
  const auto num_kernels = count(log, "load");
  CHECK(num_kernels == fixture.place().num_compiled());
  for (const std::uintptr_t stream : streams)
    CHECK(std::count_if(log.begin(), log.end(), [&](const std::string& line) {
            return line.starts_with("launch ") && line.find(" stream " + hex(stream) + " ") != std::string::npos;
          }) == kCalls * num_kernels);
}

TEST_CASE("tensors in host memory are copied, and complete at return") {
  Fixture fixture;
  GpuSession session = fixture.session();
  DeviceCall memory;  // the fake device's memory is the host's
  for (const std::string& name : DeviceCall::names()) {
    const auto& shape = memory.shape(name);
    const auto bytes =
        static_cast<std::size_t>(shape[0] * shape[1] * shape[2] * shape[3]) * size_bytes(memory.view(name).dtype);
    std::fill_n(static_cast<unsigned char*>(memory.view(name).data), bytes, static_cast<unsigned char>(0));
  }
  const GpuRun run = gpu_backward_from_host(session, memory.call, on(0));
  const std::vector<std::string> happened = events(fake().log());
  const auto at = [&](const std::string& event) {
    return std::find(happened.begin(), happened.end(), event) - happened.begin();
  };
  for (const std::string& kernel : run.kernels) CHECK(at("launch " + kernel) < at("synchronise"));
  CHECK(at("synchronise") < at("download"));
  CHECK(count(fake().log(), "download") == 6);
  // Kernels of the fake driver write nothing: its memory is full of NaN.
  CHECK(*static_cast<const std::uint16_t*>(memory.call.dq.data) > 0x7f80);
  CHECK(*static_cast<const float*>(memory.call.dh0.data) != *static_cast<const float*>(memory.call.dh0.data));
  CHECK(*static_cast<const std::uint16_t*>(memory.call.q.data) == 0);
  GpuChoice choice = on(0);
  choice.max_workspace_bytes = 100;
  CHECK(thrown([&] { gpu_backward_from_host(session, memory.call, choice); }).starts_with("3 GDR-G04 workspace"));
}

}  // namespace gdr::test
