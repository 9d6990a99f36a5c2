// label-errors: confident learning on test sets whose suspected labels people have looked at. Northcutt, Athalye,
// Mueller: Pervasive Label Errors in Test Sets Destabilize Machine Learning Benchmarks (NeurIPS 2021), with the
// probabilities and the votes that its authors publish.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "dataset/npy.h"
#include "selection/confident_joint.h"
#include "studies/study_runs.h"
#include "studies/tables.h"
#include "trials/store.h"

namespace netmend::studies {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;

/// A set with the votes on its suspects.
struct Judged {
  std::vector<double> probabilities;
  std::vector<int64_t> labels;
  int64_t classes = 0;
  std::set<int64_t> candidates, errors;  ///< an error: fewer than three of five votes for the given label
};

std::vector<double> numbers_of(const dataset::Array& array) {
  const auto each = size_t(array.elements());
  std::vector<double> numbers(size_t(array.count()) * each);
  std::vector<int64_t> all(size_t(array.count()));
  std::iota(all.begin(), all.end(), 0);
  dataset::for_runs(array, all, [&](const uint8_t* raw, int64_t position, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      dataset::to_doubles(raw + i * array.stride, array.type, array.swapped, int64_t(each),
                          numbers.data() + size_t(position + i) * each);
  });
  return numbers;
}

Judged read(const std::string& folder, const std::string& name) {
  Judged set;
  auto open = [&](const char* what) {
    return dataset::read_npy(dataset::open_bytes(fmt::format("{}/{}_test_set_{}.npy", folder, name, what)));
  };
  const dataset::Array p = open("pyx"), s = open("original_labels");
  if (p.shape.size() != 2 || s.shape.size() != 1 || p.shape[0] != s.shape[0])
    fail("{}: probabilities and labels of {} do not belong together", folder, name);
  set.classes = p.shape[1];
  set.probabilities = numbers_of(p);
  for (double label : numbers_of(s)) set.labels.push_back(int64_t(label));
  const std::string votes = fmt::format("{}/{}_mturk.json", folder, name);
  const JsonDocument document(read_file(votes), votes);
  const JsonView list = document.top();
  for (size_t i = 0; i < list.size(); ++i) {
    const int64_t id = list.at(i).at("id").whole(0, p.shape[0] - 1);
    set.candidates.insert(id);
    if (list.at(i).at("mturk").at("given").number() < 3) set.errors.insert(id);
  }
  return set;
}

Json judge(const Judged& set) {
  const selection::ConfidentJoint joint = selection::confident_joint(set.probabilities, set.labels, set.classes);
  Json json = {{"inputs", set.labels.size()}, {"classes", set.classes},         {"counted", joint.counted},
               {"issues", joint.issues()},    {"estimated", joint.estimated()}, {"candidates", set.candidates.size()},
               {"errors", set.errors.size()}, {"thresholds", joint.thresholds}, {"joint", joint.joint},
               {"noise", joint.noise},        {"prior", joint.prior},           {"filters", Json::object()}};
  for (const std::string& filter : selection::label_filters()) {
    int64_t looked_at = 0, wrong = 0;
    const std::vector<int64_t> found = selection::filtered(filter, joint, set.probabilities, set.labels);
    for (int64_t row : found) looked_at += int64_t(set.candidates.count(row)), wrong += int64_t(set.errors.count(row));
    json["filters"][filter] = {{"taken", found.size()}, {"looked_at", looked_at}, {"confirmed", wrong}};
  }
  return json;
}

std::string text_of(const Json& sets) {
  std::string out =
      "# Label errors that people have looked at\n\nCounted: inputs that are confidently of some class. In doubt: off "
      "the "
      "diagonal of the counts, and after they are scaled to all labels. Of what a filter takes out, how many are among "
      "the published candidates, and how many of these the raters confirm (fewer than three of five votes for the "
      "label).\n\n## Labels in doubt\n\n";
  Table table(
      {"set", "inputs", "counted", "in doubt", "scaled", "filter", "taken out", "among candidates", "confirmed"});
  for (const auto& [name, set] : sets.items())
    for (const auto& [filter, found] : set["filters"].items())
      table.row({name, json_text(set["inputs"]), json_text(set["counted"]), json_text(set["issues"]),
                 json_text(set["estimated"]), filter, json_text(found["taken"]),
                 fmt::format("{} of {}", found["looked_at"].get<int64_t>(), set["candidates"].get<int64_t>()),
                 fmt::format("{} of {}", found["confirmed"].get<int64_t>(), set["errors"].get<int64_t>())});
  return out + table.text();
}

}  // namespace

Json run_label_errors_study(const StudyContext& context, const LabelErrorsRequest& request) {
  if (request.data.empty())
    throw InputError("--data names no folder of label errors",
                     "Name the folder that holds mnist_test_set_pyx.npy, or set NETMEND_DATA.");
  make_folders(context.folder);
  trials::Store store(context.folder + "/trials.db", "label-errors", kVersion);
  Json sets;
  for (const char* name : {"mnist", "20news"})
    if (std::filesystem::exists(fmt::format("{}/{}_test_set_pyx.npy", request.data, name))) {
      sets[name] = judge(read(request.data, name));
      if (!store.find(name)) store.put(name, json_text(sets[name]));
    }
  if (sets.is_null())
    throw InputError(fmt::format("{} holds no probabilities of label errors", printable(request.data)),
                     "It should hold mnist_test_set_pyx.npy or 20news_test_set_pyx.npy.");
  write_trials(store, context.folder + "/trials.csv");
  write_file(context.folder + "/label-errors.json", json_text(sets, 2) + "\n");
  Json json = {{"sets", sets}, {"out", context.folder}};
  json["text"] = text_of(sets);
  return json;
}

}  // namespace netmend::studies
