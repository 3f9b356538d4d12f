// The functions of libcuda that are used, found by name when the library is opened. Seen by this room alone.
#pragma once

#include <cstddef>

#include "runtime/driver.hpp"

namespace gdr {

struct Driver::Functions {
  int (*init)(unsigned) = nullptr;
  int (*driver_version)(int*) = nullptr;
  int (*error_name)(int, const char**) = nullptr;
  int (*error_string)(int, const char**) = nullptr;
  int (*device_count)(int*) = nullptr;
  int (*device_get)(int*, int) = nullptr;
  int (*device_name)(char*, int, int) = nullptr;
  int (*device_attribute)(int*, int, int) = nullptr;
  int (*retain_context)(void**, int) = nullptr;
  int (*release_context)(int) = nullptr;
  int (*push_context)(void*) = nullptr;
  int (*pop_context)(void**) = nullptr;
  int (*current_context)(void**) = nullptr;
  int (*context_device)(int*) = nullptr;
  int (*context_id)(void*, unsigned long long*) = nullptr;  // from CUDA 12.0 on; may be null
  int (*stream_context)(void*, void**) = nullptr;
  int (*is_capturing)(void*, int*) = nullptr;
  int (*synchronise_stream)(void*) = nullptr;
  int (*pointer_attribute)(void*, int, DevicePointer) = nullptr;
  int (*allocate)(DevicePointer*, std::size_t) = nullptr;
  int (*free)(DevicePointer) = nullptr;
  int (*allocate_async)(DevicePointer*, std::size_t, void*) = nullptr;
  int (*free_async)(DevicePointer, void*) = nullptr;
  int (*upload)(DevicePointer, const void*, std::size_t) = nullptr;
  int (*download)(void*, DevicePointer, std::size_t) = nullptr;
  int (*load_module)(void**, const void*) = nullptr;
  int (*unload_module)(void*) = nullptr;
  int (*get_function)(void**, void*, const char*) = nullptr;
  int (*set_function_attribute)(void*, int, int) = nullptr;
  // For benchmarks; may be null.
  int (*function_attribute)(int*, int, void*) = nullptr;
  int (*occupancy)(int*, void*, int, std::size_t) = nullptr;
  int (*create_event)(void**, unsigned) = nullptr;
  int (*destroy_event)(void*) = nullptr;
  int (*record_event)(void*, void*) = nullptr;
  int (*event_distance)(float*, void*, void*) = nullptr;
  int (*fill_async)(DevicePointer, unsigned char, std::size_t, void*) = nullptr;
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                void**) = nullptr;
};

inline void* stream_handle(StreamHandle stream) { return reinterpret_cast<void*>(stream); }

}  // namespace gdr
