// The functions that the table names, by the file that holds them. Each reads and checks the attributes of a node and
// returns the kernel that runs it.
#pragma once

#include "ops/op.h"

namespace netmend::ops::families {

using Prepare = Kernel(const NodeView&);
using FindUnits = std::optional<Units>(const NodeView&);

// elementwise.cc
Prepare abs, acos, acosh, add, asin, asinh, atan, atanh, bitwise_and, bitwise_or, bitwise_xor, ceil, cos, cosh, div,
    equal, erf, exp, floor, greater, greater_or_equal, is_inf, is_nan, less, less_or_equal, log, logical_and,
    logical_not, logical_or, logical_xor, max, mean, min, mod, mul, neg, pow, reciprocal, round, sign, sin, sinh, sqrt,
    sub, sum, tan, where;

// activation.cc
Prepare bias_gelu, celu, clip, elu, fast_gelu, gelu, hard_sigmoid, hard_swish, hardmax, leaky_relu, log_softmax, mish,
    prelu, quick_gelu, relu, selu, shrink, sigmoid, softmax, softplus, softsign, swish, tanh, thresholded_relu;

// reduce.cc
Prepare arg_max, arg_min, cum_sum, reduce_l1, reduce_l2, reduce_log_sum, reduce_log_sum_exp, reduce_max, reduce_mean,
    reduce_min, reduce_prod, reduce_sum, reduce_sum_square, top_k;

// shape.cc
Prepare cast, cast_like, constant, constant_of_shape, expand, eye_like, flatten, identity, range, reshape, shape, size,
    squeeze, tile, transpose, unsqueeze;

// arrange.cc
Prepare compress, concat, depth_to_space, pad, reverse_sequence, slice, space_to_depth, split, trilu;

// gather.cc
Prepare gather, gather_elements, gather_nd, non_zero, one_hot, scatter_elements, scatter_nd;

// linear.cc
Prepare einsum, fused_matmul, gemm, matmul;
FindUnits gemm_units, matmul_units;

// conv.cc
Prepare conv, conv_transpose;
FindUnits conv_units, conv_transpose_units;

// pool.cc
Prepare average_pool, global_average_pool, global_lp_pool, global_max_pool, lp_pool, max_pool;

// norm.cc
Prepare batch_normalization, group_normalization, instance_normalization, layer_normalization, lp_normalization, lrn,
    mean_variance_normalization, rms_normalization, skip_layer_normalization;

// dropout.cc
Prepare dropout;

// recurrent.cc
Prepare gru, lstm, rnn;
FindUnits recurrent_units;

// quantize.cc
Prepare conv_integer, dequantize_linear, dynamic_quantize_linear, matmul_integer, qlinear_conv, qlinear_matmul,
    quantize_linear;

// resize.cc
Prepare grid_sample, resize, upsample;

}  // namespace netmend::ops::families
