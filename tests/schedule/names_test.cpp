#include "schedule/names.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <set>
#include <string>

using namespace gdr;

// Tables hold the values 0, 1, 2 ... in order, each with a word of its own, and none is missing: `last` is the last.
template <NamedEnum T>
static void check_table(T last) {
  const auto& table = EnumNames<T>::kTable;
  std::set<std::string_view> words;
  for (std::size_t i = 0; i < table.size(); ++i) {
    CHECK(static_cast<std::size_t>(table[i].value) == i);
    CHECK(to_string(table[i].value) == table[i].name);
    words.insert(table[i].name);
  }
  CHECK(words.size() == table.size());
  CHECK(table.back().value == last);
}

TEST_CASE("each enumeration of the model has a word for each of its values") {
  check_table(TensorKind::workspace);
  check_table(TensorIndex::sequence);
  check_table(HeadAxis::v_head);
  check_table(GlobalOrder::fragment);
  check_table(Space::reg);
  check_table(RegKind::a);
  check_table(Access::accumulate);
  check_table(Proxy::async);
  check_table(OpKind::fence);
  check_table(Mechanism::plain);
  check_table(Where::row_valid);
  check_table(Mask::lower);
  check_table(ReduceAxis::all);
  check_table(BarrierKind::named);
  check_table(GridAxis::v_slice);
  check_table(LoopKind::chunks_descending);
}
