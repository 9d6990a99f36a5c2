#include "programs/metric.h"

#include <cmath>
#include <regex>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "diagnosis/run.h"

namespace netmend::programs {
namespace {

constexpr size_t kLongestLine = 4096;  ///< std::regex takes stack by the length of what it looks at
constexpr size_t kMostLines = 20000;

std::regex compiled(const std::string& expression) {
  try {
    return std::regex(expression, std::regex::ECMAScript);
  } catch (const std::regex_error& error) {
    throw InputError(fmt::format("--metric {}: not a regular expression: {}", printable(expression), error.what()),
                     "An example: --metric 'accuracy ([0-9.]+)'");
  }
}

std::optional<double> finite(double value) {
  return std::isfinite(value) ? std::optional<double>(value) : std::nullopt;
}

}  // namespace

MetricSource parse_metric(const std::string& text) {
  MetricSource source;
  if (text.starts_with("json:")) {
    source.kind = MetricSource::kJson;
    const size_t at = text.rfind(':');
    source.file = text.substr(5, at > 5 ? at - 5 : 0), source.key = text.substr(at + 1);
    if (at < 6 || source.key.empty())
      throw InputError(fmt::format("--metric {} names no file and key", printable(text)),
                       "An example: --metric json:metrics.json:test.accuracy");
  } else if (text.starts_with("record:")) {
    source.kind = MetricSource::kRecord, source.key = text.substr(7);
    if (source.key.empty())
      throw InputError("--metric record: names no metric", "An example: --metric record:val_accuracy, or record:loss");
  } else {
    source.expression = text;
    compiled(text);
  }
  return source;
}

std::optional<double> find_metric(const std::string& output, const std::string& expression) {
  const std::regex pattern = compiled(expression);
  const std::vector<std::string> lines = split(output, '\n');
  for (size_t i = lines.size(); i-- > 0 && lines.size() - i < kMostLines;) {
    std::smatch hit;
    const std::string line = lines[i].substr(0, kLongestLine);
    if (!std::regex_search(line, hit, pattern)) continue;
    double value = 0;
    const std::string text = hit.size() > 1 ? hit[1].str() : hit[0].str();
    return parse_double(trim(text), value) ? finite(value) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<double> json_metric(const std::string& text, const std::string& key) {
  const nlohmann::json document = json_or_null(text);
  const nlohmann::json* at = &document;
  for (const std::string& part : split(key, '.')) {
    if (!at->is_object() || !at->contains(part)) return std::nullopt;
    at = &(*at)[part];
  }
  return at->is_number() ? finite(at->get<double>()) : std::nullopt;
}

std::optional<double> record_metric(const std::string& file, const std::string& key) {
  try {
    const records::Record record = records::read_record(file);
    for (size_t i = record.epochs.size(); i-- > 0;)
      if (auto hit = record.epochs[i].metrics.find(key); hit != record.epochs[i].metrics.end())
        return finite(hit->second);
    if (key == "loss") return finite(diagnosis::digest(record).last_loss());
  } catch (const InputError&) {  // the program damaged its record
  }
  return std::nullopt;
}

}  // namespace netmend::programs
