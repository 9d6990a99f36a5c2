// check-quality from names of networks to its tables.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "session/split.h"
#include "studies/check_quality.h"
#include "studies/tables.h"
#include "studies/trained_networks.h"

namespace netmend::studies {
namespace {

using Json = nlohmann::ordered_json;

CheckedModel open_model(const StudyContext& context, const std::string& name) {
  const NetworkFile network = trained_file(context, name);
  session::Session session = open_session(context, network);
  session::Split* train = session.train();
  return {name, network.file, session.graph(), session.test().data, train ? train->data : nullptr};
}

std::vector<std::string> kind_list() {
  std::vector<std::string> kinds;
  for (const PlantedKind& kind : planted_kinds()) kinds.emplace_back(kind.name);
  return kinds;
}

}  // namespace

const std::vector<std::string>& quality_models() {
  static const std::vector<std::string> models = {
      "lenet1@mnist",       "lenet4@mnist",         "lenet5@mnist",         "mlp:784-128-64-10@mnist",
      "lenet5@glyphs",      "lenet1@glyphs",        "lenet4@fashion-mnist", "lenet5@fashion-mnist",
      "dnn1@fashion-mnist", "cifar-convnet@cifar10"};
  return models;
}

std::string quality_kind_names() { return join(kind_list(), ", "); }

Json run_quality_study(const StudyContext& context, const QualityRequest& request) {
  const std::vector<std::string> kinds = kind_list();
  for (const std::string& kind : request.kinds)
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end())
      throw InputError(fmt::format("there is no fault `{}`{}", printable(kind), did_you_mean(kind, kinds)),
                       "Choose from " + join(kinds, ", ") + ".");
  Budget::parse(request.budget);
  auto wanted = [&](const char* part) {
    return request.parts.empty() || std::find(request.parts.begin(), request.parts.end(), part) != request.parts.end();
  };
  std::vector<std::string> faulty = request.faulty, models = request.models;
  if (!wanted("stable") && !wanted("loud"))
    faulty.clear();
  else if (faulty.empty())
    faulty = {"lenet4@mnist", "lenet1@glyphs"};
  for (const std::string& name : faulty)
    if (std::find(models.begin(), models.end(), name) == models.end()) models.push_back(name);
  make_folders(context.folder);
  Store store(context.folder + "/trials.db", "check-quality", kQualityVersion);
  const QualityOptions how{request.budget, context.seed, context.jobs, request.kinds};
  auto progress = [&](const std::string& what) { tell(context, what); };
  for (const std::string& name : models) {
    const CheckedModel model = open_model(context, name);
    if (wanted("quiet")) run_quiet(store, model, how, progress);
    if (std::find(faulty.begin(), faulty.end(), name) == faulty.end()) continue;
    if (wanted("stable")) run_stable(store, model, how, progress);
    if (wanted("loud")) run_loud(store, model, how, progress);
  }
  const std::vector<QualityRow> rows = read_quality(store);
  write_trials(store, context.folder + "/trials.csv");
  const std::string text = quality_text(rows), file = context.folder + "/check-quality.md";
  write_file(file, text);
  Json json = {{"rows", Json::array()}, {"file", file}, {"text", text}};
  for (const QualityRow& row : rows)
    if (row.part != "none")
      json["rows"].push_back({{"part", row.part},
                              {"model", row.model},
                              {"fault", row.fault},
                              {"expected", row.expected},
                              {"top", row.top},
                              {"good", row.good},
                              {"alone", row.alone},
                              {"cost", row.cost},
                              {"accuracy", row.accuracy},
                              {"seconds", row.seconds}});
  return json;
}

}  // namespace netmend::studies
