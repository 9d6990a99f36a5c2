#include "dataset/contact_sheet.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/error.h"
#include "base/text.h"
#include "dataset/lettering.h"
#include "dataset/resample.h"

namespace netmend::dataset {
namespace {

constexpr int64_t kLargest = 128, kSmallest = 48, kGap = 4, kCaption = 2 * kGap + kLetterHeight;
constexpr uint8_t kGround = 40, kInk = 230;

/// Large pictures are shrunk; small ones are enlarged by a whole factor, so that their pixels can be seen.
void fit(Display& picture) {
  const int64_t longer = std::max(picture.height, picture.width);
  const int64_t factor = longer >= kSmallest ? 1 : (kSmallest + longer - 1) / longer;
  if (longer <= kLargest && factor == 1) return;
  Resize resize;
  resize.filter = factor > 1 ? "nearest" : "bilinear";
  const double scale = longer > kLargest ? double(kLargest) / double(longer) : double(factor);
  resize.height = std::max<int64_t>(1, int64_t(double(picture.height) * scale));
  resize.width = std::max<int64_t>(1, int64_t(double(picture.width) * scale));
  picture.pixels =
      resample(interleaved<uint8_t>(picture.pixels.data(), picture.height, picture.width, picture.channels), resize);
  picture.height = resize.height, picture.width = resize.width;
}

struct Group {
  std::string caption;
  std::vector<Display> pictures;
};

std::vector<Group> group(const Dataset& data, std::span<const int64_t> samples) {
  std::map<int64_t, Group> groups;
  const bool classes = data.info().labels == LabelKind::kClass;
  for (int64_t sample : samples) {
    Display picture = data.display(sample);
    if (picture.kind != Display::kImage) continue;
    fit(picture);
    const int64_t label = classes ? data.read(std::span(&sample, 1)).labels.item<int64_t>() : 0;
    Group& group = groups[label];
    if (classes && label < int64_t(data.info().classes.size())) group.caption = data.info().classes[size_t(label)];
    group.pictures.push_back(std::move(picture));
  }
  std::vector<Group> out;
  for (auto& [label, group] : groups) out.push_back(std::move(group));
  return out;
}

void paste(Image& sheet, const Display& picture, int64_t top, int64_t left) {
  for (int64_t y = 0; y < picture.height; ++y)
    for (int64_t x = 0; x < picture.width; ++x)
      for (int64_t c = 0; c < 3; ++c)
        sheet.pixels[size_t(((top + y) * sheet.width + left + x) * 3 + c)] =
            picture.pixels[size_t((y * picture.width + x) * picture.channels + (picture.channels == 3 ? c : 0))];
}

}  // namespace

Image contact_sheet(const Dataset& data, std::span<const int64_t> samples, int64_t columns) {
  check(columns >= 1, "a sheet of {} columns", columns);
  std::vector<Group> groups = group(data, samples);
  if (groups.empty()) fail("{} has no images to show", data.info().spec);
  int64_t cell_height = 0, cell_width = 0, rows = 0, captions = 0, widest = 1, longest = 0;
  for (const Group& group : groups) {
    const int64_t count = int64_t(group.pictures.size());
    rows += (count + columns - 1) / columns;
    widest = std::max(widest, std::min(count, columns));
    captions += !group.caption.empty();
    longest = std::max(longest, text_width(group.caption));  // names are never cut
    for (const Display& picture : group.pictures)
      cell_height = std::max(cell_height, picture.height), cell_width = std::max(cell_width, picture.width);
  }
  const int64_t width = std::max(widest * (cell_width + kGap), longest + kGap);
  Image sheet{kGap + rows * (cell_height + kGap) + captions * kCaption, kGap + width, 3, {}};
  sheet.pixels.assign(size_t(sheet.height * sheet.width * 3), kGround);
  int64_t top = kGap;
  for (const Group& group : groups) {
    if (!group.caption.empty()) {
      draw_text(sheet, top + kGap, kGap, group.caption, kInk);
      top += kCaption;
    }
    for (size_t i = 0; i < group.pictures.size(); ++i) {
      paste(sheet, group.pictures[i], top, kGap + int64_t(i) % columns * (cell_width + kGap));
      if (int64_t(i) % columns == columns - 1 || i + 1 == group.pictures.size()) top += cell_height + kGap;
    }
  }
  return sheet;
}

void write_contact_sheet(const Dataset& data, std::span<const int64_t> samples, int64_t columns,
                         const std::string& path) {
  Image sheet = contact_sheet(data, samples, columns);
  write_png(path, sheet.height, sheet.width, sheet.channels, sheet.pixels);
}

std::vector<int64_t> sheet_samples(const Dataset& data, int64_t per_class) {
  std::vector<int64_t> chosen;
  if (data.info().labels != LabelKind::kClass) {
    const int64_t count = std::min(data.size(), per_class * 10);
    for (int64_t i = 0; i < count; ++i) chosen.push_back(i * data.size() / count);
    return chosen;
  }
  std::map<int64_t, int64_t> taken;
  int64_t wanted = per_class * int64_t(data.info().classes.size());
  std::vector<int64_t> batch;
  for (int64_t begin = 0; begin < data.size() && wanted > 0; begin += 256) {
    batch.resize(size_t(std::min<int64_t>(256, data.size() - begin)));
    std::iota(batch.begin(), batch.end(), begin);
    at::Tensor labels = data.read(batch).labels;
    for (size_t i = 0; i < batch.size(); ++i)
      if (taken[labels.data_ptr<int64_t>()[i]]++ < per_class) chosen.push_back(batch[i]), --wanted;
  }
  return chosen;
}

}  // namespace netmend::dataset
