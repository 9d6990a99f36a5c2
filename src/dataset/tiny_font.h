// Capital letters and digits, five dots wide and seven high, for captions in pictures.
#pragma once

#include <string_view>

#include "dataset/image_file.h"

namespace netmend::dataset {

constexpr int64_t kLetterWidth = 6, kLetterHeight = 7;  ///< with the gap to the next letter

/// Writes into an image in one grey value; what does not fit is left out.
void draw_text(Image& image, int64_t top, int64_t left, std::string_view text, uint8_t grey);

}  // namespace netmend::dataset
