// How this test program was built: without optimisation, under a sanitizer or for another processor it runs ten to a
// hundred times slower, so the largest cases are left out and nothing about speed is concluded.
#pragma once

namespace gdr::cpu::test {

constexpr const char* kSanitizer =
#if defined(__SANITIZE_ADDRESS__)
    "address sanitizer";
#elif defined(__SANITIZE_THREAD__)
    "thread sanitizer";
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
    "address sanitizer";
#elif __has_feature(thread_sanitizer)
    "thread sanitizer";
#else
    nullptr;
#endif
#else
    nullptr;
#endif

constexpr bool is_optimised() {
#if defined(__OPTIMIZE__)
  return true;
#else
  return false;
#endif
}

constexpr bool is_emulated() {
#if defined(GDR_TEST_EMULATED)
  return true;
#else
  return false;
#endif
}

constexpr bool test_is_slow() { return kSanitizer != nullptr || !is_optimised() || is_emulated(); }

}  // namespace gdr::cpu::test
