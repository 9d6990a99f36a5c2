// Where the metric of a program comes from: a line that it prints, a JSON file that it writes, or the record of its
// training.
#pragma once

#include <optional>
#include <string>

namespace netmend::programs {

struct MetricSource {
  enum Kind {
    kLine,   ///< the last printed line that `expression` fits, by its first group or else its whole match
    kJson,   ///< `key` (a.b.c) of the JSON file `file`
    kRecord  ///< `key` of the last epoch of the training's record, or its last loss
  };
  Kind kind = kLine;
  std::string expression, file, key;
};

/// `accuracy ([0-9.]+)`, `json:metrics.json:test.accuracy`, `record:val_accuracy`. Throws InputError.
MetricSource parse_metric(const std::string& text);

/// The last line of the output that the expression fits gives the metric. Nothing where no line fits or what fits is no
/// number.
std::optional<double> find_metric(const std::string& output, const std::string& expression);
/// Of a JSON file's text; nothing where there is no such number.
std::optional<double> json_metric(const std::string& text, const std::string& key);
/// Of a record's file; nothing where no epoch has such a metric.
std::optional<double> record_metric(const std::string& file, const std::string& key);

}  // namespace netmend::programs
