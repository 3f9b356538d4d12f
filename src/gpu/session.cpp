#include "gpu/session.hpp"

#include <utility>

#include "config/registry.hpp"
#include "core/error.hpp"
#include "core/settings.hpp"

namespace gdr {
namespace {

struct Listener {
  std::mutex mutex;
  NoticeCallback callback;
};
Listener& listener() {
  static Listener* const instance = new Listener;
  return *instance;
}

void tell(const Notice& notice) {
  NoticeCallback callback;
  {
    const std::lock_guard lock(listener().mutex);
    callback = listener().callback;
  }
  if (callback) callback(notice);
}

}  // namespace

GpuSession::GpuSession(std::string libcuda, LibraryOptions options)
    : libcuda_(std::move(libcuda)), library_(std::move(options)) {}

GpuSession& GpuSession::of_process() {
  static GpuSession* const session = new GpuSession(settings().libcuda, library_options(tell));
  return *session;
}

void GpuSession::set_notice_callback(NoticeCallback callback) {
  const std::lock_guard lock(listener().mutex);
  listener().callback = std::move(callback);
}

std::shared_ptr<const Driver> GpuSession::driver() {
  const std::lock_guard lock(mutex_);
  if (!driver_) driver_ = Driver::open(libcuda_);
  return driver_;
}

std::shared_ptr<const Arch> GpuSession::arch_of(int device) {
  const DeviceFacts& facts = driver()->device(device);
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const Arch>& known = archs_[device];
  if (known) return known;
  for (const std::string_view name : config_names(ConfigKind::arch)) {
    Arch arch = load_arch(std::string(name));
    if (arch.compute_capability_major == facts.compute_capability_major &&
        arch.compute_capability_minor == facts.compute_capability_minor)
      return known = std::make_shared<const Arch>(std::move(arch));
  }
  fail(ErrorKind::unsupported, "GDR-G01", "{}: compute capability {}.{} is none of the shipped architectures",
       facts.name, facts.compute_capability_major, facts.compute_capability_minor);
}

KernelRequest GpuSession::request(const GpuRules& rules, const GpuProblem& problem, const Arch& target) {
  KernelRequest request;
  request.plan.arch = rules.arch.empty() ? target : load_arch(rules.arch);
  request.plan.shape.name = "of the call";
  request.plan.shape.k_heads = 1;  // the plan of a class does not depend on how many there are
  request.plan.shape.v_heads = problem.group;
  request.plan.shape.head_dim_k = problem.dim_k;
  request.plan.shape.head_dim_v = problem.dim_v;
  request.plan.shape.tokens = request.plan.shape.sequences = 1;
  request.plan.budget = load_budget("default");
  if (!rules.strategy.empty()) request.plan.strategy = rules.strategy;
  request.targets = target.targets;
  return request;
}

std::shared_ptr<GpuSession::Slot> GpuSession::slot(const GpuRules& rules, const GpuProblem& problem,
                                                   const Context& context) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Slot>& known = slots_[{context, rules.arch, rules.strategy, problem}];
  if (!known) known = std::make_shared<Slot>();
  return known;
}

std::shared_ptr<const GpuProgram> GpuSession::find(const GpuRules& rules, const GpuProblem& problem,
                                                   const Context& context) {
  const std::shared_ptr<Slot> slot = this->slot(rules, problem, context);
  const std::lock_guard lock(slot->mutex);
  return slot->program;
}

std::shared_ptr<const GpuProgram> GpuSession::get(const GpuRules& rules, const GpuProblem& problem,
                                                  const Context& context) {
  const std::shared_ptr<Slot> slot = this->slot(rules, problem, context);
  const std::lock_guard lock(slot->mutex);
  if (!slot->program)
    slot->program = std::make_shared<const GpuProgram>(library_.get(request(rules, problem, *arch_of(context.device))),
                                                       driver(), context);
  return slot->program;
}

}  // namespace gdr
