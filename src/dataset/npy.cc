#include "dataset/npy.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/error.h"
#include "base/text.h"

namespace netmend::dataset {
namespace {

struct Header {
  std::string type;
  bool fortran = false;
  std::vector<int64_t> shape;
  int64_t data = 0;  ///< where the values begin
};

/// Reads the Python dictionary {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } and nothing more general.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  Header parse() {
    Header header;
    bool seen[3] = {};
    expect('{');
    while (!accept('}')) {
      std::string key = quoted();
      expect(':');
      if (key == "descr")
        header.type = type(), seen[0] = true;
      else if (key == "fortran_order")
        header.fortran = truth(), seen[1] = true;
      else if (key == "shape")
        header.shape = tuple(), seen[2] = true;
      else
        bad("an unknown entry");
      if (!accept(',') && peek() != '}') bad("an entry that does not end");
    }
    if (!seen[0] || !seen[1] || !seen[2]) bad("an entry missing");
    return header;
  }

 private:
  [[noreturn]] void bad(const char* what) { fail("{} has a header that netmend cannot read: {}", file_, what); }
  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char wanted) {
    if (peek() != wanted || wanted == '\0') return false;
    ++at_;
    return true;
  }
  void expect(char wanted) {
    if (!accept(wanted)) bad("it is not a dictionary of type, order and shape");
  }
  std::string quoted() {
    char quote = peek();
    if (quote != '\'' && quote != '"') bad("a name without quotes");
    size_t end = text_.find(quote, at_ + 1);
    if (end == text_.npos) bad("a quote that does not end");
    std::string word(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return word;
  }
  std::string type() {
    if (peek() == '[') fail("{} holds records of several fields, not numbers", file_);
    return quoted();
  }
  bool truth() {
    peek();
    for (bool value : {true, false}) {
      std::string_view word = value ? "True" : "False";
      if (text_.substr(at_, word.size()) != word) continue;
      at_ += word.size();
      return value;
    }
    bad("an order that is neither True nor False");
  }
  std::vector<int64_t> tuple() {
    std::vector<int64_t> sizes;
    expect('(');
    while (!accept(')')) {
      peek();
      size_t end = at_;
      while (end < text_.size() && (text_[end] == '-' || (text_[end] >= '0' && text_[end] <= '9'))) ++end;
      int64_t size = 0;
      if (!parse_int(text_.substr(at_, end - at_), size)) bad("a size that is not a number");
      at_ = end;
      accept('L');  // written by Python 2
      sizes.push_back(size);
      if (sizes.size() > 32) bad("more than 32 axes");
      if (!accept(',') && peek() != ')') bad("sizes that do not end");
    }
    return sizes;
  }

  std::string_view text_;
  const std::string& file_;
  size_t at_ = 0;
};

Header read_header(const Bytes& bytes) {
  uint8_t head[12] = {};
  bytes.read(0, std::min<int64_t>(12, bytes.size()), head);
  if (std::memcmp(head, "\x93NUMPY", 6) != 0)
    fail("{} is not an NPY file: it does not begin with \\x93NUMPY", bytes.name());
  if (head[6] < 1 || head[6] > 3) fail("{} is of NPY version {}, netmend reads 1, 2 and 3", bytes.name(), head[6]);
  int64_t begin = head[6] == 1 ? 10 : 12;
  int64_t length = head[8] | head[9] << 8;
  if (head[6] > 1) length |= int64_t(head[10]) << 16 | int64_t(head[11]) << 24;
  if (length > 1 << 20 || begin + length > bytes.size()) fail("{} is cut short in its header", bytes.name());
  std::string text(size_t(length), '\0');
  bytes.read(begin, length, reinterpret_cast<uint8_t*>(text.data()));
  Header header = HeaderParser(text, bytes.name()).parse();
  header.data = begin + length;
  return header;
}

Element npy_type(const std::string& file, const std::string& text) {
  static const std::map<std::string, Element> types = {
      {"b1", Element::kBool}, {"u1", Element::kU8},  {"i1", Element::kI8},  {"u2", Element::kU16},
      {"i2", Element::kI16},  {"u4", Element::kU32}, {"i4", Element::kI32}, {"i8", Element::kI64},
      {"f2", Element::kF16},  {"f4", Element::kF32}, {"f8", Element::kF64}};
  auto hit = types.find(text.size() > 1 ? text.substr(1) : "");
  if (hit == types.end() || !std::strchr("<>|=", text[0]))
    throw InputError(fmt::format("{} holds values of type '{}', which netmend does not read", file, text),
                     text == "|O"
                         ? "These are Python objects; save plain numbers, as in numpy.asarray(x, dtype='float32')."
                         : "Save it as float32, uint8 or int64.");
  return hit->second;
}

/// In Fortran order value j of all samples lies together; in C order all values of a sample do. Turned once, in blocks
/// of samples, so that memory stays bounded.
Array in_c_order(const Array& array) {
  const int64_t values = array.elements(), width = size_of(array.type), count = array.count();
  const int64_t block = std::clamp<int64_t>((int64_t(16) << 20) / array.sample_bytes(), 1, count);
  std::vector<int64_t> axes(array.shape.begin() + 1, array.shape.end());
  Spool spool(array.bytes->name());
  std::vector<uint8_t> turned(size_t(block * values * width)), scratch;
  for (int64_t begin = 0; begin < count; begin += block) {
    const int64_t here = std::min(block, count - begin);
    for (int64_t j = 0; j < values; ++j) {
      // Fortran's number of the value whose C number is j: the first axis runs fastest.
      int64_t rest = j, place = 0;
      std::vector<int64_t> index(axes.size());
      for (size_t axis = axes.size(); axis-- > 0;) index[axis] = rest % axes[axis], rest /= axes[axis];
      for (size_t axis = axes.size(); axis-- > 0;) place = place * axes[axis] + index[axis];
      const uint8_t* from = array.bytes->view(array.offset + (place * count + begin) * width, here * width, scratch);
      for (int64_t i = 0; i < here; ++i)
        std::memcpy(&turned[size_t((i * values + j) * width)], from + i * width, size_t(width));
    }
    spool.write(turned.data(), here * values * width);
  }
  return make_array(spool.finish(), 0, array.type, array.swapped, array.shape);
}

}  // namespace

Array read_npy(BytesPtr bytes, bool may_be_empty) {
  Header header = read_header(*bytes);
  Element type = npy_type(bytes->name(), header.type);
  Array array = make_array(std::move(bytes), header.data, type, header.type[0] == '>', header.shape, may_be_empty);
  return header.fortran && array.shape.size() > 1 && array.count() > 0 ? in_c_order(array) : array;
}

namespace {

constexpr int64_t kLongestWord = 4096;  ///< characters; longer ones are texts, not names

void put_utf8(uint32_t code, std::string& out) {
  auto tail = [&](int shift) { out += char(0x80 | (code >> shift & 0x3f)); };
  if (code < 0x80)
    out += char(code);
  else if (code < 0x800)
    out += char(0xc0 | code >> 6), tail(0);
  else if (code < 0x10000)
    out += char(0xe0 | code >> 12), tail(6), tail(0);
  else
    out += char(0xf0 | code >> 18), tail(12), tail(6), tail(0);
}

}  // namespace

std::optional<WordArray> read_npy_words(const BytesPtr& bytes) {
  Header header = read_header(*bytes);
  int64_t characters = 0, total = 0;
  const std::string& type = header.type;
  if (type.size() < 3 || (type[1] != 'U' && type[1] != 'S') || !parse_int(type.substr(2), characters)) return {};
  const std::vector<int64_t>& shape = header.shape;
  if (shape.empty() || shape.size() > 2 || (shape.size() == 2 && shape[1] != 1))
    fail("{} holds words in the shape {}, where one per sample was expected", bytes->name(), shape_text(shape));
  const int64_t unit = type[1] == 'U' ? 4 : 1;
  if (characters < 1 || characters > kLongestWord)
    fail("{} holds words of {} characters, netmend reads names of 1 to {}", bytes->name(), characters, kLongestWord);
  if (shape[0] < 1 || __builtin_mul_overflow(shape[0], characters * unit, &total) ||
      total > bytes->size() - header.data)
    fail("{} is cut short: {} words of {} characters do not fit its {} bytes", bytes->name(), shape[0], characters,
         bytes->size());
  return WordArray{bytes, header.data, shape[0], characters, unit, type[0] == '>'};
}

std::string WordArray::word(int64_t number) const {
  check(number >= 0 && number < count, "word {} of {}", number, count);
  std::vector<uint8_t> scratch;
  const uint8_t* raw = bytes->view(offset + number * characters * unit, characters * unit, scratch);
  std::string out;
  size_t used = 0;  // NumPy ends a word at its last character that is not zero
  for (int64_t i = 0; i < characters; ++i) {
    uint32_t code = raw[i * unit];
    for (int64_t b = 1; b < unit; ++b)
      code = swapped ? code << 8 | raw[i * 4 + b] : code | uint32_t(raw[i * 4 + b]) << 8 * b;
    if (code > 0x10ffff)
      fail("{}: the word of sample {} holds {:#x}, which is not a character", bytes->name(), number, code);
    if (unit == 4)
      put_utf8(code, out);
    else
      out += char(code);  // plain bytes are taken as UTF-8 already
    if (code) used = out.size();
  }
  out.resize(used);
  return out;
}

}  // namespace netmend::dataset
