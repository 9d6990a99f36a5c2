// libpng jumps out of itself on errors, over C++ frames. So everything between setjmp and the jump is plain data owned
// by objects that outlive it.
#include <png.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "base/error.h"
#include "dataset/image_codecs.h"

namespace netmend::dataset {
namespace {

struct Trouble {
  char message[200] = "";
  bool no_memory = false;
};

png_voidp allocate(png_structp png, png_alloc_size_t size) {
  void* memory = std::malloc(size);
  if (!memory) static_cast<Trouble*>(png_get_mem_ptr(png))->no_memory = true;
  return memory;
}
void release(png_structp, png_voidp memory) { std::free(memory); }

void on_error(png_structp png, png_const_charp message) {
  auto* trouble = static_cast<Trouble*>(png_get_error_ptr(png));
  std::snprintf(trouble->message, sizeof trouble->message, "%s", message);
  png_longjmp(png, 1);
}
void on_warning(png_structp, png_const_charp) {}

struct Source {
  std::string_view bytes;
  size_t at = 0;
};

void read_bytes(png_structp png, png_bytep to, png_size_t count) {
  auto* source = static_cast<Source*>(png_get_io_ptr(png));
  if (count > source->bytes.size() - source->at) png_error(png, "it is cut short");
  std::memcpy(to, source->bytes.data() + source->at, count);
  source->at += count;
}

class Reader {
 public:
  Reader(std::string_view bytes, const std::string& name) : name_(name), source_{bytes} {
    png_ =
        png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &trouble_, on_error, on_warning, &trouble_, allocate, release);
    if (png_) info_ = png_create_info_struct(png_);
    if (!info_) png_destroy_read_struct(&png_, nullptr, nullptr), throw std::bad_alloc();
  }
  ~Reader() { png_destroy_read_struct(&png_, &info_, nullptr); }

  ImageHead head() {
    if (setjmp(png_jmpbuf(png_))) damaged();
    png_set_read_fn(png_, &source_, read_bytes);
    png_set_user_limits(png_, 1 << 20, 1 << 20);
    png_set_chunk_malloc_max(png_, 8 << 20);
    png_set_chunk_cache_max(png_, 100);
    png_read_info(png_, info_);
    return {int64_t(png_get_image_height(png_, info_)), int64_t(png_get_image_width(png_, info_)),
            (png_get_color_type(png_, info_) & PNG_COLOR_MASK_COLOR) != 0};
  }

  Image decode() {
    ImageHead head = this->head();
    check_image_size(head.height, head.width, name_);
    Image image{head.height, head.width, head.color ? 3 : 1, {}};
    image.pixels.resize(size_t(image.height * image.width * image.channels));
    std::vector<png_bytep> rows;
    for (int64_t y = 0; y < image.height; ++y) rows.push_back(image.pixels.data() + y * image.width * image.channels);
    read_rows(rows.data(), size_t(image.width * image.channels));
    return image;
  }

 private:
  [[noreturn]] void damaged() {
    if (trouble_.no_memory) throw std::bad_alloc();
    fail("{} is a damaged PNG image: {}", name_, trouble_.message);
  }

  void read_rows(png_bytep* rows, size_t row_bytes) {
    if (setjmp(png_jmpbuf(png_))) damaged();
    png_set_expand(png_);
    png_set_strip_16(png_);
    png_set_strip_alpha(png_);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    if (png_get_rowbytes(png_, info_) != row_bytes) png_error(png_, "its rows have an unexpected length");
    png_read_image(png_, rows);
    png_read_end(png_, nullptr);
  }

  const std::string& name_;
  Trouble trouble_;
  Source source_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

void append(png_structp png, png_bytep data, png_size_t count) {
  try {
    static_cast<std::string*>(png_get_io_ptr(png))->append(reinterpret_cast<const char*>(data), count);
    return;
  } catch (const std::bad_alloc&) {  // may not pass libpng, which is C
    static_cast<Trouble*>(png_get_mem_ptr(png))->no_memory = true;
  }
  png_error(png, "out of memory");
}

/// Everything that may jump, with its objects outside.
bool write_rows(png_structp png, png_infop info, std::string& out, png_bytep* rows, int64_t height, int64_t width,
                int64_t channels) {
  if (setjmp(png_jmpbuf(png))) return false;
  png_set_write_fn(png, &out, append, nullptr);
  png_set_IHDR(png, info, png_uint_32(width), png_uint_32(height), 8,
               channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  png_write_image(png, rows);
  png_write_end(png, nullptr);
  return true;
}

}  // namespace

ImageHead png_head(std::string_view bytes, const std::string& name) { return Reader(bytes, name).head(); }
Image decode_png(std::string_view bytes, const std::string& name) { return Reader(bytes, name).decode(); }

std::string encode_png(int64_t height, int64_t width, int64_t channels, const std::vector<uint8_t>& pixels) {
  check((channels == 1 || channels == 3) && int64_t(pixels.size()) == height * width * channels, "no such image");
  std::string out;
  std::vector<png_bytep> rows;
  for (int64_t y = 0; y < height; ++y) rows.push_back(const_cast<uint8_t*>(pixels.data()) + y * width * channels);
  Trouble trouble;
  png_structp png =
      png_create_write_struct_2(PNG_LIBPNG_VER_STRING, &trouble, on_error, on_warning, &trouble, allocate, release);
  png_infop info = png ? png_create_info_struct(png) : nullptr;
  const bool written = info && write_rows(png, info, out, rows.data(), height, width, channels);
  png_destroy_write_struct(&png, &info);
  if (!written && trouble.no_memory) throw std::bad_alloc();
  check(written, "libpng cannot write: {}", trouble.message);
  return out;
}

}  // namespace netmend::dataset
