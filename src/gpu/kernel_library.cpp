#include "gpu/kernel_library.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <string_view>
#include <utility>
#include <variant>

#include "core/error.hpp"
#include "core/parallel.hpp"
#include "core/settings.hpp"
#include "emit/emit.hpp"
#include "gpu/keys.hpp"
#include "schedule/plan_json.hpp"

namespace gdr {
namespace {

constexpr std::string_view kPlan = "plan", kCubin = "cubin";
// Names of facts. A plan's entry lists the keys of its kernels in their order, separated by spaces.
constexpr const char *kKernelKeys = "kernel_keys", *kRegisters = "registers", *kSpill = "spill_bytes",
                     *kLocal = "local_bytes", *kSmem = "smem_bytes", *kCompiler = "nvrtc";

const std::vector<CompileTarget>& targets_of(const KernelRequest& request) {
  return request.targets.empty() ? request.plan.arch.targets : request.targets;
}

std::string fact(const Facts& facts, const char* name) {
  const auto found = facts.find(name);
  return found == facts.end() ? "" : found->second;
}

int number(const Facts& facts, const char* name) {
  const std::string text = fact(facts, name);
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

KernelFigures figures_of(const Facts& facts) {
  return {number(facts, kRegisters), number(facts, kSpill), number(facts, kLocal), number(facts, kSmem),
          fact(facts, kCompiler)};
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

// A plan's entry as a plan; nothing if it is not one of this program's (who can write to the cache may write anything).
std::optional<KeyedPlan> read_plan(const Found& found, const std::string& request_key, const std::string& target) {
  KeyedPlan keyed{nullptr, request_key, target, split(fact(found.entry->facts(), kKernelKeys)), found.origin};
  try {
    keyed.plan = std::make_shared<const Plan>(plan_from_json(found.entry->payload(), "cached plan " + request_key));
  } catch (const Error&) {
    return std::nullopt;
  }
  const auto is_good = [](const std::string& key) { return is_key(key); };
  if (keyed.kernel_keys.size() != keyed.plan->kernels.size() ||
      !std::all_of(keyed.kernel_keys.begin(), keyed.kernel_keys.end(), is_good))
    return std::nullopt;
  return keyed;
}

}  // namespace

LibraryOptions library_options(NoticeCallback notice) {
  LibraryOptions options;
  options.cache.directory = settings().cache_dir;
  options.cache.bundles = settings().bundle_paths;
  options.cache.notice = std::move(notice);
  options.nvrtc = nvrtc_search(settings());
  options.threads = settings().num_threads;
  if (!settings().cache_dir.empty()) options.failed_sources.push_back(settings().cache_dir / "failed");
  std::error_code ignored;
  const std::filesystem::path temporary = std::filesystem::temp_directory_path(ignored);
  if (!temporary.empty()) options.failed_sources.push_back(temporary / "gdrjit-failed");
  return options;
}

std::vector<bool> are_stored(const CacheOptions& cache, const std::vector<ReadyKernel>& kernels) {
  CacheOptions silent = cache;
  silent.notice = [](const Notice&) {};
  Cache fresh(std::move(silent));
  std::vector<bool> stored;
  for (const ReadyKernel& kernel : kernels) {
    const bool came_from_disk = kernel.origin == Origin::directory || kernel.origin == Origin::bundle;
    stored.push_back(came_from_disk || fresh.get(kCubin, kernel.key));
  }
  return stored;
}

PlanResult keyed_plan(const PlanRequest& request, const CompileTarget& target) {
  const PlanRequest adapted = request_for(request, target);
  PlanResult result = make_plan(adapted);
  result.facts.request_key = request_key(adapted, target.name);
  for (std::size_t i = 0; i < result.plan.kernels.size(); ++i)
    result.facts.kernels[i].kernel_key = kernel_key(emit_kernel(result.plan, result.plan.kernels[i]), target.name);
  return result;
}

KernelLibrary::KernelLibrary(LibraryOptions options) : options_(std::move(options)), cache_(options_.cache) {}

const Nvrtc& KernelLibrary::nvrtc() {
  const std::lock_guard lock(nvrtc_mutex_);
  if (!nvrtc_) nvrtc_ = Nvrtc::open(options_.nvrtc);
  return *nvrtc_;
}

std::optional<KeyedPlan> KernelLibrary::find_plan(const PlanRequest& request, const std::string& target) {
  const std::string key = request_key(request, target);
  const Found found = cache_.get(kPlan, key);
  return found ? read_plan(found, key, target) : std::nullopt;
}

std::optional<ReadyPlan> KernelLibrary::find_for(const KernelRequest& request, const CompileTarget& target) {
  std::optional<KeyedPlan> keyed = find_plan(request_for(request.plan, target), target.name);
  if (!keyed) return std::nullopt;
  ReadyPlan ready{std::move(keyed->plan), std::move(keyed->request_key), target.name, keyed->origin, {}};
  for (std::string& key : keyed->kernel_keys) {
    Found cubin = cache_.get(kCubin, key);
    if (!cubin) return std::nullopt;
    const KernelFigures figures = figures_of(cubin.entry->facts());
    ready.kernels.push_back({std::move(key), std::move(cubin.entry), figures, 0, cubin.origin});
  }
  return ready;
}

std::optional<ReadyPlan> KernelLibrary::find(const KernelRequest& request) {
  for (const CompileTarget& target : targets_of(request))
    if (std::optional<ReadyPlan> ready = find_for(request, target)) return ready;
  return std::nullopt;
}

KeyedPlan KernelLibrary::plan_for(const KernelRequest& request, const CompileTarget& target) {
  const PlanRequest adapted = request_for(request.plan, target);
  if (std::optional<KeyedPlan> keyed = find_plan(adapted, target.name)) return *keyed;
  const std::string key = request_key(adapted, target.name);
  const Maker make = [&] {
    const PlanResult result = keyed_plan(request.plan, target);
    std::vector<std::string> keys;
    for (const KernelFacts& kernel : result.facts.kernels) keys.push_back(kernel.kernel_key);
    return Content{plan_to_json(result.plan), {{kKernelKeys, fmt::format("{}", fmt::join(keys, " "))}}};
  };
  Found found = cache_.get_or_make(kPlan, key, make);
  if (std::optional<KeyedPlan> keyed = read_plan(found, key, target.name)) return *keyed;
  // The entry is whole and yet no plan: replaced.
  const Content content = make();
  found = {cache_.put(kPlan, key, content.payload, content.facts), Origin::made};
  std::optional<KeyedPlan> keyed = read_plan(found, key, target.name);
  internal_check(keyed.has_value(), "a plan that was just made can be read");
  return *keyed;
}

const CompileTarget& KernelLibrary::target_for(const KernelRequest& request) {
  const std::vector<CompileTarget>& targets = targets_of(request);
  std::vector<std::string> names;
  for (const CompileTarget& target : targets) names.push_back(target.name);
  try {
    nvrtc();
  } catch (const Error& error) {
    constexpr std::string_view kCode = "GDR-N01 ";
    std::string_view text = error.what();
    if (text.starts_with(kCode)) text.remove_prefix(kCode.size());
    fail(error.kind(), "GDR-N01", "{}: its kernels are not in the cache and have to be compiled. {}",
         request.plan.arch.name, text);
  }
  const std::optional<std::string> chosen = nvrtc().choose_target(names);
  if (!chosen)
    fail(ErrorKind::unsupported, "GDR-G01", "{}: NVRTC {} ({}) knows none of its targets {}; a newer CUDA is needed",
         request.plan.arch.name, nvrtc().version(), nvrtc().path(), fmt::join(names, ", "));
  return *std::find_if(targets.begin(), targets.end(), [&](const CompileTarget& t) { return t.name == *chosen; });
}

KeyedPlan KernelLibrary::plan(const KernelRequest& request) {
  if (const std::optional<ReadyPlan> ready = find(request)) {
    KeyedPlan keyed{ready->plan, ready->request_key, ready->target, {}, ready->origin};
    for (const ReadyKernel& kernel : ready->kernels) keyed.kernel_keys.push_back(kernel.key);
    return keyed;
  }
  const CompileTarget* target = nullptr;
  try {
    target = &target_for(request);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::compilation) throw;
  }
  return plan_for(request, target ? *target : targets_of(request).front());
}

ReadyKernel KernelLibrary::compile(const KeyedPlan& keyed, std::size_t index, const std::string& source) {
  const Kernel& kernel = keyed.plan->kernels[index];
  const std::string& key = keyed.kernel_keys[index];
  double seconds = 0;
  Found found = cache_.get_or_make(kCubin, key, [&] {
    const Nvrtc& compiler = nvrtc();
    auto outcome = compiler.compile(source, kernel.name, keyed.target);
    if (const auto* failure = std::get_if<CompileFailure>(&outcome))
      throw_failure(*failure, save_source(options_.failed_sources, kernel.name, key, source));
    const CompiledKernel& compiled = std::get<CompiledKernel>(outcome);
    seconds = compiled.seconds;
    return Content{std::string(reinterpret_cast<const char*>(compiled.cubin.data()), compiled.cubin.size()),
                   {{"kernel", kernel.name},
                    {"target", keyed.target},
                    {"options", fmt::format("{}", fmt::join(compile_options(keyed.target), " "))},
                    {kRegisters, std::to_string(compiled.registers)},
                    {kSpill, std::to_string(compiled.spill_bytes)},
                    {kLocal, std::to_string(compiled.local_bytes)},
                    {kSmem, std::to_string(compiled.smem_bytes)},
                    {kCompiler, compiler.version()}}};
  });
  const KernelFigures figures = figures_of(found.entry->facts());
  return {key, std::move(found.entry), figures, seconds, found.origin};
}

ReadyPlan KernelLibrary::get(const KernelRequest& request) { return std::move(get_all({request}).front()); }

std::vector<ReadyPlan> KernelLibrary::get_all(const std::vector<KernelRequest>& requests,
                                              const CompileProgress& progress) {
  const auto parallel = [&](std::size_t count, const std::function<void(std::size_t)>& task) {
    run_in_parallel(options_.threads, static_cast<std::int64_t>(count),
                    [&](int, std::int64_t index) { task(static_cast<std::size_t>(index)); });
  };
  std::vector<ReadyPlan> ready(requests.size());
  std::vector<KeyedPlan> keyed(requests.size());
  parallel(requests.size(), [&](std::size_t i) {
    if (std::optional<ReadyPlan> found = find(requests[i])) {
      ready[i] = std::move(*found);
      return;
    }
    keyed[i] = plan_for(requests[i], target_for(requests[i]));
    ready[i] = {keyed[i].plan, keyed[i].request_key, keyed[i].target, keyed[i].origin, {}};
    ready[i].kernels.resize(keyed[i].plan->kernels.size());
  });

  struct Job {
    std::size_t request, kernel;
    std::string source;
  };
  std::vector<Job> jobs;
  int total = 0, done = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    total += static_cast<int>(ready[i].kernels.size());
    if (!keyed[i].plan) {
      done += static_cast<int>(ready[i].kernels.size());
      continue;
    }
    for (std::size_t k = 0; k < keyed[i].plan->kernels.size(); ++k)
      jobs.push_back({i, k, emit_kernel(*keyed[i].plan, keyed[i].plan->kernels[k])});
  }
  // The one that takes longest shall not be the one that starts last.
  std::stable_sort(jobs.begin(), jobs.end(),
                   [](const Job& a, const Job& b) { return a.source.size() > b.source.size(); });
  std::mutex progress_mutex;
  parallel(jobs.size(), [&](std::size_t j) {
    const Job& job = jobs[j];
    ready[job.request].kernels[job.kernel] = compile(keyed[job.request], job.kernel, job.source);
    const std::lock_guard lock(progress_mutex);
    ++done;
    if (progress) progress(done, total, keyed[job.request].plan->kernels[job.kernel].name);
  });
  return ready;
}

}  // namespace gdr
