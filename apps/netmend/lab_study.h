// Studies: `netmend lab study NAME`. Options of all of them; each uses what it needs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "netmend/commands.h"

namespace netmend::app {

struct StudyOptions {
  std::vector<std::string> models;  ///< `lenet5@mnist`, `model.onnx@DATA`
  std::vector<std::string> kinds;   ///< of planted faults
  std::vector<std::string> repairs = {"auto"};
  int64_t runs = 3;
  double seconds = 10;
  bool quick = false;  ///< little data, one run
};
struct SbflStudyOptions {
  std::vector<std::string> networks;  ///< empty for all four
  double sample = 1;
  int64_t limit = 0;
  bool as_published = false, trained = false, both = false;
};
int study_sbfl(const Common& common, const SbflStudyOptions& options);

int study_planted(const Common& common, const StudyOptions& options);
int study_deepimportance(const Common& common, const StudyOptions& options);

struct TrainingPlan {
  uint64_t seed = 42;
  int64_t epochs = 5, limit = 0;  ///< `limit`: only the first inputs; 0 for all
};
/// Trains a named architecture on a built-in data set and writes it to a file. Throws InputError, Interrupted.
void train_named(const Common& common, const std::string& network, const std::string& data, const std::string& file,
                 const TrainingPlan& plan);

/// `lenet5@fashion-mnist` or `model.onnx@DATA`: the file, trained first where it is a name, and the data.
std::pair<std::string, std::string> trained_file(const Common& common, const std::string& text,
                                                 const std::string& folder);

struct QualityStudyOptions {
  std::vector<std::string> models;  ///< sound ones, `lenet5@mnist`
  std::vector<std::string> faulty;  ///< of these, those that get faults; empty: the first four
  std::vector<std::string> kinds;   ///< of faults; empty for all
  double seconds = 8;               ///< for each check-up
};
int study_quality(const Common& common, const QualityStudyOptions& options);

}  // namespace netmend::app
