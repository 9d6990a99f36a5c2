#include "stream/reference.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "base/text.h"
#include "dataset/npz.h"

namespace netmend::stream {
namespace {

using Json = nlohmann::json;
using dataset::Array;
using dataset::Element;
using dataset::Npz;

constexpr int64_t kLargestMeta = int64_t(64) << 20;
constexpr const char* kRewrite = "write it again with save_data.reference; docs/formats.md describes the file";

[[noreturn]] void bad(const std::string& path, const std::string& what) {
  throw InputError(fmt::format("{} is not a reference netmend can read: {}", path, what), kRewrite);
}

Json read_meta(const Npz& file, const std::string& path) {
  if (!file.has("meta.bytes")) bad(path, "it has no member meta.bytes");
  Array array = file.read("meta.bytes");
  if (array.type != Element::kU8 || array.shape.size() != 1 || array.count() > kLargestMeta)
    bad(path, "meta.bytes does not hold bytes");
  std::string text(size_t(array.count()), '\0');
  array.bytes->read(array.offset, array.count(), reinterpret_cast<uint8_t*>(text.data()));
  Json meta = Json::parse(text, nullptr, false);
  if (!meta.is_object()) bad(path, "meta.bytes is not a JSON object");
  if (meta.value("format", Json()) != "netmend-reference") bad(path, "its format is not netmend-reference");
  if (meta.value("version", Json()) != 1) bad(path, "its version is not 1");
  return meta;
}

std::vector<std::string> names(const Json& meta, const char* key, const std::string& path) {
  std::vector<std::string> out;
  if (!meta.contains(key)) return out;
  if (!meta[key].is_array()) bad(path, fmt::format("`{}` is not a list of names", key));
  for (const Json& name : meta[key]) {
    if (!name.is_string()) bad(path, fmt::format("`{}` is not a list of names", key));
    out.push_back(name.get<std::string>());
    if (std::count(out.begin(), out.end(), out.back()) > 1) bad(path, fmt::format("`{}` occurs twice", out.back()));
  }
  return out;
}

std::vector<int64_t> positions(const Json& meta, const std::string& path) {
  std::vector<int64_t> out;
  if (!meta.contains("samples")) return out;
  if (!meta["samples"].is_array()) bad(path, "`samples` is not a list of positions");
  for (const Json& position : meta["samples"]) {
    if (!position.is_number_integer() || position.get<int64_t>() < 0) bad(path, "`samples` is not a list of positions");
    out.push_back(position.get<int64_t>());
  }
  return out;
}

std::vector<Recorded> tensors(const Npz& file, const std::vector<std::string>& wanted, const std::string& kind) {
  std::vector<Recorded> out;
  for (const std::string& name : wanted) out.push_back({name, file.read(kind + "." + name)});
  return out;
}

void check_counts(Reference& reference) {
  const int64_t count = reference.count();
  for (const auto* list : {&reference.inputs, &reference.outputs})
    for (const Recorded& one : *list)
      if (one.array.count() != count)
        bad(reference.path, fmt::format("`{}` holds {} inputs, `{}` holds {}", one.name, one.array.count(),
                                        reference.inputs[0].name, count));
  if (!reference.samples.empty() && int64_t(reference.samples.size()) != count)
    bad(reference.path, fmt::format("`samples` has {} positions for {} inputs", reference.samples.size(), count));
  std::erase_if(reference.layers, [&](const Recorded& one) {
    if (one.array.count() == count) return false;
    reference.notes.push_back(fmt::format("layer {} is left out: the first axis of {} does not count {} inputs",
                                          one.name, shape_text(one.array.shape), count));
    return true;
  });
}

at::ScalarType carrier(Element type) {
  if (type == Element::kBool) return at::kBool;
  if (type == Element::kF64) return at::kDouble;
  return type >= Element::kF16 ? at::kFloat : at::kLong;
}

}  // namespace

at::Tensor Recorded::rows(int64_t first, int64_t count) const {
  std::vector<int64_t> shape = array.shape, samples(static_cast<size_t>(count));
  shape[0] = count;
  std::iota(samples.begin(), samples.end(), first);
  const at::ScalarType type = carrier(array.type);
  at::Tensor out = at::empty(shape, type == at::kBool ? at::kLong : type);
  const int64_t step = array.elements();
  dataset::for_runs(array, samples, [&](const uint8_t* raw, int64_t position, int64_t here) {
    const int64_t at = position * step, values = here * step;
    if (type == at::kDouble)
      dataset::to_doubles(raw, array.type, array.swapped, values, out.data_ptr<double>() + at);
    else if (type == at::kFloat)
      dataset::to_floats(raw, array.type, array.swapped, values, out.data_ptr<float>() + at);
    else
      dataset::to_longs(raw, array.type, array.swapped, values, out.data_ptr<int64_t>() + at);
  });
  return type == at::kBool ? out.ne(0) : out;
}

Reference read_reference(const std::string& path) {
  Npz file(dataset::open_bytes(path));
  Json meta = read_meta(file, path);
  Reference reference;
  reference.path = path;
  if (meta.contains("framework") && meta["framework"].is_string()) reference.framework = meta["framework"];
  reference.samples = positions(meta, path);
  reference.inputs = tensors(file, names(meta, "inputs", path), "input");
  reference.outputs = tensors(file, names(meta, "outputs", path), "output");
  reference.layers = tensors(file, names(meta, "layers", path), "layer");
  if (reference.inputs.empty()) bad(path, "it names no inputs");
  if (reference.outputs.empty()) bad(path, "it names no outputs");
  check_counts(reference);
  return reference;
}

}  // namespace netmend::stream
