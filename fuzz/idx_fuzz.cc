// Any bytes as an IDX file: read or refused, nothing else. Stays below the tensor library, whose headers clang does not
// take in C++20.
#include "base/error.h"
#include "dataset/idx.h"
#include "dataset/transform.h"

using namespace netmend;
using namespace netmend::dataset;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    Array array = read_idx(bytes_of("fuzz", {data, data + size}));
    const size_t axes = array.shape.size();
    Form form = axes == 3 ? Form::kRowsColumns : axes == 4 ? Form::kRowsColumnsChannels : Form::kPlain;
    Preprocess preprocess;
    preprocess.scale = 1 / 255.0;
    if (axes == 4) preprocess.layout = "NCHW";
    Transform transform(preprocess, form, array.sample_shape(), "fuzz");
    const int64_t samples[] = {0, array.count() - 1};
    std::vector<float> out(size_t(array.elements() * 2));
    for_runs(array, samples, [&](const uint8_t* raw, int64_t position, int64_t count) {
      transform.apply(raw, array.type, array.swapped, count, array.stride, out.data() + position * array.elements());
      transform.display(raw, array.type, array.swapped);
    });
  } catch (const InputError&) {
  }
  return 0;
}
