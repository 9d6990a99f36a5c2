// The studies from the names of networks to their reports. Each keeps its trials in its folder and runs what is
// missing. No tensors: commands call them.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "studies/protocol.h"

namespace netmend::studies {

struct StudyContext {
  std::string folder;  ///< made when it is not there
  uint64_t seed = 42;
  int jobs = 0;
  std::string device = "cpu";
  std::function<void(const std::string&)> progress;  ///< told what is being done; may be empty
  std::string store = "";  ///< postgresql://… where the trials are kept instead of in the folder
  double lease = 60;       ///< seconds after which a silent worker's trials are given to others
};

/// Networks are `lenet5@mnist`, which is trained first, or `model.onnx@mnist:test`.
struct PlantedRequest {
  std::vector<std::string> models = {"lenet5@glyphs"};
  std::vector<std::string> kinds;               ///< of faults; empty for all
  std::vector<std::string> repairs = {"auto"};  ///< methods after all failures, or none
  std::vector<std::string> targeted;            ///< methods after the largest confusion alone
  int64_t runs = 3;                             ///< faults per kind and network
  std::string budget = "quick";                 ///< of each repair
  int64_t limit = 0;                            ///< of the tests; 0 for all
  std::string slice;                            ///< "" or a part of the faults, as in 2/5
  std::vector<std::string> add;                 ///< folders of the same study whose trials are taken over
};
/// Which measure ranks planted faults first, which repair wins accuracy back. Throws InputError, Interrupted.
nlohmann::ordered_json run_planted_study(const StudyContext& context, const PlantedRequest& request);

struct QualityRequest {
  std::vector<std::string> models;  ///< sound ones
  std::vector<std::string> faulty;  ///< those that get faults; empty: two of the usual ones
  std::vector<std::string> kinds;   ///< of faults; empty for all
  std::vector<std::string> parts;   ///< quiet, stable, loud; empty for all
  std::string budget = "quick";     ///< of each check-up
};
/// The networks that are checked where none are named.
const std::vector<std::string>& quality_models();
/// The faults that are planted, with commas.
std::string quality_kind_names();
/// The rows, with the tables as Markdown in `text`.
nlohmann::ordered_json run_quality_study(const StudyContext& context, const QualityRequest& request);

struct InjectedRequest {
  std::string data;                ///< the folder of rt-polarity
  std::string python = "python3";  ///< with PyTorch
  int64_t sample = 300;            ///< bugs
  bool all = false;                ///< operators for deep learning too, not only the paper's eight
};
/// Bugs in a program of its own and in torch.nn, beside the paper's figures. The report as Markdown in `text`.
nlohmann::ordered_json run_injected_study(const StudyContext& context, const InjectedRequest& request);

struct ScoresRequest {
  std::vector<std::string> models = {"lenet1@mnist", "lenet5@mnist", "dnn1@fashion-mnist"};
  int64_t mutants = 300, faults = 60, tests = 2000;
};
/// Scores of test sets of different quality, against coverage and planted faults that they find. Tables in `text`.
nlohmann::ordered_json run_scores_study(const StudyContext& context, const ScoresRequest& request);

struct TrainingMutantsRequest {
  std::string model = "lenet5@mnist";
  std::string data;                    ///< the tests that are judged, as a spec; "" for the test split
  std::vector<std::string> operators;  ///< DeepCrime's names; empty for all
  int64_t runs = 5;                    ///< trainings per configuration, with paired seeds
  int64_t epochs = 2, limit = 10000, tests = 2000;
};
/// DeepCrime's operators on the trainer: which are killed by the tests and by training data. Tables in `text`.
nlohmann::ordered_json run_training_mutants_study(const StudyContext& context, const TrainingMutantsRequest& request);

struct BrokenTrainingsRequest {
  std::string part = "planted";  ///< planted, heal, real
  std::string python = "python3", keras_python;
  std::vector<std::string> more;  ///< words for python/netmend/study.py: --networks mlp …
};
/// How often the doctor is right about trainings with a known fault, and whether heal puts them right. The trainings
/// run in Python (python/netmend/study.py). Tables in `text`.
nlohmann::ordered_json run_broken_trainings_study(const StudyContext& context, const BrokenTrainingsRequest& request);

struct SbflRequest {
  std::vector<std::string> networks;  ///< empty for all four
  double sample = 1;                  ///< share of the trajectories
  int64_t limit = 0;                  ///< of training inputs; 0 for all
  bool as_published = false, trained = false, both = false;
  bool bases_only = false;       ///< only train the networks and their benchmarks
  bool report_only = false;      ///< run nothing
  bool one_by_one = false;       ///< each network trained and judged by itself
  std::string bases;             ///< folder of networks that are trained already
  std::string slice;             ///< only a part of the trajectories, as in 2/5
  std::vector<std::string> add;  ///< folders of the same study whose trials are taken over
};
nlohmann::ordered_json run_sbfl_study(const StudyContext& context, const SbflRequest& request);

struct LabelErrorsRequest {
  std::string data;  ///< the folder of label errors
};
/// Confident learning against the votes of raters. Tables in `text`.
nlohmann::ordered_json run_label_errors_study(const StudyContext& context, const LabelErrorsRequest& request);

struct DeepFaultRequest {
  std::vector<std::string> models = {"lenet1@mnist", "lenet5@fashion-mnist"};
  int64_t inputs = 100;  ///< of each class that are driven
};
/// DeepFault's experiment: units that spectra suspect against units drawn at random. Tables in `text`.
nlohmann::ordered_json run_deepfault_study(const StudyContext& context, const DeepFaultRequest& request);

struct DeepImportanceRequest {
  std::vector<std::string> models;  ///< of deepimportance_models(); empty for all, or the first where it is quick
  int64_t runs = 0;                 ///< 0: the usual number
  bool quick = false;               ///< little data, one run
  std::string networks;             ///< folder with NAME.onnx of each model, trained by someone else; "" to train them
  std::string as_published;         ///< a protocol's name; "" for the corrected one
  ProtocolChanges changes;
  int64_t attacked = -1;         ///< tests of each class for costly attacks; 0 for all; below 0: the usual number
  std::string slice;             ///< only a part of networks and runs, as in 2/5
  std::vector<std::string> add;  ///< folders of the same study whose trials are taken over
};
/// Their names, with commas.
std::string deepimportance_models();
/// The tables, with them as Markdown in `text`.
nlohmann::ordered_json run_deepimportance_study(const StudyContext& context, const DeepImportanceRequest& request);

}  // namespace netmend::studies
