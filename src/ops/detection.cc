// Operators of detectors and of networks that deform their images: regions, samples between pixels, suppression.
#include <algorithm>
#include <cmath>

#include "ops/arguments.h"
#include "ops/families.h"
#include "ops/window.h"

namespace netmend::ops::families {
namespace {

struct Box {
  double y1, x1, y2, x2;
  double area() const { return (y2 - y1) * (x2 - x1); }
};

Box box_at(const double* p, bool centred) {
  if (centred) return {p[1] - p[3] / 2, p[0] - p[2] / 2, p[1] + p[3] / 2, p[0] + p[2] / 2};
  return {std::min(p[0], p[2]), std::min(p[1], p[3]), std::max(p[0], p[2]), std::max(p[1], p[3])};
}

double overlap(const Box& a, const Box& b) {
  double height = std::min(a.y2, b.y2) - std::max(a.y1, b.y1), width = std::min(a.x2, b.x2) - std::max(a.x1, b.x1);
  if (height <= 0 || width <= 0 || a.area() <= 0 || b.area() <= 0) return 0;
  return height * width / (a.area() + b.area() - height * width);
}

struct Suppression {
  int64_t most;
  double overlap;
  std::optional<double> score;
};

/// Boxes from the highest score down, without those that overlap one that is kept; equal scores keep their order.
std::vector<int64_t> kept_boxes(const std::vector<Box>& boxes, const double* scores, const Suppression& rule) {
  std::vector<int64_t> order, kept;
  for (int64_t i = 0; i < int64_t(boxes.size()); ++i)
    if (!std::isnan(scores[i]) && (!rule.score || scores[i] > *rule.score)) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
  for (int64_t i : order) {
    if (int64_t(kept.size()) >= rule.most) break;
    bool hidden = std::any_of(kept.begin(), kept.end(), [&](int64_t other) {
      return overlap(boxes[size_t(i)], boxes[size_t(other)]) > rule.overlap;
    });
    if (!hidden) kept.push_back(i);
  }
  return kept;
}

at::Tensor suppressed(const at::Tensor& boxes, const at::Tensor& scores, bool centred, const Suppression& rule) {
  if (boxes.dim() != 3 || boxes.size(2) != 4 || scores.dim() != 3 || scores.size(0) != boxes.size(0) ||
      scores.size(2) != boxes.size(1))
    fail("boxes and scores do not fit each other");
  at::Tensor places = boxes.detach().to(at::kCPU, at::kDouble).contiguous();
  at::Tensor marks = scores.detach().to(at::kCPU, at::kDouble).contiguous();
  std::vector<int64_t> found;
  for (int64_t n = 0; n < boxes.size(0); ++n) {
    std::vector<Box> all;
    for (int64_t i = 0; i < boxes.size(1); ++i)
      all.push_back(box_at(places.data_ptr<double>() + (n * boxes.size(1) + i) * 4, centred));
    for (int64_t c = 0; c < scores.size(1); ++c) {
      const double* row = marks.data_ptr<double>() + (n * scores.size(1) + c) * scores.size(2);
      for (int64_t i : kept_boxes(all, row, rule)) found.insert(found.end(), {n, c, i});
    }
  }
  return at::tensor(found, at::kLong).reshape({-1, 3}).to(boxes.device());
}

/// The samples of one axis of a region: for each the pixels on both sides and their weights, 0 for samples outside.
struct Samples {
  at::Tensor index, weight;  ///< 2 · samples
  int64_t per_bin = 0;
};

constexpr int64_t kMostSamples = 1 << 16;  // along an axis; a region that asks for more is a mistake

Samples region_samples(double from, double to, int64_t bins, int64_t ratio, int64_t size, bool half_pixel) {
  if (!std::isfinite(from) || !std::isfinite(to)) fail("a region is not finite");
  double extent = half_pixel ? to - from : std::max(to - from, 1.0), bin = extent / double(bins);
  double wanted = ratio > 0 ? double(ratio) : std::ceil(bin);
  if (wanted * double(bins) > double(kMostSamples)) fail("a region of {} pixels needs too many samples", extent);
  Samples s{.per_bin = std::max<int64_t>(int64_t(wanted), 0)};
  std::vector<int64_t> index;
  std::vector<double> weight;
  for (int64_t b = 0; b < bins; ++b)
    for (int64_t i = 0; i < s.per_bin; ++i) {
      double at = from + double(b) * bin + (double(i) + 0.5) * bin / double(s.per_bin);
      bool inside = at >= -1 && at <= double(size);
      at = std::clamp(at, 0.0, double(size - 1));
      auto low = int64_t(at), high = std::min(low + 1, size - 1);
      index.insert(index.end(), {low, high});
      weight.insert(weight.end(), {inside ? 1 - (at - double(low)) : 0, inside ? at - double(low) : 0});
    }
  s.index = at::tensor(index, at::kLong), s.weight = at::tensor(weight, at::kDouble);
  return s;
}

struct RegionForm {
  int64_t height, width, ratio;
  double scale;
  bool half_pixel, largest;

  explicit RegionForm(const NodeView& node)
      : height(node.integer("output_height", 1)),
        width(node.integer("output_width", 1)),
        ratio(node.integer("sampling_ratio", 0)),
        scale(node.real("spatial_scale", 1)) {
    std::string mode = node.text("mode", "avg");
    std::string shift = node.opset() < 16 ? "output_half_pixel" : "half_pixel";
    shift = node.text("coordinate_transformation_mode", shift);
    node.require(mode == "avg" || mode == "max", "mode is {}, expected avg or max", mode);
    node.require(shift == "half_pixel" || shift == "output_half_pixel", "coordinate_transformation_mode is {}", shift);
    node.require(height > 0 && width > 0 && height <= kMostSamples && width <= kMostSamples, "an output of {} × {}",
                 height, width);
    node.require(ratio >= 0, "sampling_ratio is {}", ratio);
    half_pixel = shift == "half_pixel", largest = mode == "max";
  }
};

/// One region of one image: C × height × width. As in other runtimes the maximum is that of weighted pixels.
at::Tensor region(const at::Tensor& image, const double* roi, const RegionForm& form) {
  double shift = form.half_pixel ? 0.5 : 0;
  auto place = [&](int i) { return roi[i] * form.scale - shift; };
  Samples x = region_samples(place(0), place(2), form.width, form.ratio, image.size(2), form.half_pixel);
  Samples y = region_samples(place(1), place(3), form.height, form.ratio, image.size(1), form.half_pixel);
  if (x.per_bin * y.per_bin == 0) return at::zeros({image.size(0), form.height, form.width}, image.options());
  at::Tensor weight = (y.weight.unsqueeze(1) * x.weight).to(image.options());
  at::Tensor taken = image.index_select(1, y.index.to(image.device())).index_select(2, x.index.to(image.device()));
  taken = (taken * weight).reshape({image.size(0), form.height, 2 * y.per_bin, form.width, 2 * x.per_bin});
  if (form.largest) return at::amax(taken, {2, 4});
  return at::sum(taken, {2, 4}) / double(x.per_bin * y.per_bin);
}

at::Tensor regions(const Call& call, const RegionForm& form) {
  const at::Tensor &x = call.in(0), &rois = call.in(1);
  if (x.dim() != 4 || x.size(2) < 1 || x.size(3) < 1) fail("the input is no batch of images");
  if (rois.dim() != 2 || rois.size(1) != 4) fail("rois must be a list of 4 coordinates");
  at::Tensor places = rois.detach().to(at::kCPU, at::kDouble).contiguous();
  at::Tensor images = call.in(2).detach().to(at::kCPU, at::kLong).contiguous();
  if (images.numel() != rois.size(0)) fail("{} batch_indices for {} rois", images.numel(), rois.size(0));
  std::vector<at::Tensor> parts;
  for (int64_t r = 0; r < rois.size(0); ++r) {
    int64_t n = images.data_ptr<int64_t>()[r];
    if (n < 0 || n >= x.size(0)) fail("batch index {} of {} images", n, x.size(0));
    parts.push_back(region(x.select(0, n), places.data_ptr<double>() + r * 4, form));
  }
  return parts.empty() ? at::zeros({0, x.size(1), form.height, form.width}, x.options()) : at::stack(parts);
}

struct DeformForm {
  WindowAttributes window;
  int64_t groups, offset_groups;

  explicit DeformForm(const NodeView& node)
      : window(node), groups(node.integer("group", 1)), offset_groups(node.integer("offset_group", 1)) {
    node.require(groups > 0 && offset_groups > 0, "{} groups, {} groups of offsets", groups, offset_groups);
  }
};

/// Where a kernel's elements lie without offsets, along one axis: kernel × outputs.
at::Tensor regular(const Window& w, size_t axis, int64_t kernel, int64_t outputs, const at::TensorOptions& options) {
  at::Tensor element = at::arange(kernel, options) * double(w.dilation[axis]);
  at::Tensor output = at::arange(outputs, options) * double(w.stride[axis]) - double(w.begin[axis]);
  return element.unsqueeze(1) + output;
}

/// Pixels between pixels, read by LibTorch's grid sampler, whose coordinates go from -1 to 1 over the image's edges.
at::Tensor deformed(const at::Tensor& x, const at::Tensor& offset, at::IntArrayRef kernel, const Window& w,
                    int64_t groups) {
  int64_t n = x.size(0), height = x.size(2), width = x.size(3), out_h = offset.size(2), out_w = offset.size(3);
  at::Tensor by = offset.reshape({n * groups, kernel[0], kernel[1], 2, out_h, out_w});
  at::Tensor rows = regular(w, 0, kernel[0], out_h, offset.options()).reshape({1, kernel[0], 1, out_h, 1});
  at::Tensor columns = regular(w, 1, kernel[1], out_w, offset.options()).reshape({1, 1, kernel[1], 1, out_w});
  at::Tensor y = (2 * (rows + by.select(3, 0)) + 1) / double(height) - 1;
  at::Tensor z = (2 * (columns + by.select(3, 1)) + 1) / double(width) - 1;
  at::Tensor grid = at::stack({z, y}, -1).reshape({n * groups, kernel[0] * kernel[1] * out_h, out_w, 2});
  at::Tensor images = x.reshape({n * groups, x.size(1) / groups, height, width});
  at::Tensor taken = at::grid_sampler(images, grid, 0, 0, false);
  return taken.reshape({n, groups, x.size(1) / groups, kernel[0] * kernel[1], out_h * out_w});
}

at::Tensor convolve_deformed(const Call& call, const DeformForm& form) {
  const at::Tensor &x = call.in(0), &w = call.in(1), &offset = call.in(2);
  if (x.dim() != 4 || w.dim() != 4 || offset.dim() != 4) fail("only images are supported: 4 axes everywhere");
  at::IntArrayRef kernel = w.sizes().slice(2), sizes = x.sizes().slice(2);
  Window window = window_over(form.window, kernel, sizes);
  const std::vector<int64_t>& out = window.output;
  int64_t groups = form.offset_groups, elements = times(kernel[0], kernel[1]);
  if (x.size(1) % groups != 0 || x.size(1) != times(w.size(1), form.groups) || w.size(0) % form.groups != 0)
    fail("channels do not fit groups and weights");
  std::vector<int64_t> expected = {x.size(0), times(2 * groups, elements), out[0], out[1]};
  if (offset.sizes() != at::IntArrayRef(expected)) fail("offsets have another shape than the output asks for");
  at::Tensor columns = deformed(x, offset, kernel, window, groups);
  if (call.has(4)) {
    expected[1] = groups * elements;
    if (call.in(4).sizes() != at::IntArrayRef(expected)) fail("the mask has another shape than the output asks for");
    columns = columns * call.in(4).reshape({x.size(0), groups, 1, elements, out[0] * out[1]});
  }
  columns = columns.reshape({x.size(0), form.groups, w.size(1) * elements, out[0] * out[1]});
  at::Tensor y = at::matmul(w.reshape({form.groups, w.size(0) / form.groups, w.size(1) * elements}), columns);
  y = y.reshape({x.size(0), w.size(0), out[0], out[1]});
  return call.has(3) ? y + call.in(3).reshape({-1, 1, 1}) : y;
}

std::vector<int64_t> one_per_axis(std::vector<int64_t> given, size_t size, int64_t otherwise, const char* name) {
  if (given.empty()) given.assign(size, otherwise);
  if (given.size() != size) fail("{} has {} numbers, expected {}", name, given.size(), size);
  return given;
}

struct FoldForm {
  std::vector<int64_t> strides, dilations, pads;
};

/// Blocks added up where they lie in the image: the reverse of cutting it into blocks.
at::Tensor folded(const at::Tensor& x, const std::vector<int64_t>& image, const std::vector<int64_t>& block,
                  const FoldForm& form) {
  size_t rank = image.size();
  if (x.dim() != 3 || rank == 0 || block.size() != rank) fail("blocks of {} axes for images of {}", block.size(), rank);
  std::vector<int64_t> stride = one_per_axis(form.strides, rank, 1, "strides"), canvas;
  std::vector<int64_t> dilation = one_per_axis(form.dilations, rank, 1, "dilations");
  std::vector<int64_t> pads = one_per_axis(form.pads, 2 * rank, 0, "pads"), counts;
  int64_t elements = 1, positions = 1, cells = 1;
  for (size_t i = 0; i < rank; ++i) {
    if (image[i] < 1 || block[i] < 1 || stride[i] < 1 || dilation[i] < 1 || pads[i] < 0 || pads[rank + i] < 0)
      fail("sizes, strides and dilations must be positive, pads not negative");
    canvas.push_back(plus(image[i], plus(pads[i], pads[rank + i])));
    int64_t room = plus(canvas[i], -plus(times(block[i] - 1, dilation[i]), 1));
    if (room < 0) fail("a block is larger than the image along axis {}", i);
    counts.push_back(room / stride[i] + 1);
    elements = times(elements, block[i]), positions = times(positions, counts[i]), cells = times(cells, canvas[i]);
  }
  if (x.size(1) % elements != 0 || x.size(2) != positions) fail("{} × {} blocks expected", elements, positions);
  at::TensorOptions whole = x.options().dtype(at::kLong);
  at::Tensor index = at::zeros({1, 1}, whole);  // elements × positions, in the canvas
  for (size_t i = 0; i < rank; ++i) {
    at::Tensor place =
        (at::arange(block[i], whole) * dilation[i]).unsqueeze(1) + at::arange(counts[i], whole) * stride[i];
    index =
        index.reshape({index.size(0), 1, index.size(1), 1}) * canvas[i] + place.reshape({1, block[i], 1, counts[i]});
    index = index.reshape({index.size(0) * block[i], index.size(2) * counts[i]});
  }
  int64_t planes = times(x.size(0), x.size(1) / elements);
  at::Tensor sums = at::zeros({planes, cells}, x.options())
                        .index_add(1, index.reshape({-1}), x.reshape({planes, times(elements, positions)}));
  std::vector<int64_t> shape = {x.size(0), x.size(1) / elements};
  shape.insert(shape.end(), canvas.begin(), canvas.end());
  at::Tensor y = sums.reshape(shape);
  for (size_t i = 0; i < rank; ++i) y = y.narrow(int64_t(i) + 2, pads[i], image[i]);
  return y;
}

}  // namespace

Kernel non_max_suppression(const NodeView& node) {
  int64_t format = node.integer("center_point_box", 0);
  node.require(format == 0 || format == 1, "center_point_box is {}, expected 0 or 1", format);
  return [=](Call& call) {
    Suppression rule{call.has(2) ? integer_of(call.in(2), "max_output_boxes_per_class") : 0,
                     call.has(3) ? real_of(call.in(3), "iou_threshold") : 0, std::nullopt};
    if (call.has(4)) rule.score = real_of(call.in(4), "score_threshold");
    call.set(0, suppressed(call.in(0), call.in(1), format == 1, rule));
  };
}

Kernel roi_align(const NodeView& node) {
  RegionForm form(node);
  return [=](Call& call) { call.set(0, regions(call, form)); };
}

Kernel deform_conv(const NodeView& node) {
  DeformForm form(node);
  return [=](Call& call) { call.set(0, convolve_deformed(call, form)); };
}

std::optional<Units> deform_conv_units(const NodeView& node) {
  at::Tensor weight = node.constant(1);
  if (!weight.defined() || weight.dim() != 4) return std::nullopt;
  return Units{.count = weight.size(0), .bias_slot = node.has_input(3) ? 3 : -1};
}

Kernel col2im(const NodeView& node) {
  FoldForm form{node.integers("strides"), node.integers("dilations"), node.integers("pads")};
  return [=](Call& call) {
    call.set(0,
             folded(call.in(0), integers_of(call.in(1), "image_shape"), integers_of(call.in(2), "block_shape"), form));
  };
}

Kernel affine_grid(const NodeView& node) {
  bool corners = node.integer("align_corners", 0) != 0;
  return [=](Call& call) {
    std::vector<int64_t> size = integers_of(call.in(1), "size");
    if (size.size() < 4 || size.size() > 5 || model::checked_count(size) < 1) fail("size must name 4 or 5 axes");
    int64_t rank = int64_t(size.size()) - 2;
    std::vector<int64_t> expected = {size[0], rank, rank + 1};
    if (call.in(0).sizes() != at::IntArrayRef(expected)) fail("theta must be {} × {} × {}", size[0], rank, rank + 1);
    call.set(0, at::affine_grid_generator(call.in(0), size, corners));
  };
}

/// Values back to where a pool found them. Indices count the elements of the whole tensor that was pooled.
Kernel max_unpool(const NodeView& node) {
  FoldForm form{.strides = node.integers("strides"), .dilations = {}, .pads = node.integers("pads")};
  std::vector<int64_t> kernel = node.integers("kernel_shape");
  return [=](Call& call) {
    const at::Tensor& x = call.in(0);
    size_t rank = kernel.size();
    if (rank == 0 || x.dim() != int64_t(rank) + 2 || call.in(1).sizes() != x.sizes())
      fail("values, indices and kernel_shape do not fit each other");
    std::vector<int64_t> stride = one_per_axis(form.strides, rank, 1, "strides"),
                         pads = one_per_axis(form.pads, 2 * rank, 0, "pads");
    std::vector<int64_t> sizes = {x.size(0), x.size(1)};
    for (size_t i = 0; i < rank; ++i)
      sizes.push_back(
          plus(plus(times(x.size(int64_t(i) + 2) - 1, stride[i]), -plus(pads[i], pads[rank + i])), kernel[i]));
    int64_t count = model::checked_count(sizes);
    at::Tensor index = call.in(1).to(at::kLong).reshape({-1});
    if (count < 0 || (index.numel() && (index.min().item<int64_t>() < 0 || index.max().item<int64_t>() >= count)))
      fail("an index lies outside the unpooled tensor");
    at::Tensor y = at::scatter(at::zeros({count}, x.options()), 0, index, x.reshape({-1})).reshape(sizes);
    if (!call.has(2)) return call.set(0, y);
    std::vector<int64_t> shape = integers_of(call.in(2), "output_shape"), more;
    if (shape.size() != sizes.size()) fail("output_shape names {} axes, expected {}", shape.size(), sizes.size());
    for (size_t i = shape.size(); i-- > 0;) {
      if (shape[i] < sizes[i]) fail("output_shape is smaller than what is unpooled");
      more.insert(more.end(), {0, shape[i] - sizes[i]});
    }
    call.set(0, at::constant_pad_nd(y, more, 0));
  };
}

// clang-format off
std::span<const Op> detection_rows() {
  static constexpr Op kRows[] = {
      {.name = "AffineGrid", .prepare = affine_grid},
      {.name = "Col2Im", .prepare = col2im},
      {.name = "DeformConv", .prepare = deform_conv, .kind = Kind::kLinear, .units = deform_conv_units},
      {.name = "MaxUnpool", .prepare = max_unpool},
      {.name = "NonMaxSuppression", .prepare = non_max_suppression, .differentiable = false},
      {.name = "RoiAlign", .prepare = roi_align},
  };
  return kRows;
}
// clang-format on

}  // namespace netmend::ops::families
