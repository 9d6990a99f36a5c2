// Networks that studies work on: named architectures, trained once and kept in the study's folder, or files.
#pragma once

#include <cstdint>
#include <string>

#include "session/session.h"
#include "studies/study_runs.h"
#include "trials/parts.h"

namespace netmend::studies {

struct TrainingPlan {
  uint64_t seed = 42;
  int64_t epochs = 5, limit = 0;  ///< `limit`: only the first inputs; 0 for all
  double rate = 0.002;
  std::string device = "cpu";
};
/// What a network on this data is trained with.
TrainingPlan plan_for(const std::string& data, uint64_t seed, const std::string& device);
/// Trains a named architecture on a built-in data set and writes it to a file. Throws InputError, Interrupted.
void train_named(const std::string& network, const std::string& data, const std::string& file, const TrainingPlan& plan,
                 int jobs);

struct NetworkFile {
  std::string file, data, train = "";  ///< `train`: a spec where the data is no built-in name
};
/// `lenet5@fashion-mnist`, `model.onnx@DATA` or `model.onnx@TEST@TRAIN`: the file, trained first where it is a name,
/// and the data.
NetworkFile trained_file(const StudyContext& context, const std::string& text);

/// A session of the file, quiet, with nothing of netmend.toml that the working directory may hold.
session::Session open_session(const StudyContext& context, const NetworkFile& network, int64_t limit = 0);

void tell(const StudyContext& context, const std::string& line);

/// Makes a file unless it is there; of several processes one makes it, and the others wait.
void make_once(const std::string& file, const std::function<void()>& make);

/// The store of a study: trials.db in its folder, or the database. `settings` is what the list of trials depends on,
/// which all who work on one database have in common.
trials::Store open_store(const StudyContext& context, const std::string& study, const std::string& settings,
                         int version);
/// Throws InputError: a database shares the trials out by itself.
void refuse_slice(const StudyContext& context, const std::string& slice);

}  // namespace netmend::studies
