// Any bytes as an NPY and as an NPZ file: read or refused, nothing else. Stays below the tensor library, whose headers
// clang does not take in C++20.
#include "base/error.h"
#include "dataset/npy.h"
#include "dataset/npz.h"

using namespace netmend;
using namespace netmend::dataset;

namespace {

void use(const Array& array) {
  const int64_t samples[] = {array.count() - 1, 0};
  std::vector<double> doubles(static_cast<size_t>(array.elements()));
  std::vector<int64_t> longs(doubles.size());
  for_runs(array, samples, [&](const uint8_t* raw, int64_t, int64_t) {
    to_doubles(raw, array.type, array.swapped, array.elements(), doubles.data());
    to_longs(raw, array.type, array.swapped, array.elements(), longs.data());
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  BytesPtr bytes = bytes_of("fuzz", {data, data + size});
  try {
    use(read_npy(bytes));
  } catch (const InputError&) {
  }
  try {
    Npz archive(bytes);
    for (const std::string& name : archive.names()) use(archive.read(name));
  } catch (const InputError&) {
  }
  return 0;
}
