#include "stream/reference.h"

#include <ATen/ATen.h>

#include <numeric>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "dataset/npz.h"

namespace netmend::stream {
namespace {

using dataset::Array;
using dataset::Element;
using dataset::Npz;

constexpr JsonLimits kLimits{.bytes = 64 << 20, .depth = 16};
constexpr int64_t kMostNames = 100'000;
constexpr const char* kRewrite = "Write it again with save_data.reference; docs/formats.md describes the file.";

[[noreturn]] void bad(const std::string& path, const std::string& what) {
  throw InputError(fmt::format("{} is not a reference netmend can read: {}", path, what), kRewrite);
}

JsonDocument read_meta(const Npz& file, const std::string& path) {
  if (!file.has("meta.bytes")) bad(path, "it has no member meta.bytes");
  Array array = file.read("meta.bytes");
  if (array.type != Element::kU8 || array.shape.size() != 1 || array.count() > kLimits.bytes)
    bad(path, "meta.bytes does not hold bytes");
  std::string text(size_t(array.count()), '\0');
  array.bytes->read(array.offset, array.count(), reinterpret_cast<uint8_t*>(text.data()));
  JsonDocument meta(text, path + ", meta.bytes", kLimits, kRewrite);
  meta.top().at("format").choice({"netmend-reference"});
  meta.top().at("version").whole(1, 1);
  return meta;
}

std::vector<std::string> names(const JsonView& meta, const char* key) {
  if (!meta.has(key)) return {};
  std::vector<std::string> out = meta.at(key).texts(kMostNames);
  std::set<std::string> seen;
  for (const std::string& name : out)
    if (!seen.insert(name).second) meta.at(key).refuse(fmt::format("holds {} twice", printable(name)));
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
  const JsonDocument document = read_meta(file, path);
  const JsonView meta = document.top();
  Reference reference;
  reference.path = path;
  if (meta.has("framework")) reference.framework = meta.at("framework").text();
  if (meta.has("samples")) reference.samples = meta.at("samples").wholes(0);
  reference.inputs = tensors(file, names(meta, "inputs"), "input");
  reference.outputs = tensors(file, names(meta, "outputs"), "output");
  reference.layers = tensors(file, names(meta, "layers"), "layer");
  if (reference.inputs.empty()) bad(path, "it names no inputs");
  if (reference.outputs.empty()) bad(path, "it names no outputs");
  check_counts(reference);
  return reference;
}

}  // namespace netmend::stream
