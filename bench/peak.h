#pragma once
namespace netmend::bench {
/// Fused multiply-adds a second times two, of one thread, by a loop that does nothing else.
double peak_flops(double seconds);
}  // namespace netmend::bench
