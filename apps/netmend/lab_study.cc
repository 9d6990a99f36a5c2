// netmend lab study: questions that take many trials, with a store that survives being stopped.
#include "netmend/lab_study.h"

#include <filesystem>
#include <map>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "faults/plant.h"
#include "netmend/show.h"
#include "onnx/reader.h"
#include "onnx/writer.h"
#include "repair/methods.h"
#include "stream/layers.h"
#include "studies/planted.h"
#include "training/trainer.h"
#include "zoo/zoo.h"

namespace netmend::app {

void train_named(const Common& common, const std::string& network, const std::string& data, const std::string& file,
                 const TrainingPlan& plan) {
  dataset::Splits splits = dataset::parse_splits(data);
  model::Graph graph = zoo::make(network, {.seed = plan.seed});
  if (!splits.train)
    throw InputError(fmt::format("{} has no training part", data), "Name a built-in data set, for example mnist.");
  auto train = first_inputs(open_data(common, *splits.train, graph, {}), plan.limit);
  training::Task task{network, graph, graph.outputs[0], train, nullptr, {}};
  task.options.rate = 0.002, task.options.batch = 64, task.options.epochs = plan.epochs;
  task.options.schedule = training::parse_schedule("linear");
  task.options.seed = plan.seed, task.options.jobs = common.jobs;
  training::Trainer trainer(std::move(task));
  while (!trainer.done()) trainer.run_epoch();
  onnx::write_model(trainer.result(), file);
}

std::pair<std::string, std::string> trained_file(const Common& common, const std::string& text,
                                                 const std::string& folder) {
  const size_t at = text.find('@');
  if (at == std::string::npos)
    throw InputError(fmt::format("`{}` is no network with data", text),
                     "Write it as lenet5@mnist or model.onnx@mnist:test.");
  const std::string network = text.substr(0, at), data = text.substr(at + 1);
  std::string file = network;
  if (!network.ends_with(".onnx")) {
    file = folder + "/" + network + "-" + data + ".onnx";
    std::replace(file.begin() + int64_t(folder.size()) + 1, file.end(), ':', '-');
    if (!std::filesystem::exists(file)) {
      say(common, fmt::format("training {} on {}", network, data));
      train_named(common, network, data, file, {common.seed});
    }
  }
  return {file, data};
}

namespace {

using studies::PlantedTrial;
using studies::Sound;

/// A named architecture is trained once and kept in the study's folder.
Sound open_sound(const Common& common, const std::string& text, const std::string& folder) {
  const auto [file, data] = trained_file(common, text, folder);
  CaseOptions options;
  options.model = file, options.data = data;
  Common silent = common;
  silent.quiet = true;
  Case about = open_case(silent, options);
  if (!about.judged.settings.by_class()) fail("{} gives no classes", text);
  Sound sound{text, std::move(about.judged.subject), std::move(about.judged.settings), {}};
  sound.layers = stream::find_layers(sound.subject);
  return sound;
}

struct Share {
  int64_t hits = 0, all = 0;
  void add(bool hit) { hits += hit, ++all; }
  double value() const { return all ? double(hits) / double(all) : 0; }
};

Json summary(const std::vector<PlantedTrial>& trials) {
  std::vector<std::string> measures, methods;
  for (const PlantedTrial& trial : trials) {
    for (const auto& [measure, rank] : trial.ranks)
      if (std::find(measures.begin(), measures.end(), measure) == measures.end()) measures.push_back(measure);
    for (const auto& repair : trial.repairs)
      if (std::find(methods.begin(), methods.end(), repair.method) == methods.end()) methods.push_back(repair.method);
  }
  std::set<std::string> groups = {"all"};
  for (const PlantedTrial& trial : trials) groups.insert({"kind " + trial.kind, "network " + trial.network});
  auto belongs = [](const PlantedTrial& trial, const std::string& group) {
    return group == "all" || group == "kind " + trial.kind || group == "network " + trial.network;
  };
  Json rows = Json::array(), repairs = Json::array();
  for (const std::string& group : groups)
    for (const std::string& measure : measures) {
      Share top[3];
      double by_lot[3] = {0, 0, 0};
      std::vector<int64_t> ranks;
      for (const PlantedTrial& trial : trials) {
        if (!belongs(trial, group)) continue;
        for (const auto& [name, rank] : trial.ranks) {
          if (name != measure) continue;
          ranks.push_back(rank);
          for (int i = 0; i < 3; ++i) {
            const int64_t n = i == 0 ? 1 : i == 1 ? 5 : 10;
            top[i].add(rank <= n), by_lot[i] += double(n) / double(std::max<int64_t>(trial.units, 1));
          }
        }
      }
      if (ranks.empty()) continue;
      std::sort(ranks.begin(), ranks.end());
      const auto count = double(ranks.size());
      rows.push_back({{"group", group},
                      {"measure", measure},
                      {"faults", ranks.size()},
                      {"top1", top[0].value()},
                      {"top5", top[1].value()},
                      {"top10", top[2].value()},
                      {"median_rank", ranks[ranks.size() / 2]},
                      {"top1_by_lot", by_lot[0] / count},
                      {"top5_by_lot", by_lot[1] / count},
                      {"top10_by_lot", by_lot[2] / count}});
    }
  for (const std::string& group : groups)
    for (const std::string& method : methods) {
      double won = 0, lost = 0, seconds = 0;
      int64_t count = 0, fixed = 0, broken = 0, enough = 0, repaired = 0;
      for (const PlantedTrial& trial : trials)
        for (const auto& repair : trial.repairs) {
          if (!belongs(trial, group) || repair.method != method) continue;
          ++count, won += repair.won, lost += repair.lost, seconds += repair.seconds, fixed += repair.fixed,
              broken += repair.broken;
          enough += repair.won >= 0.8 * repair.lost, repaired += repair.verdict == "repaired";
        }
      if (count)
        repairs.push_back({{"group", group},
                           {"method", method},
                           {"faults", count},
                           {"won_back", lost > 0 ? won / lost : 0},
                           {"won_back_80", double(enough) / double(count)},
                           {"repaired", double(repaired) / double(count)},
                           {"fixed", double(fixed) / double(count)},
                           {"broken", double(broken) / double(count)},
                           {"seconds", seconds / double(count)}});
    }
  return {{"faults", trials.size()}, {"measures", rows}, {"repairs", repairs}};
}

void print_summary(const Json& json) {
  fmt::print("{} faults that cost at least two points\n", json["faults"].get<int64_t>());
  std::string last;
  for (const Json& row : json["measures"]) {
    if (row["group"] != last) {
      last = row["group"];
      fmt::print("\n  {:<28} faults  planted unit first   in first 5   in first 10   median rank\n", printable(last));
    }
    fmt::print("    {:<26} {:>6}  {:>12.0f} %       {:>6.0f} %     {:>7.0f} %    {:>8}\n",
               row["measure"].get<std::string>(), row["faults"].get<int64_t>(), 100 * row["top1"].get<double>(),
               100 * row["top5"].get<double>(), 100 * row["top10"].get<double>(), row["median_rank"].get<int64_t>());
  }
  last.clear();
  for (const Json& row : json["repairs"]) {
    if (row["group"] != last) {
      last = row["group"];
      fmt::print("\n  {:<28} faults  lost accuracy won back   fixed  broken   seconds\n", printable(last));
    }
    fmt::print("    {:<26} {:>6}  {:>15.0f} %      {:>8.0f}  {:>6.0f}  {:>8.1f}\n", row["method"].get<std::string>(),
               row["faults"].get<int64_t>(), 100 * row["won_back"].get<double>(), row["fixed"].get<double>(),
               row["broken"].get<double>(), row["seconds"].get<double>());
  }
}

}  // namespace

int study_planted(const Common& common, const StudyOptions& options) {
  const std::string folder = common.out.empty() ? "netmend-study-planted-faults" : common.out;
  std::filesystem::create_directories(folder);
  studies::Store store(folder + "/trials.db", "planted-faults", studies::kPlantedVersion);
  studies::PlantedOptions how;
  how.kinds = options.kinds;
  if (how.kinds.empty())
    for (const faults::Kind& kind : faults::kinds())
      if (kind.of == faults::Kind::kUnit) how.kinds.emplace_back(kind.name);
  how.seeds = options.runs, how.seed = common.seed, how.jobs = common.jobs, how.seconds = options.seconds;
  how.repairs = options.repairs;
  if (how.repairs == std::vector<std::string>{"none"}) how.repairs.clear();
  for (const std::string& method : how.repairs)
    if (method != "auto") repair::find_method(method);
  for (const std::string& network : options.models)
    studies::run_planted(store, open_sound(common, network, folder), how,
                         [&](const std::string& line) { say(common, line); });
  Json json = summary(studies::read_planted(store));
  json["out"] = folder;
  write_file(folder + "/planted-faults.json", json.dump(2) + "\n");
  if (common.json)
    print_json(json);
  else
    print_summary(json),
        fmt::print(
            "\n  trials    {}/trials.db: run again with more --runs or --models and only what is missing is done\n",
            folder);
  return 0;
}

}  // namespace netmend::app
