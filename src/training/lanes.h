// Arithmetic of sixteen networks of one form at once: every number of the one stands beside the same number of the
// others (a lane each), so that one instruction does the same step of all. What a network gets depends on its own lane
// alone: neither on what stands in the others, nor on how wide the machine's vectors are.
#pragma once

#include <cstdint>

#include "training/optimiser.h"

namespace netmend::training {

constexpr int64_t kLanes = 16;

/// c(m, n) = start + sum over k of a(m, k) · b(k, n). Tables hold where each row, column and step lies, counted in
/// groups of lanes (of `b` in single numbers where it is shared by all networks).
struct LaneProduct {
  const float* a = nullptr;
  const int64_t *a_row = nullptr, *a_step = nullptr;
  const float* b = nullptr;
  const int64_t *b_column = nullptr, *b_step = nullptr;
  bool shared = false;
  float* c = nullptr;
  const int64_t *c_row = nullptr, *c_column = nullptr;
  int64_t rows = 0, columns = 0, steps = 0;
  const float* bias = nullptr;  ///< of each row, where c starts; null for none
  bool add = false;             ///< start at what is there
};
void lane_product(const LaneProduct& product);

/// Windows of `window` numbers that follow one another: the largest of each (NaN wins), and which it is. `window` is at
/// most 127.
void lane_pool(const float* from, int64_t windows, int64_t window, bool relu, float* to, int8_t* which);
/// The way back: `gradient` of each window's result goes to the number that was chosen, all others get 0. Where relu
/// cut the result off there is none. Adds what passes to `sum`.
void lane_unpool(const float* gradient, const float* result, const int8_t* which, int64_t windows, int64_t window,
                 bool relu, float* to, float* sum);
/// max(x, 0), NaN stays, over `count` groups of lanes.
void lane_relu(float* x, int64_t count);
/// gradient ← 0 where relu gave 0.
void lane_relu_back(float* gradient, const float* result, int64_t count);
/// sum += the sum of `rows` groups of lanes, `stride` groups apart.
void lane_sum(const float* from, int64_t rows, int64_t stride, float* sum);

}  // namespace netmend::training
