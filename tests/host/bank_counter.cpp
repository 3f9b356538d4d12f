#include "bank_counter.hpp"

#include <algorithm>
#include <array>
#include <set>

namespace gdr::host {

void BankCounter::add(int op, const std::vector<Lane>& lanes, int bytes) {
  constexpr int kBanks = 32, kBankBytes = 4, kLanes = 32;
  const int lanes_at_once = bytes <= kBankBytes ? kLanes : kLanes * kBankBytes / bytes;
  BankCount& count = by_op_[op];
  ++count.accesses;
  for (int first = 0; first < kLanes; first += lanes_at_once) {
    std::array<std::set<int>, kBanks> words;  // different words of a bank
    bool any = false;
    for (const Lane& lane : lanes) {
      if (lane.lane < first || lane.lane >= first + lanes_at_once) continue;
      any = true;
      for (int byte = lane.byte; byte < lane.byte + bytes; byte += kBankBytes)
        words[static_cast<std::size_t>(byte / kBankBytes % kBanks)].insert(byte / kBankBytes);
    }
    if (!any) continue;
    std::size_t most = 0;
    for (const std::set<int>& of_bank : words) most = std::max(most, of_bank.size());
    ++count.best;
    count.passes += static_cast<std::int64_t>(most);
  }
}

}  // namespace gdr::host
