#include "stream/input_fit.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/error.h"
#include "base/text.h"
#include "dataset/dataset.h"
#include "model/graph.h"
#include "stream/feed.h"
#include "stream/match.h"
#include "stream/reference.h"

namespace netmend::stream {
namespace {

constexpr int64_t kMost = 64;        ///< inputs that are compared
constexpr double kExplained = 2e-3;  ///< of the range of the recorded values: what a fit may leave

/// theirs = slope · ours + offset, one per channel or one for all.
struct Fit {
  std::vector<double> slope, offset;
  double rest = INFINITY;  ///< largest difference that it leaves, as a part of the range
};

/// What may have been done to the axes beside scaling.
struct Variant {
  std::string words;  ///< "" for nothing
  bool turned = false;
  at::Tensor values;
};

int64_t channel_axis(const at::Tensor& values) {
  auto few = [&](int64_t axis) { return values.size(axis) == 1 || values.size(axis) == 3 || values.size(axis) == 4; };
  return values.dim() == 4 && !few(1) && few(3) ? 3 : 1;
}

std::vector<Variant> variants(const at::Tensor& ours) {
  std::vector<Variant> out = {{"", false, ours}};
  if (ours.dim() != 4) return out;
  const int64_t channel = channel_axis(ours), rows = channel == 1 ? 2 : 1, columns = channel == 1 ? 3 : 2;
  if (ours.size(channel) == 3) out.push_back({"the colour channels are reversed", true, ours.flip(channel)});
  if (ours.size(rows) == ours.size(columns))
    out.push_back({"rows and columns are swapped", false, ours.transpose(rows, columns).contiguous()});
  if (ours.size(channel) > 1) {
    at::Tensor last = ours.permute({0, 2, 3, 1}).contiguous().view(ours.sizes());
    out.push_back({"values stored channels last are read as channels first", false, last});
  }
  return out;
}

Fit fit(const at::Tensor& ours, const at::Tensor& theirs, bool by_channel) {
  auto rows = [&](const at::Tensor& values) {
    if (!by_channel) return values.to(at::kDouble).reshape({1, -1});
    return values.to(at::kDouble).transpose(0, channel_axis(ours)).flatten(1);
  };
  at::Tensor x = rows(ours), y = rows(theirs);
  at::Tensor mx = x.mean(1, true), my = y.mean(1, true);
  at::Tensor variance = (x - mx).square().mean(1, true), covariance = ((x - mx) * (y - my)).mean(1, true);
  at::Tensor slope = at::where(variance > 1e-12, covariance / variance.clamp_min(1e-12), at::ones_like(variance));
  at::Tensor offset = my - slope * mx;
  const double range = std::max((y.max() - y.min()).item<double>(), 1e-12);
  Fit out;
  out.rest = (x * slope + offset - y).abs().max().item<double>() / range;
  for (int64_t c = 0; c < slope.size(0); ++c) {
    out.slope.push_back(slope[c][0].item<double>());
    out.offset.push_back(offset[c][0].item<double>());
  }
  return out;
}

bool nearly(double a, double b, double size) { return std::abs(a - b) <= 1e-3 * std::max(size, 1e-9); }

std::string number(double value) { return fmt::format("{:.4g}", std::abs(value) < 1e-9 ? 0.0 : value); }

std::string numbers(const std::vector<double>& values) {
  bool same = true;
  for (double value : values) same = same && nearly(value, values[0], std::abs(values[0]));
  if (same) return number(values[0]);
  std::vector<std::string> words;
  for (double value : values) words.push_back(number(value));
  return fmt::format("[{}]", join(words, ", "));
}

/// `(yours − 0.485) / 0.229`
std::string formula(const Fit& fit) {
  std::vector<double> mean, deviation;
  bool shifted = false, scaled = false, shrinks = true;
  for (size_t c = 0; c < fit.slope.size(); ++c) {
    deviation.push_back(1 / fit.slope[c]);
    mean.push_back(-fit.offset[c] / fit.slope[c]);
    shifted = shifted || !nearly(mean[c], 0, std::abs(deviation[c]));
    scaled = scaled || !nearly(fit.slope[c], 1, 1);
    shrinks = shrinks && std::abs(deviation[c]) >= 0.01;
  }
  std::string text = shifted ? fmt::format("(yours − {})", numbers(mean)) : "yours";
  if (scaled) text += shrinks ? " / " + numbers(deviation) : " × " + numbers(fit.slope);
  return text;
}

bool identity(const Fit& fit) {
  for (size_t c = 0; c < fit.slope.size(); ++c)
    if (!nearly(fit.slope[c], 1, 1) || !nearly(fit.offset[c], 0, 1)) return false;
  return true;
}

double pick(const std::vector<double>& values, size_t channel, double otherwise) {
  return values.empty() ? otherwise : values[std::min(channel, values.size() - 1)];
}

/// Scale, mean and std that take the raw values where the framework had them, after what is done to them now.
struct Steps {
  double scale;
  std::vector<double> mean, deviation;
  bool possible = true;

  Steps(const Fit& fit, const dataset::Preprocess& now, bool turned) : scale(now.scale.value_or(1)) {
    const size_t channels = std::max({fit.slope.size(), now.mean.size(), now.std.size()});
    double least = INFINITY;
    for (size_t c = 0; c < channels; ++c) {
      const double slope = pick(fit.slope, c, 1), offset = pick(fit.offset, c, 0);
      const size_t from = turned ? channels - 1 - c : c;
      possible = possible && slope * scale > 0;
      deviation.push_back(pick(now.std, from, 1) / slope);
      mean.push_back(pick(now.mean, from, 0) - offset * deviation.back());
      least = std::min(least, deviation.back());
    }
    if (now.scale || least < 20) return;  // pixels of 0 to 255: mean and std are given for 0 to 1
    scale = 1 / 255.0;
    for (double& value : mean) value /= 255;
    for (double& value : deviation) value /= 255;
  }
};

std::string scale_text(double scale) {
  const double inverse = 1 / scale;
  return nearly(inverse, std::round(inverse), 1e-3) ? fmt::format("\"1/{:.0f}\"", inverse) : number(scale);
}

std::string key_text(const std::string& name) {
  const bool bare = !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '-';
  });
  return bare ? name : fmt::format("\"{}\"", name);
}

std::string config_line(const std::string& input, const Fit& fit, const dataset::Preprocess& now, bool turned) {
  const Steps steps(fit, now, turned);
  if (!steps.possible) return "";
  std::vector<std::string> keys;
  auto all = [](const std::vector<double>& values, double same, double size) {
    return std::all_of(values.begin(), values.end(), [&](double value) { return nearly(value, same, size); });
  };
  auto list = [](const std::vector<double>& values) {
    std::string text = numbers(values);
    return text[0] == '[' ? text : fmt::format("[{}]", text);
  };
  if (!now.layout.empty()) keys.push_back(fmt::format("layout = \"{}\"", now.layout));
  const bool bgr = (now.color == "BGR") != turned;
  if (turned || !now.color.empty()) keys.push_back(fmt::format("color = \"{}\"", bgr ? "BGR" : "RGB"));
  if (!nearly(steps.scale, 1, 1)) keys.push_back("scale = " + scale_text(steps.scale));
  if (!all(steps.mean, 0, steps.deviation[0])) keys.push_back("mean = " + list(steps.mean));
  if (!all(steps.deviation, 1, 1)) keys.push_back("std = " + list(steps.deviation));
  return keys.empty() ? "" : fmt::format("input.{} = {{ {} }}", key_text(input), join(keys, ", "));
}

InputFit explain(const std::string& name, const at::Tensor& ours, const at::Tensor& theirs,
                 const dataset::Preprocess& now) {
  InputFit out;
  out.equal = false;
  for (bool by_channel : {false, true})
    for (const Variant& variant : variants(ours)) {
      if (by_channel && (ours.dim() < 2 || ours.numel() / ours.size(channel_axis(ours)) < 32)) continue;
      const Fit line = fit(variant.values, theirs, by_channel);
      if (!(line.rest <= kExplained)) continue;
      std::vector<std::string> steps;
      if (!variant.words.empty()) steps.push_back(variant.words);
      if (!identity(line)) steps.push_back(fmt::format("the framework's input = {}", formula(line)));
      out.explanation = fmt::format("preprocessing of `{}`: {}", name, join(steps, ", and "));
      if (variant.words.empty() || variant.turned) out.config = config_line(name, line, now, variant.turned);
      return out;
    }
  out.explanation = fmt::format(
      "the inputs `{}` differ, and neither scale, offset, colour order nor layout explains it: they may be other "
      "samples, in another order, resized or augmented",
      name);
  return out;
}

InputFit compare_one(const std::string& name, const at::Tensor& ours, const at::Tensor& theirs,
                     const dataset::Preprocess& now, double tolerance) {
  InputFit out;
  if (ours.sizes() != theirs.sizes()) {
    out.equal = false;
    out.max = INFINITY;
    out.explanation = fmt::format(
        "preprocessing of `{}`: netmend's inputs are {}, the framework's {}; padding, resizing or cropping differ",
        name, shape_text({ours.sizes().data(), ours.sizes().size()}),
        shape_text({theirs.sizes().data(), theirs.sizes().size()}));
    return out;
  }
  at::Tensor apart = (ours.to(at::kDouble) - theirs.to(at::kDouble)).abs();
  const double max = apart.max().item<double>(), size = theirs.to(at::kDouble).abs().max().item<double>();
  if (max <= tolerance * std::max(1.0, size)) {
    out.max = max;
    return out;
  }
  if (ours.is_floating_point()) {
    out = explain(name, ours, theirs, now);
  } else {
    out.equal = false;
    out.explanation = fmt::format(
        "the ids in `{}` differ in {:.0f} % of their places: they may come from another vocabulary, or be other "
        "samples or in another order",
        name, 100 * apart.ne(0).to(at::kDouble).mean().item<double>());
  }
  out.max = max;
  return out;
}

}  // namespace

InputFit compare_inputs(const model::Graph& graph, const std::string& model_name, const Reference& reference,
                        const dataset::Dataset& data, double tolerance) {
  std::vector<int64_t> samples = reference.samples;
  if (samples.empty())
    throw InputError(fmt::format("{} does not say which samples of the data it was made of", reference.path),
                     "write it with `samples`, or compare without --data");
  const int64_t count = std::min<int64_t>(int64_t(samples.size()), kMost);
  samples.resize(size_t(count));
  for (int64_t sample : samples)
    if (sample >= data.size())
      throw InputError(fmt::format("{} was made with sample {}, {} has only {}", reference.path, sample,
                                   data.info().spec, with_commas(data.size())),
                       "name the data that the reference was made of");
  std::vector<at::Tensor> ours = Feed(graph, model_name, data.info()).inputs(data.read(samples));
  std::vector<at::Tensor> theirs = reference_inputs(graph, reference, 0, count);
  for (size_t i = 0; i < ours.size(); ++i) {
    const std::string& name = graph.values[size_t(graph.inputs[i])].name;
    InputFit found = compare_one(name, ours[i], theirs[i], data.info().preprocess, tolerance);
    if (!found.equal) return found;
  }
  return {};
}

}  // namespace netmend::stream
