// Any bytes as a table: read or refused, nothing else. The first byte chooses the format. Stays below the tensor
// library, whose headers clang does not take in C++20.
#include "base/error.h"
#include "dataset/encoder.h"

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
  if (data[0] & 32) format.comment = '|';
  try {
    Table table(bytes_of("fuzz", {data + 1, data + size}), format);
    EncoderOptions options;
    options.columns = table.columns();
    Encoder encoder(table, options);
    std::vector<float> out(static_cast<size_t>(encoder.width()));
    table.for_all([&](int64_t, const Row& row) {
      check(row.size() == table.columns().size(), "a row of another length");
      encoder.encode(row, encoder.positions(table), out.data());
    });
    table.where(table.rows() - 1);
  } catch (const InputError&) {
  }
  return 0;
}
