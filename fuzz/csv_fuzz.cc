// Any bytes as a table: read or refused, nothing else. The first byte chooses the format.
#include <ATen/ATen.h>

#include "base/error.h"
#include "dataset/csv_dataset.h"

using namespace netmend;
using namespace netmend::dataset;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const char separators[] = {',', '\t', ' ', 0};
  TableFormat format;
  format.separator = separators[data[0] & 3];
  format.header = data[0] & 4;
  format.keep_blank = data[0] & 8;
  format.quotes = data[0] & 16;
  try {
    CsvDataset::Setup setup{Table(bytes_of("fuzz", {data + 1, data + size}), format)};
    if (data[0] & 32) setup.label = setup.table.columns().back();
    if (data[0] & 64) setup.options["kind"] = "number";
    CsvDataset set(std::move(setup));
    const int64_t samples[] = {0, set.size() - 1};
    set.read(samples);
    set.display(0);
  } catch (const InputError&) {
  }
  return 0;
}
