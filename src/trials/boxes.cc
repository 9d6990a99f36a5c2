#include "trials/boxes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/escape.h"

namespace netmend::trials {
namespace {

double quantile(const std::vector<double>& sorted, double share) {
  const double place = share * double(sorted.size() - 1);
  const auto below = size_t(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - double(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

Box box_of(std::string label, std::vector<double> values) {
  std::erase_if(values, [](double x) { return !std::isfinite(x); });
  Box box{std::move(label), values.size(), NAN, NAN, NAN, NAN, NAN};
  if (values.empty()) return box;
  std::sort(values.begin(), values.end());
  box.least = values.front(), box.most = values.back();
  box.low = quantile(values, 0.25), box.median = quantile(values, 0.5), box.high = quantile(values, 0.75);
  return box;
}

Box fenced_box(std::string label, std::vector<double> values, bool keep_outliers) {
  Box box = box_of(std::move(label), values);
  if (box.count < 4) return box;
  const double reach = 1.5 * (box.high - box.low), low = box.low - reach, high = box.high + reach;
  box.least = box.low, box.most = box.high;
  for (double x : values) {
    if (!std::isfinite(x)) continue;
    if (x >= low && x <= high)
      box.least = std::min(box.least, x), box.most = std::max(box.most, x);
    else if (keep_outliers)
      box.outside.push_back(x);
    else
      --box.count;
  }
  return box;
}

std::string boxes_svg(const std::string& title, const std::vector<Box>& boxes, double baseline) {
  constexpr double kHeight = 320, kTop = 40, kBottom = 70, kLeft = 60, kStep = 84;
  double low = baseline, high = baseline;
  for (const Box& box : boxes)
    if (box.count) {
      low = std::min(low, box.least), high = std::max(high, box.most);
      for (double x : box.outside) low = std::min(low, x), high = std::max(high, x);
    }
  if (high - low < 1e-9) low -= 0.5, high += 0.5;
  const double width = kLeft + kStep * double(boxes.size()) + 20;
  auto y = [&](double v) { return kTop + (high - v) / (high - low) * (kHeight - kTop - kBottom); };
  Xml svg = Xml::of(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{:.0f}\" height=\"{:.0f}\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/><text x=\"12\" y=\"22\" font-size=\"14\">{}</text>\n",
      width, kHeight, title);
  for (int tick = 0; tick <= 4; ++tick) {
    const double v = low + (high - low) * tick / 4;
    svg += Xml::of(
        "<text x=\"{:.0f}\" y=\"{:.1f}\" text-anchor=\"end\" fill=\"#555\">{:.3g}</text><line x1=\"{:.0f}\" "
        "x2=\"{:.0f}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#eee\"/>\n",
        kLeft - 6, y(v) + 4, v, kLeft, width - 10, y(v), y(v));
  }
  svg += Xml::of(
      "<line x1=\"{:.0f}\" x2=\"{:.0f}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#c33\" stroke-dasharray=\"4 3\"/>\n",
      kLeft, width - 10, y(baseline), y(baseline));
  for (size_t i = 0; i < boxes.size(); ++i) {
    const Box& box = boxes[i];
    const double x = kLeft + kStep * (double(i) + 0.5);
    svg += Xml::of(
        "<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"middle\">{}</text><text x=\"{:.0f}\" y=\"{:.0f}\" "
        "text-anchor=\"middle\" fill=\"#777\">{}</text>\n",
        x, kHeight - kBottom + 22, box.label, x, kHeight - kBottom + 38, box.count);
    if (!box.count) continue;
    svg += Xml::of(
        "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\" stroke=\"#357\"/>"
        "<rect x=\"{3:.1f}\" y=\"{4:.1f}\" width=\"36\" height=\"{5:.1f}\" fill=\"#cde\" stroke=\"#357\"/>"
        "<line x1=\"{3:.1f}\" x2=\"{6:.1f}\" y1=\"{7:.1f}\" y2=\"{7:.1f}\" stroke=\"#124\" stroke-width=\"2\"/>\n",
        x, y(box.least), y(box.most), x - 18, y(box.high), std::max(0.5, y(box.low) - y(box.high)), x + 18,
        y(box.median));
    for (double value : box.outside)
      svg += Xml::of("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"none\" stroke=\"#357\"/>\n", x, y(value));
  }
  return (svg + Xml::of("</svg>\n")).text();
}

}  // namespace netmend::trials
