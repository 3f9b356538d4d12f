// Stackful fibers on a pool of stacks. A fiber runs until it suspends or ends; one that is never resumed is dropped
// with whatever lies on its stack, so nothing there may own anything while it is suspended.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace gdr::host {

class FiberStack {
 public:
  FiberStack();
  ~FiberStack();
  FiberStack(const FiberStack&) = delete;
  FiberStack& operator=(const FiberStack&) = delete;
  std::byte* bottom() const { return bottom_; }
  std::size_t bytes() const;

 private:
  std::byte* bottom_;
};

class Fiber {
 public:
  using Body = void (*)(void*);

  // Prepares to run body(argument) on the stack.
  Fiber(FiberStack& stack, Body body, void* argument);

  // From outside: runs the fiber until it suspends (true) or ends (false).
  bool resume();
  // From inside: back to whoever resumed it.
  void suspend();

 private:
  struct Switch;

  FiberStack& stack_;
  Body body_;
  void* argument_;
  void* context_ = nullptr;  // where the fiber, or while it runs its resumer, goes on
  bool ended_ = false;
  void* outside_fake_stack_ = nullptr;  // the address sanitizer's
  void* inside_fake_stack_ = nullptr;
  const void* outside_bottom_ = nullptr;
  std::size_t outside_bytes_ = 0;
};

}  // namespace gdr::host
