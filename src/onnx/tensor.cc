// Tensor messages: raw, typed and external data.
#include <ATen/ATen.h>

#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "model/guard.h"
#include "onnx/document.h"
#include "onnx/reader.h"

namespace netmend::onnx {
namespace fs = std::filesystem;
using model::Element;

namespace {

constexpr int kMostAxes = 64;  // LibTorch's own limit on dimensions

/// A path beside the model, with no way out of its folder (dots, absolute paths, links).
std::string beside(const std::string& folder, const std::string& location) {
  fs::path relative(location);
  bool climbs = location.empty() || relative.is_absolute() || location.find('\0') != std::string::npos;
  for (const fs::path& part : relative) climbs = climbs || part == "..";
  std::error_code error;
  fs::path home = fs::weakly_canonical(folder.empty() ? "." : folder, error);
  fs::path full = fs::weakly_canonical(home / relative, error);
  auto [mismatch, ignored] = std::mismatch(home.begin(), home.end(), full.begin(), full.end());
  if (climbs || error || mismatch != home.end())
    fail("external data '{}' is not in the model's folder", printable(location.substr(0, 200)));
  return full.string();
}

at::Tensor external_bytes(const onnx_file::Tensor& tensor, const std::string& folder, int64_t expected) {
  std::string location;
  int64_t offset = 0, length = -1;
  for (const auto& entry : tensor.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset" && (!parse_int(entry.value(), offset) || offset < 0))
      fail("external data has a bad offset");
    if (entry.key() == "length" && (!parse_int(entry.value(), length) || length < 0))
      fail("external data has a bad length");
  }
  std::string path = beside(folder, location);
  const InputFile file(path);
  const int64_t size = file.size();
  if (length < 0) length = expected;
  if (length != expected) fail("external data {} gives {} bytes, {} are needed", location, length, expected);
  if (offset > size || length > size - offset)
    fail("external data {} ends at byte {}, bytes {} to {} are needed", location, size, offset, offset + length);
  // The memory of tensors has a budget: a file of holes may claim any size.
  at::Tensor bytes = at::empty({length}, at::kByte);
  if (file.read(offset, length, static_cast<char*>(bytes.data_ptr())) != length)
    fail("external data {} cannot be read", location);
  return bytes;
}

template <typename Stored, typename Field>
std::string pack(const Field& field) {
  std::string bytes(size_t(field.size()) * sizeof(Stored), '\0');
  for (int i = 0; i < field.size(); ++i) {
    Stored value = Stored(field.Get(i));
    std::memcpy(bytes.data() + size_t(i) * sizeof(Stored), &value, sizeof(Stored));
  }
  return bytes;
}

/// Typed data as the bytes raw_data would hold; the format puts small integers and half precision into int32_data.
std::string typed_bytes(const onnx_file::Tensor& tensor, Element type) {
  switch (type) {
    case Element::kFloat:
      return pack<float>(tensor.float_data());
    case Element::kDouble:
      return pack<double>(tensor.double_data());
    case Element::kInt64:
      return pack<int64_t>(tensor.int64_data());
    case Element::kUint64:
      return pack<uint64_t>(tensor.uint64_data());
    case Element::kUint32:
      return pack<uint32_t>(tensor.uint64_data());
    case Element::kInt32:
      return pack<int32_t>(tensor.int32_data());
    case Element::kInt16:
    case Element::kUint16:
    case Element::kFloat16:
    case Element::kBFloat16:
      return pack<uint16_t>(tensor.int32_data());
    default:
      return pack<uint8_t>(tensor.int32_data());
  }
}

}  // namespace

std::vector<int64_t> sizes_of(const onnx_file::Tensor& tensor) {
  std::vector<int64_t> sizes(tensor.dims().begin(), tensor.dims().end());
  if (sizes.size() > kMostAxes) fail("a tensor has {} axes, at most {} are supported", sizes.size(), kMostAxes);
  if (model::checked_count(sizes) < 0) fail("impossible sizes {}", shape_text(sizes));
  return sizes;
}

at::Tensor decode_tensor(const onnx_file::Tensor& tensor, const std::string& folder) {
  auto type = Element(tensor.data_type());
  if (!model::supported(type))
    throw Unsupported(fmt::format("tensors of {} are not supported", model::element_name(type)));
  if (tensor.has_segment()) fail("tensors in segments are not supported");
  std::vector<int64_t> sizes = sizes_of(tensor);
  const int64_t expected = model::stored_bytes(type, model::checked_count(sizes));
  if (expected < 0) fail("impossible sizes {}", shape_text(sizes));
  if (tensor.data_location() == 1) {
    const at::Tensor bytes = external_bytes(tensor, folder, expected);
    return model::decode(type, sizes, {static_cast<const char*>(bytes.data_ptr()), size_t(expected)});
  }
  if (tensor.has_raw_data() && (tensor.float_data_size() || tensor.int32_data_size() || tensor.int64_data_size() ||
                                tensor.double_data_size() || tensor.uint64_data_size() || tensor.string_data_size()))
    fail("the tensor holds its values twice, as raw bytes and as numbers");
  if (tensor.has_raw_data()) return model::decode(type, sizes, tensor.raw_data());
  return model::decode(type, sizes, typed_bytes(tensor, type));
}

NamedTensor read_tensor(const std::string& path) {
  return model::guarded([&] { return path; },
                        [&] {
                          onnx_file::Tensor message;
                          if (!message.ParseFromString(read_file(path))) fail("not a tensor file");
                          NamedTensor out{message.name(), Element(message.data_type()), {}};
                          out.value = decode_tensor(message, fs::path(path).parent_path().string());
                          return out;
                        });
}

}  // namespace netmend::onnx
