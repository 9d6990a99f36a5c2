#include "session/fingerprint.h"

#include <bit>
#include <cmath>

#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "stream/pass.h"

namespace netmend::session {

void Fingerprint::add(const std::vector<observers::SampleRow>& rows) {
  // One label after the other, so that it does not matter how many come at once.
  for (const observers::SampleRow& row : rows)
    labels_ = Random::hash(labels_ ^ std::bit_cast<uint64_t>(std::isnan(row.label) ? -1.0 : row.label));
}

std::string Fingerprint::finish(const dataset::Dataset& data) const {
  std::string bytes = fmt::format("{}|{}|", data.size(), labels_);
  for (int64_t sample : stream::spread(data.size(), 256)) bytes += data.id(sample) + "|";
  for (int64_t sample : stream::spread(data.size(), 16)) {
    dataset::Display shown = data.display(sample);
    bytes += shown.text + "|";
    bytes.append(reinterpret_cast<const char*>(shown.pixels.data()), shown.pixels.size());
  }
  return checksum(bytes);
}

}  // namespace netmend::session
