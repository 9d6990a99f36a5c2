// Writes the record of a training run as read_record reads it (docs/training.md): a line per event, on its way to the
// disk within two seconds, never beyond 90 MB.
#pragma once

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace netmend::records {

/// A number as the record has it: NaN and Inf are words.
nlohmann::ordered_json number_word(double value);

class RecordWriter {
 public:
  using Json = nlohmann::ordered_json;

  /// Replaces the file. Throws InputError.
  RecordWriter(const std::string& path, const std::vector<std::string>& program);
  ~RecordWriter();

  /// `fields` is an object; the type of the line and its time are put in front.
  void say(const std::string& type, const Json& fields);
  /// The loss of the next step of the only optimiser. Beyond step 8192 groups of steps are one value, with the largest
  /// of the group beside it.
  void add_loss(double loss, double rate);
  /// Steps before the first one: a training that goes on.
  void begin_after(int64_t steps) { steps_ = steps, first_ = steps + 1; }
  /// The last steps, before something that is worth knowing them.
  void say_ring();
  int64_t steps() const { return steps_; }
  double seconds() const;

 private:
  void write_series();
  void flush();

  std::ofstream out_;
  std::string pending_;
  std::chrono::steady_clock::time_point start_, flushed_;
  int64_t bytes_ = 0, steps_ = 0, first_ = 1, every_ = 1, count_ = 0;
  double sum_ = 0, largest_ = 0;
  bool full_ = false;
  std::vector<double> losses_, maxima_;
  std::vector<Json> ring_;
};

/// When a step is worth a close look: the first ones always, later ones so that looking takes a share of the time.
class LookBudget {
 public:
  bool due(int64_t step, double now) const;
  void spent(double seconds, double now) { cost_ = seconds, last_ = now, all_ += seconds; }

 private:
  double cost_ = 0, last_ = 0, all_ = 0;
};

}  // namespace netmend::records
