// netmend lab study check-quality.
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "netmend/lab_study.h"
#include "netmend/shared.h"
#include "onnx/reader.h"
#include "studies/check_quality.h"

namespace netmend::app {
namespace {

studies::Patient open_patient(const Common& common, const std::string& name, const std::string& folder) {
  const auto [file, data] = trained_file(common, name, folder);
  Common silent = common;
  silent.quiet = true;
  studies::Patient patient{name, file, onnx::read_model(file), nullptr, nullptr};
  dataset::Splits splits = dataset::parse_splits(data);
  patient.test = open_data(silent, *splits.test, patient.graph, {});
  if (splits.train) patient.train = open_data(silent, *splits.train, patient.graph, {});
  return patient;
}

}  // namespace

int study_quality(const Common& common, const QualityStudyOptions& options) {
  const std::string folder = common.out.empty() ? "netmend-study-check-quality" : common.out;
  std::vector<std::string> kinds;
  for (const studies::PlantedKind& kind : studies::planted_kinds()) kinds.emplace_back(kind.name);
  for (const std::string& kind : options.kinds)
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end())
      throw InputError(fmt::format("there is no fault {}{}", kind, did_you_mean(kind, kinds)),
                       "faults: " + join(kinds, ", "));
  std::vector<std::string> faulty = options.faulty;
  if (faulty.empty()) faulty = {"lenet4@mnist", "lenet1@glyphs"};
  std::filesystem::create_directories(folder);
  studies::Store store(folder + "/trials.db", "check-quality", studies::kQualityVersion);
  studies::QualityOptions how{options.seconds, common.seed, common.jobs, options.kinds};
  auto progress = [&](const std::string& what) { say(common, what); };
  std::vector<std::string> models = options.models;
  for (const std::string& name : faulty)
    if (std::find(models.begin(), models.end(), name) == models.end()) models.push_back(name);
  for (const std::string& name : models) {
    studies::Patient patient = open_patient(common, name, folder);
    studies::run_quiet(store, patient, how, progress);
    if (std::find(faulty.begin(), faulty.end(), name) == faulty.end()) continue;
    studies::run_stable(store, patient, how, progress);
    studies::run_loud(store, patient, how, progress);
  }
  const std::vector<studies::QualityRow> rows = studies::read_quality(store);
  const std::string text = studies::quality_text(rows);
  write_file(folder + "/check-quality.md", text);
  if (!common.json) {
    fmt::print("{}", text);
    return 0;
  }
  Json json = {{"rows", Json::array()}, {"text", folder + "/check-quality.md"}};
  for (const studies::QualityRow& row : rows)
    if (row.part != "none")
      json["rows"].push_back({{"part", row.part},
                              {"model", row.patient},
                              {"fault", row.fault},
                              {"expected", row.expected},
                              {"top", row.top},
                              {"good", row.good},
                              {"accuracy", row.accuracy},
                              {"seconds", row.seconds}});
  print_json(json);
  return 0;
}

}  // namespace netmend::app
