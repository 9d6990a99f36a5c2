// Letters for captions in pictures: drawn from strokes, with smooth edges.
#pragma once

#include <string_view>

#include "dataset/image_file.h"

namespace netmend::dataset {

constexpr int64_t kLetterHeight = 13;  ///< from the top of a capital to the end of a descender

/// How wide a line of UTF-8 is. What is no letter of western Europe is drawn as an empty box.
int64_t text_width(std::string_view text);

/// Writes a line into an image in one grey value; what does not fit is left out.
void draw_text(Image& image, int64_t top, int64_t left, std::string_view text, uint8_t grey);

}  // namespace netmend::dataset
