#include <ATen/ATen.h>
// jpeglib.h needs FILE.
#include <cstdio>
// clang-format off
#include <jpeglib.h>
// clang-format on

#include <map>

#include "dataset/contact_sheet.h"
#include "dataset/dataset.h"
#include "dataset/image_file.h"
#include "dataset/lettering.h"
#include "dataset/test_files.h"

namespace netmend::dataset {
namespace {

std::string from_hex(const std::string& hex) {
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) out += char(std::stoi(hex.substr(i, 2), nullptr, 16));
  return out;
}

/// A JPEG of one colour, written by the library itself.
std::string jpeg_bytes(int height, int width, int channels, uint8_t value, bool progressive = false) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors;
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* buffer = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &buffer, &size);
  jpeg.image_height = JDIMENSION(height), jpeg.image_width = JDIMENSION(width), jpeg.input_components = channels;
  jpeg.in_color_space = channels == 3 ? JCS_RGB : JCS_GRAYSCALE;
  jpeg_set_defaults(&jpeg);
  if (progressive) jpeg_simple_progression(&jpeg);
  jpeg_start_compress(&jpeg, TRUE);
  std::vector<uint8_t> row(size_t(width * channels), value);
  uint8_t* rows[] = {row.data()};
  while (jpeg.next_scanline < jpeg.image_height) jpeg_write_scanlines(&jpeg, rows, 1);
  jpeg_finish_compress(&jpeg);
  std::string out(reinterpret_cast<char*>(buffer), size);
  jpeg_destroy_compress(&jpeg);
  free(buffer);
  return out;
}

struct PngCase {
  const char *kind, *hex;
  std::vector<uint8_t> color, grey;
};

/// Files written by Pillow 13.0, with what its convert("RGB") and convert("L") give.
const std::vector<PngCase> kPngs = {
    {"colour",
     "89504e470d0a1a0a0000000d4948445200000002000000020802000000fdd49a730000001649444154789c63f8cfc0c0f09f81914b446e5f8"
     "008001a05035ecbf6ec310000000049454e44ae426082",
     {255, 0, 0, 0, 255, 0, 10, 20, 30, 200, 100, 50},
     {76, 150, 18, 124}},
    {"palette",
     "89504e470d0a1a0a0000000d49484452000000020000000202030000000fd8e5b70000000c504c544500ff00c864320a141eff00007d35193"
     "30000000c49444154789c6338c074010003180193cd8e611c0000000049454e44ae426082",
     {255, 0, 0, 0, 255, 0, 10, 20, 30, 200, 100, 50},
     {76, 150, 18, 124}},
    {"transparent",
     "89504e470d0a1a0a0000000d494844520000000200000002080600000072b60d240000001a49444154789c63f8cfc0f09fe13f03030bb7885"
     "ce3895411760033a605085105ae3c0000000049454e44ae426082",
     {255, 0, 0, 0, 255, 0, 10, 20, 30, 200, 100, 50},
     {76, 150, 18, 124}},
    {"grey",
     "89504e470d0a1a0a0000000d494844520000000200000002080000000057dd52f80000000e49444154789c63f8cfc0c075020005dd01d2cf0"
     "137690000000049454e44ae426082",
     {255, 255, 255, 0, 0, 0, 10, 10, 10, 200, 200, 200},
     {255, 0, 10, 200}},
    {"grey and alpha",
     "89504e470d0a1a0a0000000d4948445200000002000000020804000000d8bfc5af0000001249444154789c63f8ff9f818181abe1043b00143"
     "80358fc3606480000000049454e44ae426082",
     {255, 255, 255, 0, 0, 0, 10, 10, 10, 200, 200, 200},
     {255, 0, 10, 200}},
    {"two colours",
     "89504e470d0a1a0a0000000d49484452000000020000000201000000005acd30890000000c49444154789c63686070000001c400c19866351"
     "60000000049454e44ae426082",
     {255, 255, 255, 0, 0, 0, 0, 0, 0, 255, 255, 255},
     {255, 0, 0, 255}},
};

TEST(ImageFile, EveryKindOfPng) {
  for (const PngCase& wanted : kPngs) {
    std::string bytes = from_hex(wanted.hex);
    EXPECT_EQ(decode_image(bytes, 3, "f").pixels, wanted.color) << wanted.kind;
    EXPECT_EQ(decode_image(bytes, 1, "f").pixels, wanted.grey) << wanted.kind;
    EXPECT_EQ(read_image_head(bytes, "f").height, 2);
  }
  std::string deep = from_hex(
      "89504e470d0a1a0a0000000d49484452000000020000000110020000002bd0349e0000001549444154789c631032f9ff9f81a1e17f3d0323"
      "0300"
      "200704447cb0d5720000000049454e44ae426082");
  EXPECT_EQ(decode_image(deep, 3, "f").pixels, (std::vector<uint8_t>{0x12, 0xff, 0, 0x80, 0x7f, 0x01}));
}

TEST(ImageFile, PngThereAndBack) {
  for (int64_t channels : {1, 3}) {
    std::vector<uint8_t> pixels;
    for (int64_t i = 0; i < 5 * 7 * channels; ++i) pixels.push_back(uint8_t(i * 31));
    Image back = decode_image(encode_png(5, 7, channels, pixels), channels, "f");
    EXPECT_EQ(back.pixels, pixels);
    EXPECT_EQ(back.height, 5);
  }
}

TEST(ImageFile, Jpeg) {
  for (bool progressive : {false, true}) {
    Image image = decode_image(jpeg_bytes(9, 13, 3, 100, progressive), 3, "f");
    EXPECT_EQ(image.height, 9);
    EXPECT_EQ(image.width, 13);
    for (uint8_t value : image.pixels) EXPECT_NEAR(value, 100, 1);
    EXPECT_EQ(decode_image(jpeg_bytes(9, 13, 1, 100, progressive), 3, "f").channels, 3);
  }
}

TEST(ImageFile, BrokenFilesAreRefusedByName) {
  const std::string png = from_hex(kPngs[0].hex), jpeg = jpeg_bytes(64, 64, 3, 100);
  auto refused = [&](const std::string& bytes, const std::string& why) {
    std::string error = error_of([&] { decode_image(bytes, 3, "folder/x.png"); });
    EXPECT_TRUE(mentions(error, "folder/x.png"));
    EXPECT_TRUE(mentions(error, why));
  };
  refused("", "neither");
  refused("GIF89a", "neither");
  for (size_t cut = 8; cut < png.size() - 12; cut += 3) refused(png.substr(0, cut), "damaged PNG");
  for (size_t cut = 3; cut < jpeg.size() - 8; cut += 11) refused(jpeg.substr(0, cut), "damaged JPEG");
  std::string wrong_sum = png;
  wrong_sum[45] ^= 1;
  refused(wrong_sum, "damaged PNG");
  for (size_t at = 0; at < jpeg.size(); ++at) {  // any broken byte: refused or read, never a crash
    std::string broken = jpeg;
    broken[at] ^= char(0x5a);
    error_of([&] { decode_image(broken, 3, "f"); });
  }
}

TEST(ImageFile, ClaimedSizesTakeNoMemory) {
  // 60000×60000 pixels in a file of a few bytes.
  std::string head = std::string("\x89PNG\r\n\x1a\n", 8),
              body = "IHDR" + big(60000) + big(60000) + std::string("\x08\x02\0\0\0", 5);
  std::string png = head + big(13) + body +
                    big(uint32_t(crc32(0, reinterpret_cast<const Bytef*>(body.data()), uInt(body.size())))) + big(0) +
                    "IDAT" + big(0x35af061e);
  EXPECT_TRUE(mentions(error_of([&] { decode_image(png, 3, "bomb.png"); }), "more than netmend decodes"));
  std::string jpeg = jpeg_bytes(8, 8, 3, 1);
  size_t frame = jpeg.find("\xff\xc0");
  for (size_t i = 0; i < 4; ++i) jpeg[frame + 5 + i] = char(0xfe);
  EXPECT_TRUE(mentions(error_of([&] { decode_image(jpeg, 3, "bomb.jpg"); }), "more than netmend decodes"));
}

TEST(Images, AFolderAClass) {
  TemporaryFolder folder;
  folder.write("cat/b.png", encode_png(2, 2, 3, std::vector<uint8_t>(12, 10)));
  folder.write("cat/a.JPG", jpeg_bytes(2, 2, 3, 20));
  folder.write("cat/notes.txt", "x");
  folder.write("dog/deep/c.png", encode_png(2, 2, 1, std::vector<uint8_t>(4, 30)));
  folder.write(".hidden/d.png", "x");
  auto data = open("images:" + folder.path());
  EXPECT_EQ(data->size(), 3);
  EXPECT_EQ(data->info().classes, (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(data->info().features[0].shape, (std::vector<int64_t>{3, 2, 2}));
  EXPECT_EQ(data->id(0), "cat/a.JPG");
  EXPECT_EQ(data->id(2), "dog/deep/c.png");
  Batch batch = data->read(std::vector<int64_t>{2, 1});
  EXPECT_EQ(batch.inputs[0][0].max().item<float>(), 30);
  EXPECT_EQ(batch.inputs[0][1].min().item<float>(), 10);
  EXPECT_EQ(batch.labels[0].item<int64_t>(), 1);
  auto turned = open("images:" + folder.path() + ",classes=dog:cow:cat,channels=1,layout=NHWC");
  EXPECT_EQ(turned->read(std::vector<int64_t>{2, 0}).labels[1].item<int64_t>(), 2);
  EXPECT_EQ(turned->info().features[0].shape, (std::vector<int64_t>{2, 2, 1}));
  EXPECT_TRUE(mentions(error_of([&] { open("images:" + folder.path() + ",classes=dog:cats"); }), "did you mean cats?"));
}

TEST(Images, MixedSizesNeedResize) {
  TemporaryFolder folder;
  folder.write("a.png", encode_png(2, 3, 3, std::vector<uint8_t>(18, 10)));
  folder.write("b.png", encode_png(6, 4, 3, std::vector<uint8_t>(72, 20)));
  std::string error = error_of([&] { open("images:" + folder.path()); });
  EXPECT_TRUE(mentions(error, "b.png is 6×4"));
  EXPECT_TRUE(mentions(error, "resize="));
  auto data = open("images:" + folder.path() + ",resize=4,crop=3");
  EXPECT_EQ(data->info().labels, LabelKind::kNone);
  Batch batch = data->read(std::vector<int64_t>{0, 1});
  EXPECT_EQ(batch.inputs[0].sizes(), (at::IntArrayRef{2, 3, 3, 3}));
  EXPECT_FALSE(batch.labels.defined());
  EXPECT_EQ(data->display(1).height, 3);
  folder.write("c.png", "not an image");
  EXPECT_TRUE(mentions(error_of([&] { open("images:" + folder.path() + ",resize=4")->read(std::vector<int64_t>{2}); }),
                       "c.png"));
  TemporaryFolder empty;
  EXPECT_TRUE(mentions(error_of([&] { open("images:" + empty.path()); }), "no PNG or JPEG"));
  EXPECT_TRUE(mentions(error_of([&] { open("images:" + empty.path() + "/none"); }), "cannot read the folder"));
}

TEST(ContactSheet, HasACaptionAndACellASample) {
  TemporaryFolder folder;
  for (const char* name : {"cat/1", "cat/2", "cat/3", "dog/1"})
    folder.write(std::string(name) + ".png", encode_png(64, 64, 3, std::vector<uint8_t>(64 * 64 * 3, 200)));
  auto data = open("images:" + folder.path());
  Image sheet = contact_sheet(*data, sheet_samples(*data, 5), 2);
  EXPECT_EQ(sheet.width, 4 + 2 * 68);
  EXPECT_EQ(sheet.height, 4 + 3 * 68 + 2 * (kLetterHeight + 8));
  write_contact_sheet(*data, sheet_samples(*data, 5), 2, folder.path() + "/sheet.png");
  EXPECT_EQ(read_image(folder.path() + "/sheet.png", 3).pixels, sheet.pixels);
}

TEST(ContactSheet, IsAsWideAsTheLongestNameOfAClass) {
  const std::string name = "Great spotted woodpecker, juvenile";
  TemporaryFolder folder;
  folder.write(name + "/1.png", encode_png(64, 64, 1, std::vector<uint8_t>(64 * 64, 200)));
  auto data = open("images:" + folder.path());
  const Image sheet = contact_sheet(*data, sheet_samples(*data, 1), 2);
  EXPECT_GE(sheet.width, text_width(name) + 8);
  EXPECT_GT(text_width(name), 64) << "or this tests nothing";
}

Image line_of(std::string_view text) {
  Image image{24, text_width(text) + 8, 1, {}};
  image.pixels.assign(size_t(image.height * image.width), 0);
  draw_text(image, 5, 4, text, 255);
  return image;
}

TEST(Lettering, EveryLetterLooksLikeNoOther) {
  std::string all;
  for (char c = '!'; c <= '~'; ++c) all += c;
  std::map<std::vector<uint8_t>, char> seen;
  for (char c : all) {
    auto [hit, fresh] = seen.emplace(line_of(std::string(1, c)).pixels, c);
    EXPECT_TRUE(fresh) << c << " looks like " << hit->second;
    EXPECT_NE(line_of(std::string(1, c)).pixels, line_of("漢").pixels) << c << " is a box";
  }
  EXPECT_NE(line_of("é").pixels, line_of("e").pixels);
  EXPECT_NE(line_of("É").pixels, line_of("漢").pixels);
}

TEST(Lettering, StaysInsideItsWidthAndHasSmoothEdges) {
  for (const char* text : {"automobile", "WAVE & gypsy", "ÄÖÜ Åß", "\xff\xc3", "漢字"}) {
    const Image image = line_of(text);
    int64_t full = 0, between = 0;
    for (int64_t y = 0; y < image.height; ++y)
      for (int64_t x = 0; x < image.width; ++x) {
        const uint8_t value = image.pixels[size_t(y * image.width + x)];
        full += value == 255, between += value > 40 && value < 215;
        if (x < 2 || x >= image.width - 2) {
          EXPECT_EQ(value, 0) << text << " at column " << x;
        }
      }
    EXPECT_GT(full, 10) << text;
    if (std::string_view(text) == "automobile") {
      EXPECT_GT(between, 20) << "curves have grey edges";
    }
  }
  Image small{4, 3, 3, std::vector<uint8_t>(36)};
  draw_text(small, -3, -2, "does not fit, and does no harm", 255);
}

}  // namespace
}  // namespace netmend::dataset
