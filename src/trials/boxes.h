// Five numbers that tell a distribution, and their plot.
#pragma once

#include <string>
#include <vector>

namespace netmend::trials {

struct Box {
  std::string label;
  size_t count = 0;
  double least = 0, low = 0, median = 0, high = 0, most = 0;  ///< ends of the whiskers and quartiles
  std::vector<double> outside = {};                           ///< drawn as points
};
/// Whiskers to the extremes. Quartiles by linear interpolation. All NaN when there is nothing.
Box box_of(std::string label, std::vector<double> values);
/// Whiskers end at the last value within one and a half box lengths of the box; what lies further out are outliers,
/// which are kept or dropped.
Box fenced_box(std::string label, std::vector<double> values, bool keep_outliers);

/// Boxes side by side as SVG, with a line at `baseline`.
std::string boxes_svg(const std::string& title, const std::vector<Box>& boxes, double baseline);

}  // namespace netmend::trials
