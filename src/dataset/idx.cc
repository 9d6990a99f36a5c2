#include "dataset/idx.h"

#include "base/error.h"

namespace netmend::dataset {
namespace {

Element idx_type(const Bytes& bytes, uint8_t code) {
  switch (code) {
    case 0x08:
      return Element::kU8;
    case 0x09:
      return Element::kI8;
    case 0x0b:
      return Element::kI16;
    case 0x0c:
      return Element::kI32;
    case 0x0d:
      return Element::kF32;
    case 0x0e:
      return Element::kF64;
    default:
      fail("{} is not an IDX file: it has values of type 0x{:02x}", bytes.name(), code);
  }
}

}  // namespace

Array read_idx(BytesPtr bytes) {
  uint8_t head[4] = {};
  if (bytes->size() >= 4) bytes->read(0, 4, head);
  if (bytes->size() < 4 || head[0] != 0 || head[1] != 0)
    fail("{} is not an IDX file: it does not begin with two zero bytes", bytes->name());
  Element type = idx_type(*bytes, head[2]);
  const int64_t axes = head[3];
  if (axes < 1 || axes > 8)
    fail("{} is not an IDX file that netmend can read: it has {} axes, expected 1 to 8", bytes->name(), axes);
  if (bytes->size() < 4 + 4 * axes) fail("{} is cut short in its header", bytes->name());
  std::vector<uint8_t> sizes(size_t(4 * axes));
  bytes->read(4, 4 * axes, sizes.data());
  std::vector<int64_t> shape;
  for (int64_t axis = 0; axis < axes; ++axis) {
    const uint8_t* at = &sizes[size_t(4 * axis)];
    shape.push_back(int64_t(at[0]) << 24 | int64_t(at[1]) << 16 | int64_t(at[2]) << 8 | int64_t(at[3]));
  }
  const int64_t size = bytes->size();
  Array array = make_array(std::move(bytes), 4 + 4 * axes, type, true, std::move(shape));
  const int64_t needed = array.offset + array.count() * array.sample_bytes();
  if (needed != size)
    fail("{} does not fit its header: {} need {} bytes, there are {}", array.bytes->name(), shape_text(array.shape),
         needed, size);
  return array;
}

}  // namespace netmend::dataset
