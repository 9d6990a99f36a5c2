// The record of a training run, as the Python recorder and netmend's own trainer write it (docs/training.md), or a CSV
// of epochs. It comes from a stranger's program: hostile until parsed, and what is not there is said, not guessed.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace netmend::records {

/// A line of the record that is not a series, a step or an epoch. Asked for by type: what is missing or of another type
/// is the value given as `otherwise`.
class Line {
 public:
  Line() = default;
  explicit Line(nlohmann::json json) : json_(std::move(json)) {}
  bool has(const char* key) const { return json_.is_object() && json_.contains(key) && !json_[key].is_null(); }
  double number(const char* key, double otherwise = NAN) const;
  int64_t whole(const char* key, int64_t otherwise = 0) const;
  bool flag(const char* key, bool otherwise = false) const;
  std::string text(const char* key) const;
  std::vector<std::string> texts(const char* key) const;
  Line part(const char* key) const;  ///< an object inside; an empty line where there is none
  std::vector<Line> list(const char* key) const;
  std::map<std::string, double> numbers(const char* key) const;
  std::vector<int64_t> wholes(const char* key) const;
  bool empty() const { return !json_.is_object() || json_.empty(); }
  const nlohmann::json& json() const { return json_; }

 private:
  nlohmann::json json_;
};

/// A layer or a parameter in one step that was looked at closely. NaN: not recorded.
struct LayerStep {
  double gradient = NAN, gradient_zero = NAN, weight = NAN, update = NAN;
  double activation = NAN, largest = NAN, deviation = NAN, zero = NAN, dead = NAN, saturated = NAN;
  bool frozen = false, unchanged = false, no_gradient = false, same_rows = false;
  double size = 0;
  std::string function;  ///< of an activation: relu, tanh …
};

struct Step {
  int64_t optimizer = 0, step = 0, epoch = -1;
  double loss = NAN, rate = NAN;
  bool probe = false;  ///< taken between epochs with a few rows, not inside a step
  std::vector<std::pair<std::string, LayerStep>> layers;
  Line facts;
};

struct Epoch {
  int64_t epoch = 0, fit = 0, step = 0;
  double seconds = NAN, rate = NAN;
  std::map<std::string, double> metrics;
};

/// Losses of an optimiser by step; `every` steps are one value.
struct LossSeries {
  std::vector<int64_t> steps;  ///< the last step of each value
  std::vector<double> losses;
  double largest = NAN;  ///< of all steps, also inside groups
};

struct Record {
  std::string path;
  Line header;
  std::map<std::string, std::vector<Line>> lines;  ///< by their type, in the order of the file
  std::map<int64_t, LossSeries> series;            ///< by optimiser
  std::vector<Step> steps;
  std::vector<Epoch> epochs;
  std::vector<std::string> troubles;  ///< what could not be read or was not recorded, in sentences
  std::vector<std::string> others;    ///< files of other processes of the same run
  bool cut = false;                   ///< ends in mid-line, or without an end: killed, or still running

  const std::vector<Line>& of(const std::string& type) const;
  Line first(const std::string& type) const;
  Line last(const std::string& type) const;
};

/// `path`: a run folder; of the records in it, each of a process, the one that trained longest, and of equals that of
/// the smallest rank, is read and the others are named. Or a record, a record, a CSV of epochs, an event file of
/// TensorBoard, or a database of trackio. Throws InputError when there is none, when it is no record, or when a newer
/// netmend wrote it.
Record read_record(const std::string& path);

}  // namespace netmend::records
