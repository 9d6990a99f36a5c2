#include "dataset/image_file.h"

#include "base/error.h"
#include "base/file.h"
#include "dataset/image_codecs.h"

namespace netmend::dataset {
namespace {

bool is_png(std::string_view bytes) { return bytes.starts_with("\x89PNG\r\n\x1a\n"); }
bool is_jpeg(std::string_view bytes) { return bytes.starts_with("\xff\xd8\xff"); }

[[noreturn]] void no_image(const std::string& name) { fail("{} is neither a PNG nor a JPEG image", name); }

/// ITU-R 601 brightness in Pillow's fixed point.
Image to_grey(const Image& color) {
  Image grey{color.height, color.width, 1, {}};
  grey.pixels.reserve(color.pixels.size() / 3);
  for (size_t i = 0; i + 2 < color.pixels.size(); i += 3)
    grey.pixels.push_back(uint8_t(
        (color.pixels[i] * 19595u + color.pixels[i + 1] * 38470u + color.pixels[i + 2] * 7471u + 0x8000u) >> 16));
  return grey;
}

Image to_color(const Image& grey) {
  Image color{grey.height, grey.width, 3, {}};
  color.pixels.reserve(grey.pixels.size() * 3);
  for (uint8_t value : grey.pixels) color.pixels.insert(color.pixels.end(), 3, value);
  return color;
}

}  // namespace

void check_image_size(int64_t height, int64_t width, const std::string& name) {
  if (height < 1 || width < 1) fail("{} is an image without pixels", name);
  if (height > kMostPixels / width) fail("{} claims {}×{} pixels, more than netmend decodes", name, height, width);
}

ImageHead read_image_head(std::string_view bytes, const std::string& name) {
  if (is_png(bytes)) return png_head(bytes, name);
  if (is_jpeg(bytes)) return jpeg_head(bytes, name);
  no_image(name);
}

Image decode_image(std::string_view bytes, int64_t channels, const std::string& name) {
  check(channels == 1 || channels == 3, "{} channels", channels);
  if (!is_png(bytes) && !is_jpeg(bytes)) no_image(name);
  Image image = is_png(bytes) ? decode_png(bytes, name) : decode_jpeg(bytes, name);
  if (image.channels == channels) return image;
  return channels == 1 ? to_grey(image) : to_color(image);
}

Image read_image(const std::string& path, int64_t channels) {
  return decode_image(read_file(path, int64_t(256) << 20), channels, path);
}

void write_png(const std::string& path, int64_t height, int64_t width, int64_t channels,
               const std::vector<uint8_t>& pixels) {
  write_file(path, encode_png(height, width, channels, pixels));
}

}  // namespace netmend::dataset
