#include "training/epoch.h"

#include <numeric>

#include "base/random.h"

namespace netmend::training {

std::vector<int64_t> epoch_order(int64_t inputs, uint64_t seed, int64_t epoch) {
  std::vector<int64_t> order(static_cast<size_t>(inputs));
  std::iota(order.begin(), order.end(), 0);
  Random(seed, uint64_t(epoch)).shuffle(order);
  return order;
}

}  // namespace netmend::training
