#include "dataset/saved_part.h"

#include <zlib.h>

#include <numeric>

#include "base/error.h"
#include "base/text.h"

namespace netmend::dataset {
namespace {

constexpr const char* kAgain = "Copy the folder again, or save the data again.";
constexpr int64_t kLongestSample = int64_t(1) << 31;  ///< rows; sums of these cannot overflow in a part

template <typename... Args>
[[noreturn]] void wrong(fmt::format_string<Args...> format, Args&&... args) {
  throw InputError(fmt::format(format, std::forward<Args>(args)...), kAgain);
}

std::vector<int64_t> all_longs(const Array& array) {
  std::vector<int64_t> values(static_cast<size_t>(array.count())), samples(values.size());
  std::iota(samples.begin(), samples.end(), 0);
  for_runs(array, samples, [&](const uint8_t* raw, int64_t position, int64_t count) {
    to_longs(raw, array.type, array.swapped, count, values.data() + position);
  });
  return values;
}

Array member(const Npz& file, const std::string& name, bool may_be_empty = false) {
  try {
    return file.read(name, may_be_empty);
  } catch (const InputError& error) {
    throw InputError(error.what(), error.hint().empty() ? kAgain : error.hint());
  }
}

/// int64 values, one per sample.
std::vector<int64_t> longs_member(const Npz& file, const std::string& name, int64_t count) {
  Array array = member(file, name);
  if (array.type != Element::kI64 || array.shape != std::vector<int64_t>{count})
    wrong("{} holds {} of {}, where {} of int64 were expected", array.bytes->name(), shape_text(array.shape),
          name_of(array.type), count);
  return all_longs(array);
}

}  // namespace

std::vector<int64_t> read_lengths(const Npz& file, const std::string& input, int64_t count) {
  std::vector<int64_t> lengths = longs_member(file, "length." + input, count);
  for (size_t i = 0; i < lengths.size(); ++i)
    if (lengths[i] < 0 || lengths[i] > kLongestSample)
      wrong("{}: input {} of sample {} has the length {}", file.name(), input, i, lengths[i]);
  return lengths;
}

void check_part(const SavedPart& part) {
  BytesPtr bytes = open_bytes(part.path);
  std::vector<uint8_t> scratch;
  uLong sum = crc32(0, nullptr, 0);
  for (int64_t at = 0; at < bytes->size(); at += 1 << 18) {
    const int64_t piece = std::min<int64_t>(1 << 18, bytes->size() - at);
    sum = crc32(sum, bytes->view(at, piece, scratch), uInt(piece));
  }
  if (uint32_t(sum) != part.checksum)
    wrong("{} is damaged: its checksum is {:08x}, data.json says {:08x}", part.path, uint32_t(sum), part.checksum);
}

PackedWords::PackedWords(const Npz& file, const std::string& name, int64_t count)
    : bytes_(member(file, name + ".bytes", true)), ends_(longs_member(file, name + ".ends", count)) {
  if (bytes_.type != Element::kU8 || bytes_.shape.size() != 1)
    wrong("{} holds {} of {}, where bytes were expected", bytes_.bytes->name(), shape_text(bytes_.shape),
          name_of(bytes_.type));
  for (size_t i = 0; i < ends_.size(); ++i)
    if (ends_[i] < (i ? ends_[i - 1] : 0) || ends_[i] > bytes_.count())
      wrong("{}: word {} of {} ends at {}, which is not possible", file.name(), i, name, ends_[i]);
  if (!ends_.empty() && ends_.back() != bytes_.count())
    wrong("{}: the words of {} end at {}, there are {} bytes", file.name(), name, ends_.back(), bytes_.count());
}

std::string PackedWords::word(int64_t number) const {
  const int64_t begin = number ? ends_.at(size_t(number - 1)) : 0, size = ends_.at(size_t(number)) - begin;
  std::string out(static_cast<size_t>(size), '\0');
  if (size) bytes_.bytes->read(bytes_.offset + begin, size, reinterpret_cast<uint8_t*>(out.data()));
  return out;
}

OpenPart::OpenPart(const SavedIndex& index, const SavedPart& part)
    : index_(index), part_(part), file_(open_bytes(part.path)), groups_(index.groups.size()) {
  for (const SavedInput& input : index.inputs) open_input(input);
  if (index.labels != LabelKind::kNone) open_labels();
}

void OpenPart::open_input(const SavedInput& input) {
  Array array = member(file_, "input." + input.name, input.ragged);
  std::vector<int64_t> expected = input.shape, ends;
  if (input.ragged) {
    ends = read_lengths(file_, input.name, part_.samples);
    std::partial_sum(ends.begin(), ends.end(), ends.begin());
    expected[0] = ends.back();
  } else {
    expected.insert(expected.begin(), part_.samples);
  }
  if (array.shape != expected || array.type != input.type)
    wrong("{} holds {} of {}, data.json promises {} of {}", array.bytes->name(), shape_text(array.shape),
          name_of(array.type), shape_text(expected), name_of(input.type));
  inputs_.push_back(std::move(array));
  ends_.push_back(std::move(ends));
}

void OpenPart::open_labels() {
  Array array = member(file_, "label");
  const int64_t width = index_.label_width;
  std::vector<int64_t> row = {part_.samples}, rows = {part_.samples, width};
  Element type = index_.labels == LabelKind::kClass    ? Element::kI64
                 : index_.labels == LabelKind::kNumber ? Element::kF32
                                                       : Element::kU8;
  const bool fits = array.shape == rows || (array.shape == row && width == 1);
  if (!fits || array.type != type)
    wrong("{} holds {} of {}, data.json promises {} of {}", array.bytes->name(), shape_text(array.shape),
          name_of(array.type), shape_text(width == 1 ? row : rows), name_of(type));
  labels_ = std::move(array);
}

const PackedWords& OpenPart::words(std::optional<PackedWords>& place, const std::string& name) const {
  std::lock_guard guard(lock_);
  if (!place) place.emplace(file_, name, part_.samples);
  return *place;
}

std::string OpenPart::id(int64_t sample) const { return has_ids() ? words(ids_, "id").word(sample) : ""; }

std::vector<std::string> OpenPart::groups(int64_t sample) const {
  std::vector<std::string> values;
  for (size_t g = 0; g < groups_.size(); ++g)
    values.push_back(words(groups_[g], "group." + index_.groups[g]).word(sample));
  return values;
}

std::string OpenPart::display(int64_t sample) const { return words(displays_, "display").word(sample); }

}  // namespace netmend::dataset
