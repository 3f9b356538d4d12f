// The words of a plan file for every enumeration of the model: one table for each, used in both directions.
#pragma once

#include <array>
#include <string_view>

#include "config/json.hpp"
#include "schedule/model.hpp"

namespace gdr {

template <typename T>
struct EnumNames;  // `kTable` holds one Choice for each value

#define GDR_ENUM_NAMES(T, ...)                                              \
  template <>                                                               \
  struct EnumNames<T> {                                                     \
    using enum T;                                                           \
    static constexpr auto kTable = std::to_array<Choice<T>>({__VA_ARGS__}); \
  }

GDR_ENUM_NAMES(TensorKind, {"input", input}, {"output", output}, {"workspace", workspace});
GDR_ENUM_NAMES(TensorIndex, {"token", token}, {"chunk", chunk}, {"sequence", sequence});
GDR_ENUM_NAMES(HeadAxis, {"k_head", k_head}, {"v_head", v_head});
GDR_ENUM_NAMES(GlobalOrder, {"rows", rows}, {"lower16", lower16}, {"fragment", fragment});
GDR_ENUM_NAMES(Space, {"smem", smem}, {"reg", reg});
GDR_ENUM_NAMES(RegKind, {"acc", acc}, {"a", a});
GDR_ENUM_NAMES(Access, {"read", read}, {"write", write}, {"accumulate", accumulate});
GDR_ENUM_NAMES(Proxy, {"generic", generic}, {"async", async});
GDR_ENUM_NAMES(OpKind, {"copy_in", copy_in}, {"copy_out", copy_out}, {"load", load}, {"store", store}, {"mma", mma},
               {"map", map}, {"reduce", reduce}, {"scan", scan}, {"tri_inverse", tri_inverse}, {"relayout", relayout},
               {"arrive", arrive}, {"wait", wait}, {"sync", sync}, {"fence", fence});
GDR_ENUM_NAMES(Mechanism, {"none", none}, {"cp_async", cp_async}, {"bulk", bulk}, {"tensor", tensor}, {"plain", plain});
GDR_ENUM_NAMES(Where, {"all", all}, {"row_valid", row_valid});
GDR_ENUM_NAMES(Mask, {"none", none}, {"lower", lower});
GDR_ENUM_NAMES(ReduceAxis, {"none", none}, {"cols", cols}, {"rows", rows}, {"all", all});
GDR_ENUM_NAMES(BarrierKind, {"mbarrier", mbarrier}, {"named", named});
GDR_ENUM_NAMES(GridAxis, {"sequence", sequence}, {"v_head", v_head}, {"k_head", k_head}, {"chunk", chunk},
               {"v_slice", v_slice});
GDR_ENUM_NAMES(LoopKind, {"once", once}, {"chunks_ascending", chunks_ascending},
               {"chunks_descending", chunks_descending});

#undef GDR_ENUM_NAMES

template <typename T>
concept NamedEnum = requires {
  EnumNames<T>::kTable;
};

// The word of a value.
template <NamedEnum T>
constexpr std::string_view to_string(T value) {
  for (const Choice<T>& choice : EnumNames<T>::kTable)
    if (choice.value == value) return choice.name;
  return "?";  // no value of the enumeration: -Wswitch cannot help a table, the test of names.hpp does
}

}  // namespace gdr
