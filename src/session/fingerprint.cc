#include "session/fingerprint.h"

#include "base/error.h"
#include "base/file.h"
#include "stream/pass.h"

namespace netmend::session {

void Fingerprint::add(const std::vector<observers::SampleRow>& rows) {
  for (const observers::SampleRow& row : rows) labels_.add(fmt::format("{:.9g},", row.label));
}

std::string Fingerprint::finish(const dataset::Dataset& data) const {
  std::string bytes = fmt::format("{}|{:016x}|", data.size(), labels_.finish());
  for (int64_t sample : stream::spread(data.size(), 256)) bytes += data.id(sample) + "|";
  for (int64_t sample : stream::spread(data.size(), 16)) {
    dataset::Display shown = data.display(sample);
    bytes += shown.text + "|";
    bytes.append(reinterpret_cast<const char*>(shown.pixels.data()), shown.pixels.size());
  }
  return checksum(bytes);
}

}  // namespace netmend::session
