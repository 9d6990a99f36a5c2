// Drawn digits: data that needs no file. Every picture is a pure function of seed and number.
#pragma once

#include <cstdint>
#include <vector>

namespace netmend::dataset {

constexpr int64_t kGlyphSide = 28;
constexpr int64_t kGlyphTrain = 12000, kGlyphTest = 4000;

/// 28×28 grey values, ink bright on a dark ground. `number` picks the hand that draws.
void draw_glyph(int digit, uint64_t seed, uint64_t number, uint8_t* pixels);

struct GlyphPoint {
  double x = 0, y = 0;  ///< in a box from 0 to 1, y downwards
};
/// Points that a pen runs through; smooth strokes are rounded between them.
struct GlyphStroke {
  bool smooth = true;
  std::vector<GlyphPoint> points;
};
/// The ways in which people write a digit.
const std::vector<std::vector<GlyphStroke>>& glyph_styles(int digit);

}  // namespace netmend::dataset
