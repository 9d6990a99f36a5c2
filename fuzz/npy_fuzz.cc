// Any bytes as an NPY and as an NPZ file: read or refused, nothing else.
#include <ATen/ATen.h>

#include "base/error.h"
#include "dataset/array_dataset.h"
#include "dataset/npy.h"
#include "dataset/npz.h"

using namespace netmend;
using namespace netmend::dataset;

namespace {

void use(const Array& array) {
  std::optional<Array> labels;
  if (array.shape.size() <= 2) labels = array;
  ArrayDataset set({{"x", array, guess_form(array)}}, labels, {});
  const int64_t samples[] = {set.size() - 1, 0};
  set.read(samples);
  set.display(0);
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
