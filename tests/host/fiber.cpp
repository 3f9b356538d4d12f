#include "fiber.hpp"

#include <sys/mman.h>

#include <boost/context/detail/fcontext.hpp>
#include <new>

#if defined(__SANITIZE_ADDRESS__)
#define GDR_ADDRESS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define GDR_ADDRESS_SANITIZER
#endif
#endif
#if defined(GDR_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace gdr::host {
namespace {

// Pages are taken when they are touched: room for the sanitizer's frames costs nothing elsewhere.
constexpr std::size_t kStackBytes = 256 * 1024;

void tell_leaving([[maybe_unused]] void** fake_stack, [[maybe_unused]] const void* bottom,
                  [[maybe_unused]] std::size_t bytes) {
#if defined(GDR_ADDRESS_SANITIZER)
  __sanitizer_start_switch_fiber(fake_stack, bottom, bytes);
#endif
}
void tell_arrived([[maybe_unused]] void* fake_stack, [[maybe_unused]] const void** bottom,
                  [[maybe_unused]] std::size_t* bytes) {
#if defined(GDR_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(fake_stack, bottom, bytes);
#endif
}

}  // namespace

FiberStack::FiberStack() {
  void* const memory =
      mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  bottom_ = static_cast<std::byte*>(memory);
}
FiberStack::~FiberStack() { munmap(bottom_, kStackBytes); }
std::size_t FiberStack::bytes() const { return kStackBytes; }

struct Fiber::Switch {
  static void entry(boost::context::detail::transfer_t from) {
    auto* const self = static_cast<Fiber*>(from.data);
    tell_arrived(nullptr, &self->outside_bottom_, &self->outside_bytes_);
    self->context_ = from.fctx;
    self->body_(self->argument_);
    self->ended_ = true;
    tell_leaving(nullptr, self->outside_bottom_, self->outside_bytes_);
    boost::context::detail::jump_fcontext(self->context_, self);
  }
};

Fiber::Fiber(FiberStack& stack, Body body, void* argument) : stack_(stack), body_(body), argument_(argument) {
#if defined(GDR_ADDRESS_SANITIZER)
  __asan_unpoison_memory_region(stack.bottom(), kStackBytes);  // a dropped fiber's frames
#endif
  context_ = boost::context::detail::make_fcontext(stack.bottom() + kStackBytes, kStackBytes, &Switch::entry);
}

bool Fiber::resume() {
  tell_leaving(&outside_fake_stack_, stack_.bottom(), kStackBytes);
  const boost::context::detail::transfer_t back = boost::context::detail::jump_fcontext(context_, this);
  tell_arrived(outside_fake_stack_, nullptr, nullptr);
  context_ = back.fctx;
  return !ended_;
}

void Fiber::suspend() {
  tell_leaving(&inside_fake_stack_, outside_bottom_, outside_bytes_);
  const boost::context::detail::transfer_t back = boost::context::detail::jump_fcontext(context_, this);
  tell_arrived(inside_fake_stack_, &outside_bottom_, &outside_bytes_);
  context_ = back.fctx;
}

}  // namespace gdr::host
