#include "records/writer.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/error.h"
#include "base/json.h"

namespace netmend::records {
namespace {

constexpr int64_t kLargestRecord = int64_t(90) << 20, kSingleSteps = 8192;
constexpr int64_t kForTheEnd = int64_t(2) << 20;  // of the record, so that a full one ends like any other
constexpr size_t kMostValues = 512, kRing = 64;
constexpr double kFlushSeconds = 2, kLookShare = 0.025, kFreeLooks = 1.0;

bool is_for_the_end(std::string_view type) {
  return type == "end" || type == "failed" || type == "nonfinite" || type == "summary" || type == "ring";
}

/// Of lines that wait those that a full record has room for.
std::string for_the_end(const std::string& lines) {
  std::string kept;
  for (size_t at = 0; at < lines.size();) {
    const size_t end = lines.find('\n', at) + 1;
    const std::string_view line = std::string_view(lines).substr(at, end - at);
    constexpr std::string_view kHead = "{\"e\":\"";
    if (line.starts_with(kHead) &&
        is_for_the_end(line.substr(kHead.size(), line.find('"', kHead.size()) - kHead.size())))
      kept += line;
    at = end;
  }
  return kept;
}

}  // namespace

nlohmann::ordered_json number_word(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Inf" : "-Inf";
  return value == 0 ? 0.0 : std::strtod(fmt::format("{:.7g}", value).c_str(), nullptr);
}

RecordWriter::RecordWriter(const std::string& path, const std::vector<std::string>& program)
    : start_(std::chrono::steady_clock::now()), flushed_(start_) {
  out_.open(path, std::ios::trunc | std::ios::binary);
  if (!out_) fail("{} cannot be written", path);
  const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  pending_ = json_text(Json{{"netmend", "training-record"},
                            {"version", 1},
                            {"time", std::round(now * 1000) / 1000},
                            {"pid", int64_t(getpid())},
                            {"python", ""},
                            {"program", program},
                            {"rank", ""}}) +
             "\n";
  flush();
}

RecordWriter::~RecordWriter() {
  write_series();
  flush();
}

double RecordWriter::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void RecordWriter::say(const std::string& type, const Json& fields) {
  if (full_ && !is_for_the_end(type)) return;
  Json line = {{"e", type}, {"t", number_word(seconds())}};
  line.update(fields);
  pending_ += json_text(line) + "\n";
  const bool final = type == "end" || type == "failed" || type == "nonfinite";
  if (final || std::chrono::duration<double>(std::chrono::steady_clock::now() - flushed_).count() > kFlushSeconds)
    flush();
}

void RecordWriter::add_loss(double loss, double rate) {
  ++steps_;
  ring_.push_back(Json::array({steps_, number_word(loss), number_word(rate)}));
  if (ring_.size() > 2 * kRing) ring_.erase(ring_.begin(), ring_.begin() + kRing);
  sum_ += loss;
  if (count_ == 0 || loss > largest_ || std::isnan(loss)) largest_ = loss;
  if (++count_ < every_) return;
  losses_.push_back(sum_ / double(count_)), maxima_.push_back(largest_);
  sum_ = 0, count_ = 0;
  const bool late = std::chrono::duration<double>(std::chrono::steady_clock::now() - flushed_).count() > kFlushSeconds;
  if (losses_.size() >= kMostValues || late) write_series();
  if (late) flush();
  if (steps_ >= kSingleSteps * every_) write_series(), every_ *= 2;
}

void RecordWriter::write_series() {
  if (losses_.empty()) return;
  Json losses = Json::array(), largest = Json::array();
  for (double loss : losses_) losses.push_back(number_word(loss));
  for (double loss : maxima_) largest.push_back(number_word(loss));
  Json fields = {{"optimizer", 0}, {"from", first_}, {"every", every_}, {"loss", losses}};
  if (every_ > 1) fields["largest"] = largest;
  first_ += int64_t(losses_.size()) * every_;
  losses_.clear(), maxima_.clear();
  say("series", fields);
}

void RecordWriter::say_ring() {
  write_series();
  Json steps = Json::array();
  for (size_t i = ring_.size() - std::min(ring_.size(), kRing); i < ring_.size(); ++i) steps.push_back(ring_[i]);
  say("ring", {{"optimizer", 0}, {"steps", steps}});
}

void RecordWriter::flush() {
  flushed_ = std::chrono::steady_clock::now();
  if (pending_.empty()) return;
  if (bytes_ + int64_t(pending_.size()) > kLargestRecord - kForTheEnd && !full_)
    full_ = true, pending_ = "{\"e\":\"full\"}\n" + for_the_end(pending_);
  if (bytes_ + int64_t(pending_.size()) > kLargestRecord) pending_.clear();
  bytes_ += int64_t(pending_.size());
  out_ << pending_ << std::flush;
  pending_.clear();
}

bool LookBudget::due(int64_t step, double now) const {
  for (int64_t first : {1, 2, 3, 6, 12, 25, 50})
    if (step == first && all_ < kFreeLooks) return true;
  return step > 3 && now - last_ > std::max(cost_ / kLookShare, 0.05);
}

}  // namespace netmend::records
