// PNG and JPEG files. Whatever a file holds (grey, palette, 16 bits, transparency), pixels come out as bytes in one
// channel or three, as Pillow's convert("L") and convert("RGB") give them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace netmend::dataset {

struct Image {
  int64_t height = 0, width = 0, channels = 0;
  std::vector<uint8_t> pixels;  ///< height × width × channels
};

struct ImageHead {
  int64_t height = 0, width = 0;
  bool color = false;
};

/// Reads size and kind only. Throws InputError that names the file: no image, damaged, larger than netmend decodes.
ImageHead read_image_head(std::string_view bytes, const std::string& name);
/// `channels` is 1 or 3. Throws InputError also when the file is cut short.
Image decode_image(std::string_view bytes, int64_t channels, const std::string& name);
Image read_image(const std::string& path, int64_t channels);

/// Writes grey (1 channel) or RGB (3); the file appears when it is complete.
void write_png(const std::string& path, int64_t height, int64_t width, int64_t channels,
               const std::vector<uint8_t>& pixels);
/// The same as bytes, for embedding.
std::string encode_png(int64_t height, int64_t width, int64_t channels, const std::vector<uint8_t>& pixels);

}  // namespace netmend::dataset
