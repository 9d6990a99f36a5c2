#include "dataset/glyphs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "base/random.h"

namespace netmend::dataset {
namespace {

constexpr int kSide = int(kGlyphSide);
using Distances = std::array<float, size_t(kSide* kSide)>;  ///< of each pixel to the nearest ink, squared

/// A line between two others, rounded through all four points (Catmull and Rom).
GlyphPoint curve(const GlyphPoint& a, const GlyphPoint& b, const GlyphPoint& c, const GlyphPoint& d, double t) {
  auto mix = [t](double p, double q, double r, double s) {
    return 0.5 * (2 * q + (r - p) * t + (2 * p - 5 * q + 4 * r - s) * t * t + (3 * q - p - 3 * r + s) * t * t * t);
  };
  return {mix(a.x, b.x, c.x, d.x), mix(a.y, b.y, c.y, d.y)};
}

/// The hand: how a writer bends, leans, stretches and places what others write straight.
struct Hand {
  double xx, xy, yx, yy, x, y;           ///< affine map into pixels
  double wave[2], turn[2][2], phase[2];  ///< two slow waves that bend the paper
  double shake;                          ///< of each point

  explicit Hand(Random& random) {
    double angle = 0.16 * random.normal(), lean = 0.22 * random.normal();
    double wide = 19 * random.uniform(0.72, 1.12), high = 19 * random.uniform(0.85, 1.12);
    double c = std::cos(angle), s = std::sin(angle);
    xx = c * wide, xy = (-s - lean * c) * high, yx = s * wide, yy = (c - lean * s) * high;
    x = 14 + random.normal(), y = 14 + random.normal();
    for (int i = 0; i < 2; ++i) {
      wave[i] = 0.035 * random.normal();
      phase[i] = random.uniform(0, 2 * std::numbers::pi);
      for (double& t : turn[i]) t = random.uniform(-6, 6);
    }
    shake = random.uniform(0.005, 0.03);
  }

  GlyphPoint place(const GlyphPoint& p) const {
    double u = p.x + wave[0] * std::sin(turn[0][0] * p.x + turn[0][1] * p.y + phase[0]) - 0.5;
    double v = p.y + wave[1] * std::sin(turn[1][0] * p.x + turn[1][1] * p.y + phase[1]) - 0.5;
    return {x + xx * u + xy * v, y + yx * u + yy * v};
  }
};

void draw_line(const GlyphPoint& from, const GlyphPoint& to, double reach, Distances& nearest) {
  auto pixel = [](double value) { return std::clamp(int(std::floor(value)), 0, kSide); };
  int left = pixel(std::min(from.x, to.x) - reach), right = pixel(std::max(from.x, to.x) + reach + 1);
  int top = pixel(std::min(from.y, to.y) - reach), bottom = pixel(std::max(from.y, to.y) + reach + 1);
  const float fx = float(from.x), fy = float(from.y), dx = float(to.x - from.x), dy = float(to.y - from.y);
  const float inverse = 1 / std::max(dx * dx + dy * dy, 1e-6f);
  for (int y = top; y < bottom; ++y)
    for (int x = left; x < right; ++x) {
      float px = float(x) + 0.5f - fx, py = float(y) + 0.5f - fy;
      float t = std::clamp((px * dx + py * dy) * inverse, 0.f, 1.f);
      float ex = px - t * dx, ey = py - t * dy;
      float& best = nearest[size_t(y * kSide + x)];
      best = std::min(best, ex * ex + ey * ey);
    }
}

void draw_stroke(const GlyphStroke& stroke, const Hand& hand, double reach, Random& random, Distances& nearest) {
  std::vector<GlyphPoint> points = stroke.points;
  for (GlyphPoint& point : points)
    point = {point.x + hand.shake * random.normal(), point.y + hand.shake * random.normal()};
  const size_t last = points.size() - 1;
  const int steps = stroke.smooth ? 4 : 2;
  GlyphPoint from = hand.place(points[0]);
  for (size_t i = 0; i < last; ++i)
    for (int step = 1; step <= steps; ++step) {
      double t = double(step) / steps;
      const GlyphPoint &b = points[i], &c = points[i + 1];
      GlyphPoint between = stroke.smooth ? curve(points[i ? i - 1 : 0], b, c, points[std::min(i + 2, last)], t)
                                         : GlyphPoint{b.x + t * (c.x - b.x), b.y + t * (c.y - b.y)};
      GlyphPoint to = hand.place(between);
      draw_line(from, to, reach, nearest);
      from = to;
    }
}

/// Now and then a scratch that belongs to no digit, or a patch that hides a part of it.
void add_scratch(double reach, Random& random, Distances& nearest) {
  GlyphPoint from{random.uniform(2, 26), random.uniform(2, 26)};
  double angle = random.uniform(0, 2 * std::numbers::pi), length = random.uniform(3, 9);
  draw_line(from, {from.x + length * std::cos(angle), from.y + length * std::sin(angle)}, reach, nearest);
}

void add_patch(Random& random, uint8_t* pixels) {
  int height = 3 + int(random.below(5)), width = 3 + int(random.below(5));
  int top = 4 + int(random.below(uint64_t(kSide - 8 - height))),
      left = 4 + int(random.below(uint64_t(kSide - 8 - width)));
  uint8_t grey = random.uniform() < 0.5 ? 0 : uint8_t(60 + random.below(120));
  for (int y = top; y < top + height; ++y) std::fill_n(pixels + y * kSide + left, width, grey);
}

void add_noise(double strength, Random& random, uint8_t* pixels) {
  const int factor = int(strength * 256 / 104);  // the sum of two bytes deviates by 104 from its mean
  for (int i = 0; i < kSide * kSide; i += 4) {
    uint64_t bits = random.bits();
    for (int j = 0; j < 4; ++j, bits >>= 16) {
      int value = int(bits & 255) + int(bits >> 8 & 255) - 255;
      pixels[i + j] = uint8_t(std::clamp(int(pixels[i + j]) + value * factor / 256, 0, 255));
    }
  }
}

}  // namespace

void draw_glyph(int digit, uint64_t seed, uint64_t number, uint8_t* pixels) {
  Random random(seed, number);
  const auto& styles = glyph_styles(digit);
  const std::vector<GlyphStroke>& style = styles[random.below(styles.size())];
  Hand hand(random);
  const double radius = random.uniform(0.7, 1.8), soft = random.uniform(0.8, 1.6), bright = random.uniform(170, 255);
  const double reach = radius + soft;
  Distances nearest;
  nearest.fill(1e4f);
  for (const GlyphStroke& stroke : style) draw_stroke(stroke, hand, reach, random, nearest);
  if (random.uniform() < 0.1) add_scratch(reach, random, nearest);
  for (int i = 0; i < kSide * kSide; ++i) {
    float ink = (float(reach) - std::sqrt(nearest[size_t(i)])) / (2 * float(soft));
    pixels[i] = uint8_t(std::clamp(ink, 0.f, 1.f) * float(bright) + 0.5f);
  }
  if (random.uniform() < 0.08) add_patch(random, pixels);
  add_noise(random.uniform(0, 18), random, pixels);
}

}  // namespace netmend::dataset
