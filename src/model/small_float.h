// Floats of 8 and 4 bits as ONNX files store them. They are carried as float32; every one of them is a float32.
#pragma once

#include <cstdint>

#include "model/element.h"

namespace netmend::model {

bool is_small_float(Element type);
/// The value of a code. Precondition: is_small_float(type); codes of 4 bits are below 16.
float small_to_float(Element type, uint8_t code);
/// The code of the nearest value, halves to even; of powers of two (E8M0) by `rounding`. What is too large becomes the
/// largest value when `saturate`, else infinity or NaN, whichever the type has.
uint8_t float_to_small(Element type, double value, const Narrowing& how = {});

}  // namespace netmend::model
