// Readers of examples. Stays below the tensor library where it can.
#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "dataset/dataset.h"
#include "dataset/encoder.h"
#include "dataset/idx.h"
#include "dataset/image_file.h"
#include "dataset/npy.h"
#include "dataset/npz.h"
#include "dataset/readers.h"
#include "dataset/transform.h"
#include "readers.h"
#include "stream/reference.h"

namespace netmend::fuzz {
namespace {

using namespace netmend::dataset;

BytesPtr bytes(Input input) { return bytes_of("fuzz", {input.begin(), input.end()}); }

void read_idx_file(Input input) {
  const Array array = read_idx(bytes(input));
  const size_t axes = array.shape.size();
  const Form form = axes == 3 ? Form::kRowsColumns : axes == 4 ? Form::kRowsColumnsChannels : Form::kPlain;
  Preprocess preprocess;
  preprocess.scale = 1 / 255.0;
  if (axes == 4) preprocess.layout = "NCHW";
  const Transform transform(preprocess, form, array.sample_shape(), "fuzz");
  const int64_t samples[] = {0, array.count() - 1};
  std::vector<float> out(size_t(array.elements() * 2));
  for_runs(array, samples, [&](const uint8_t* raw, int64_t position, int64_t count) {
    transform.apply(raw, array.type, array.swapped, count, array.stride, out.data() + position * array.elements());
    transform.display(raw, array.type, array.swapped);
  });
}

void use(const Array& array) {
  if (array.count() == 0) return;
  const int64_t samples[] = {array.count() - 1, 0};
  std::vector<double> doubles(static_cast<size_t>(array.elements()));
  std::vector<int64_t> longs(doubles.size());
  for_runs(array, samples, [&](const uint8_t* raw, int64_t, int64_t) {
    to_doubles(raw, array.type, array.swapped, array.elements(), doubles.data());
    to_longs(raw, array.type, array.swapped, array.elements(), longs.data());
  });
}

void read_npy_file(Input input) { use(read_npy(bytes(input))); }

/// Gives every stored member of an archive the checksum of what it holds now: without that a changed member is never
/// read any further.
std::string with_checksums(Input input) {
  std::string out(input);
  auto number = [&](size_t at, size_t size) {
    uint32_t value = 0;
    if (at + size <= out.size()) std::memcpy(&value, out.data() + at, size);
    return size_t(value);
  };
  for (size_t at = out.find("PK\1\2"); at != std::string::npos; at = out.find("PK\1\2", at + 4)) {
    const size_t local = number(at + 42, 4), size = number(at + 20, 4);
    const size_t begin = local + 30 + number(local + 26, 2) + number(local + 28, 2);
    if (number(at + 10, 2) != 0 || at + 46 > out.size() || begin > out.size() || size > out.size() - begin) continue;
    const auto sum = uint32_t(crc32(0, reinterpret_cast<const Bytef*>(out.data()) + begin, uInt(size)));
    for (const size_t place : {at + 16, local + 14})
      if (place + 4 <= out.size()) std::memcpy(out.data() + place, &sum, 4);
  }
  return out;
}

/// The first byte says whether checksums are made right.
std::string archive(Input input) {
  if (input.empty()) return "";
  return input[0] & 1 ? with_checksums(input.substr(1)) : std::string(input.substr(1));
}

void read_npz_file(Input input) {
  const Npz file(bytes(archive(input)));
  for (const std::string& name : file.names()) use(file.read(name, true));
}

/// The first byte chooses the format.
void read_csv_file(Input input) {
  if (input.empty()) return;
  const char separators[] = {',', '\t', ' ', 0};
  TableFormat format;
  format.separator = separators[input[0] & 3];
  format.header = input[0] & 4;
  format.keep_blank = input[0] & 8;
  format.quotes = input[0] & 16;
  if (input[0] & 32) format.comment = '|';
  const Table table(bytes(input.substr(1)), format);
  EncoderOptions options;
  options.columns = table.columns();
  const Encoder encoder(table, options);
  std::vector<float> out(static_cast<size_t>(encoder.width()));
  table.for_all([&](int64_t, const Row& row) {
    check(row.size() == table.columns().size(), "a row of another length");
    encoder.encode(row, encoder.positions(table), out.data());
  });
  table.where(table.rows() - 1);
}

void read_image_file(Input input) {
  const ImageHead head = read_image_head(input, "fuzz");
  if (head.height * head.width > 1 << 16) return;  // decoding it would be slow, not wrong
  for (const int64_t channels : {1, 3}) {
    const Image image = decode_image(input, channels, "fuzz");
    check(int64_t(image.pixels.size()) == image.height * image.width * channels, "an image of another size");
  }
}

/// Opens a data set as commands do and reads some of it.
void open_and_read(const std::string& spec) {
  const auto data = open(spec);
  std::vector<int64_t> samples;
  for (int64_t sample = 0; sample < std::min<int64_t>(data->size(), 4); ++sample) samples.push_back(sample);
  samples.push_back(data->size() - 1);
  data->read(samples);
  for (const int64_t sample : samples) data->id(sample), data->display(sample);
}

/// data.json and a part. Words in data.json stand for what is true of the part: BYTES, CRC32.
void read_saved_folder(Input input) {
  const auto [index, rest] = two_files(input);
  const std::string part = archive(rest);
  std::string text(index);
  auto put = [&](const std::string& word, const std::string& value) {
    if (const size_t at = text.find(word); at != std::string::npos) text.replace(at, word.size(), value);
  };
  put("BYTES", std::to_string(part.size()));
  put("CRC32", fmt::format("{:08x}", crc32(0, reinterpret_cast<const Bytef*>(part.data()), uInt(part.size()))));
  scratch("part-0.npz", part);
  const std::string file = scratch("data.json", text);
  open_and_read("saved:" + file.substr(0, file.rfind('/')));
}

void read_reference_file(Input input) {
  const stream::Reference found = stream::read_reference(scratch("reference.npz", archive(input)));
  for (const auto* list : {&found.inputs, &found.outputs, &found.layers})
    for (const stream::Recorded& one : *list) one.rows(0, std::min<int64_t>(2, found.count()));
}

/// A table of texts and a vocabulary.
void read_texts(Input input) {
  const auto [table, words] = two_files(input);
  const std::string texts = scratch("texts.csv", table), vocabulary = scratch("words.txt", words);
  open_and_read("text:" + texts + ",label=label,vocab=" + vocabulary + ",length=6");
}

constexpr Reader kReaders[] = {{"idx", read_idx_file},       {"npy", read_npy_file},
                               {"npz", read_npz_file},       {"csv", read_csv_file},
                               {"png", read_image_file},     {"jpeg", read_image_file},
                               {"saved", read_saved_folder}, {"reference", read_reference_file},
                               {"text", read_texts}};

}  // namespace

std::span<const Reader> data_readers() { return kReaders; }

}  // namespace netmend::fuzz
