// How this test program was built: without optimisation, under a sanitizer or for another processor it runs ten to a
// hundred times slower, so the largest cases are left out and nothing about speed is concluded.
#pragma once

namespace gdr::cpu::test {

#if defined(__has_feature)
#define GDR_HAS_FEATURE(name) __has_feature(name)
#else
#define GDR_HAS_FEATURE(name) 0
#endif

constexpr bool kAddressSanitizer =
#if defined(__SANITIZE_ADDRESS__) || GDR_HAS_FEATURE(address_sanitizer)
    true;
#else
    false;
#endif

constexpr bool kThreadSanitizer =
#if defined(__SANITIZE_THREAD__) || GDR_HAS_FEATURE(thread_sanitizer)
    true;
#else
    false;
#endif

#undef GDR_HAS_FEATURE

constexpr const char* kSanitizer = kAddressSanitizer  ? "address sanitizer"
                                   : kThreadSanitizer ? "thread sanitizer"
                                                      : nullptr;

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

// A hundred times slower rather than ten.
constexpr bool test_is_slowest() { return kThreadSanitizer || is_emulated(); }
constexpr bool test_is_slow() { return kSanitizer != nullptr || !is_optimised() || is_emulated(); }

}  // namespace gdr::cpu::test
