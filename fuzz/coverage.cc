// gcc calls this at every block of code; libFuzzer reads the counters after every input.
#include <cstdint>

namespace {
constexpr uintptr_t kCounters = 1 << 16;
__attribute__((section("__libfuzzer_extra_counters"))) uint8_t counters[kCounters];
}  // namespace

extern "C" void __sanitizer_cov_trace_pc() {
  auto place = reinterpret_cast<uintptr_t>(__builtin_return_address(0));
  ++counters[(place ^ place >> 16) % kCounters];
}

// gcc also tells of comparisons of real numbers, which libFuzzer does not listen to.
extern "C" void __sanitizer_cov_trace_cmpf(float, float) {}
extern "C" void __sanitizer_cov_trace_cmpd(double, double) {}
