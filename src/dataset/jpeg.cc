// libjpeg jumps out of itself on errors, over C++ frames. So everything between setjmp and the jump is plain data owned
// by objects that outlive it.
#include <csetjmp>
#include <cstdio>
#include <new>
// jpeglib.h needs FILE from <cstdio>.
#include <jerror.h>
#include <jpeglib.h>

#include "base/error.h"
#include "dataset/image_codecs.h"

namespace netmend::dataset {
namespace {

struct Trouble {
  jpeg_error_mgr manager;
  jmp_buf jump;
  char message[JMSG_LENGTH_MAX] = "";
};

void on_error(j_common_ptr jpeg) {
  auto* trouble = reinterpret_cast<Trouble*>(jpeg->err);
  jpeg->err->format_message(jpeg, trouble->message);
  std::longjmp(trouble->jump, 1);
}

/// Warnings that mean lost pixels are errors here; libjpeg would fill them with grey.
void on_message(j_common_ptr jpeg, int level) {
  if (level >= 0) return;
  int code = jpeg->err->msg_code;
  if (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE || code == JWRN_MUST_RESYNC)
    on_error(jpeg);
}

/// A progressive file may hold any number of scans over the whole picture.
void on_progress(j_common_ptr jpeg) {
  if (reinterpret_cast<j_decompress_ptr>(jpeg)->input_scan_number > 200) ERREXIT(jpeg, JERR_BAD_PROGRESSION);
}

class Reader {
 public:
  Reader(std::string_view bytes, const std::string& name) : name_(name), bytes_(bytes) {
    jpeg_.err = jpeg_std_error(&trouble_.manager);
    trouble_.manager.error_exit = on_error;
    trouble_.manager.emit_message = on_message;
    if (!create()) throw std::bad_alloc();
    progress_.progress_monitor = on_progress;
    jpeg_.progress = &progress_;
  }
  ~Reader() { jpeg_destroy_decompress(&jpeg_); }

  ImageHead head() {
    if (setjmp(trouble_.jump)) damaged();
    jpeg_mem_src(&jpeg_, reinterpret_cast<const unsigned char*>(bytes_.data()), bytes_.size());
    jpeg_read_header(&jpeg_, TRUE);
    return {int64_t(jpeg_.image_height), int64_t(jpeg_.image_width), jpeg_.num_components > 1};
  }

  Image decode() {
    ImageHead head = this->head();
    check_image_size(head.height, head.width, name_);
    Image image{head.height, head.width, head.color ? 3 : 1, {}};
    image.pixels.resize(size_t(image.height * image.width * image.channels));
    const bool inks = jpeg_.num_components == 4;
    std::vector<uint8_t> four(inks ? size_t(image.width * 4) : 0);
    read_rows(image, inks ? four.data() : nullptr);
    return image;
  }

 private:
  bool create() {
    if (setjmp(trouble_.jump)) return false;
    jpeg_create_decompress(&jpeg_);
    return true;
  }

  [[noreturn]] void damaged() {
    if (trouble_.manager.msg_code == JERR_OUT_OF_MEMORY) throw std::bad_alloc();
    fail("{} is a damaged JPEG image: {}", name_, trouble_.message);
  }

  void read_rows(Image& image, uint8_t* four) {
    if (setjmp(trouble_.jump)) damaged();
    jpeg_.out_color_space = four ? JCS_CMYK : image.channels == 3 ? JCS_RGB : JCS_GRAYSCALE;
    jpeg_start_decompress(&jpeg_);
    while (jpeg_.output_scanline < jpeg_.output_height) {
      uint8_t* row = image.pixels.data() + int64_t(jpeg_.output_scanline) * image.width * image.channels;
      uint8_t* target = four ? four : row;
      jpeg_read_scanlines(&jpeg_, &target, 1);
      // Adobe writes inks inverted: 255 is none.
      for (int64_t x = 0; four && x < image.width; ++x)
        for (int c = 0; c < 3; ++c) row[x * 3 + c] = uint8_t(four[x * 4 + c] * four[x * 4 + 3] / 255);
    }
    jpeg_finish_decompress(&jpeg_);
  }

  const std::string& name_;
  std::string_view bytes_;
  Trouble trouble_;
  jpeg_decompress_struct jpeg_{};
  jpeg_progress_mgr progress_{};
};

}  // namespace

ImageHead jpeg_head(std::string_view bytes, const std::string& name) { return Reader(bytes, name).head(); }
Image decode_jpeg(std::string_view bytes, const std::string& name) { return Reader(bytes, name).decode(); }

}  // namespace netmend::dataset
