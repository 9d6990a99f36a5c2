// The two formats behind image_file.h, each in its own file since each library reports errors by a jump of its own.
#pragma once

#include "dataset/image_file.h"

namespace netmend::dataset {

constexpr int64_t kMostPixels = int64_t(1) << 26;  ///< 67 million: a small file may claim any size

void check_image_size(int64_t height, int64_t width, const std::string& name);

/// In the file's own number of channels, 1 or 3, without transparency.
Image decode_png(std::string_view bytes, const std::string& name);
Image decode_jpeg(std::string_view bytes, const std::string& name);
ImageHead png_head(std::string_view bytes, const std::string& name);
ImageHead jpeg_head(std::string_view bytes, const std::string& name);

}  // namespace netmend::dataset
