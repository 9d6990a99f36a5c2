// Any bytes as an IDX file: read or refused, nothing else.
#include <ATen/ATen.h>

#include "base/error.h"
#include "dataset/array_dataset.h"
#include "dataset/idx.h"

using namespace netmend;
using namespace netmend::dataset;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    Array array = read_idx(bytes_of("fuzz", {data, data + size}));
    const size_t axes = array.shape.size();
    Form form = axes == 3 ? Form::kRowsColumns : axes == 4 ? Form::kRowsColumnsChannels : Form::kPlain;
    std::optional<Array> labels;
    if (axes == 1) labels = array;
    ArrayDataset set({{"x", array, form}}, labels, {{"type", "float"}});
    const int64_t samples[] = {0, set.size() - 1};
    set.read(samples);
    set.display(0);
  } catch (const InputError&) {
  }
  return 0;
}
