// What the machine could do at most: the measure that times of a network are held against.
#pragma once

namespace netmend::executor {

/// Floating-point operations per second of one thread, by a loop of fused multiply-adds that does nothing else.
double peak_flops(double seconds);

}  // namespace netmend::executor
