// injected-bugs: the study of Jia et al. (SANER 2022) on a program of today, their figures beside ours.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/python_package.h"
#include "programs/report.h"
#include "studies/tables.h"
#include "studies/trained_networks.h"

namespace netmend::studies {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr int64_t kPerFile = 100;  ///< the paper takes 30 and 50, of many more files

/// Table IV of the paper.
struct PaperRow {
  const char* name;
  int64_t normal, crash, hang;
};
constexpr PaperRow kTable4[] = {{"Theano", 297, 217, 3}, {"TensorFlow", 266, 195, 0}, {"Keras", 538, 315, 1}};

/// Table V: shares of crashes by operator, in per cent, of the three implementations.
struct PaperOperator {
  const char* name;
  double crash[3];
};
constexpr PaperOperator kTable5[] = {{"ArOR", {66.7, 28.0, 51.9}},  {"ComOR", {63.1, 51.1, 51.0}},
                                     {"LogOR", {53.3, 52.7, 48.8}}, {"AsOR", {0, 20.0, 28.6}},
                                     {"MemOR", {82.1, 83.8, 57.5}}, {"BVR", {13.3, 20.3, 16.2}},
                                     {"NVR", {21.3, 25.3, 18.5}}};

/// Table VI: shares of crashes by phase, in per cent, of the three implementations.
struct PaperPhase {
  const char* name;
  double crash[3];
};
constexpr PaperPhase kTable6[] = {
    {"preprocessing", {44.1, 14.3, 40.7}}, {"construction", {40.9, 44.9, 36.6}}, {"learning", {46.6, 47.0, 40.5}}};

/// What the paper says of its nine findings.
constexpr const char* kPaperFindings[] = {
    "57.45 to 62.99 % normal",
    "50 outliers below, 10 above",
    "7 outliers below, 66 above",
    "differences insignificant, once five impossible accuracies are left out",
    "more than half of the crashes come from if-statements",
    "NVR, LogOR and ComOR lowest in accuracy, ComOR longest in time",
    "48.76 % (Theano), 91.83 % (Keras) and all (TensorFlow) comparisons of operators differ",
    "fewer outliers in preprocessing",
    "shares of crashes 14 to 47 %, largely the same but for one phase of TensorFlow"};

double share_of_crashes(const programs::OutcomeCounts& one) {
  return 100 * double(one.of("crash") + one.of("out-of-memory") + one.of("killed")) /
         double(std::max<int64_t>(1, one.total));
}

std::string beside_paper(const programs::Analysis& analysis) {
  std::string text = "## Beside the paper\n\n| | normal | crash | hang | total |\n|---|---|---|---|---|\n";
  auto row = [&](const std::string& name, double normal, double crash, double hang, double total) {
    text += fmt::format("| {} | {:.1f} % | {:.1f} % | {:.1f} % | {:.0f} |\n", name, 100 * normal / total,
                        100 * crash / total, 100 * hang / total, total);
  };
  for (const PaperRow& one : kTable4)
    row(fmt::format("{} (paper)", one.name), double(one.normal), double(one.crash), double(one.hang),
        double(one.normal + one.crash + one.hang));
  const programs::OutcomeCounts& all = analysis.all;
  row("PyTorch (here)", double(all.of("normal") + all.of("no-metric")),
      double(all.of("crash") + all.of("out-of-memory") + all.of("killed")), double(all.of("hang")), double(all.total));
  text +=
      "\nThe paper has three outcomes; here runs without a metric count as normal, and what ran out of memory or was "
      "killed as a crash.\n\n| operator | crash in the paper: Theano, TensorFlow, Keras | crash here | bugs |\n"
      "|---|---|---|---|\n";
  for (const PaperOperator& one : kTable5)
    for (const programs::OutcomeCounts& own : analysis.operators)
      if (own.name == one.name)
        text += fmt::format("| {} | {:.1f} %, {:.1f} %, {:.1f} % | {:.1f} % | {} |\n", one.name, one.crash[0],
                            one.crash[1], one.crash[2], share_of_crashes(own), own.total);
  text += "\n| phase | crash in the paper: Theano, TensorFlow, Keras | crash here | bugs |\n|---|---|---|---|\n";
  for (const PaperPhase& one : kTable6)
    for (const programs::OutcomeCounts& own : analysis.phases)
      if (own.name == one.name)
        text += fmt::format("| {} | {:.1f} %, {:.1f} %, {:.1f} % | {:.1f} % | {} |\n", one.name, one.crash[0],
                            one.crash[1], one.crash[2], share_of_crashes(own), own.total);
  text += "\n| finding | paper | here | |\n|---|---|---|---|\n";
  for (size_t i = 0; i < analysis.findings.size() && i < std::size(kPaperFindings); ++i)
    text += fmt::format("| {} {} | {} | **{}** | {} |\n", analysis.findings[i].number, analysis.findings[i].claim,
                        kPaperFindings[i], analysis.findings[i].verdict, analysis.findings[i].test);
  return text + "\n";
}

std::string program_of_the_study() {
  const fs::path path = fs::path(python_package_folder()).parent_path() / "examples" / "injected-bugs" / "train.py";
  if (!fs::is_regular_file(path)) fail("the program of the study is not there: {}", path.string());
  return path.string();
}

}  // namespace

Json run_injected_study(const StudyContext& context, const InjectedRequest& request) {
  make_folders(context.folder);
  programs::InjectRequest how;
  how.program = program_of_the_study();
  how.arguments = {fs::absolute(request.data).string(), "{seed}"};
  if (!fs::is_regular_file(how.arguments[0] + "/rt-polarity.pos"))
    throw InputError(fmt::format("{} does not hold rt-polarity.pos", request.data),
                     "--data names the folder of rt-polarity; NETMEND_DATA/rt-polarity is looked at first.");
  how.python = request.python, how.metric = "accuracy ([0-9.]+)";
  how.also = {"torch.nn"}, how.operators = {"ArOR", "BitOR", "ComOR", "LogOR", "AsOR", "MemOR", "BVR", "NVR"};
  if (request.all) how.operators.clear();
  how.per_file = kPerFile, how.sample = how.doctor = request.sample, how.seed = context.seed, how.jobs = context.jobs,
  how.folder = context.folder;
  how.note = context.progress;
  const programs::InjectResult result = programs::inject(how);
  const programs::Analysis analysis = programs::analyse(result);
  Json json = programs::to_json(result, analysis);
  const std::string text = programs::report_text(result, analysis) + beside_paper(analysis);
  write_file(context.folder + "/injected-bugs.md", text);
  write_file(context.folder + "/injected-bugs.json", json_text(json, 2));
  write_numbers("injected-bugs", json, context.folder + "/trials.csv");
  programs::write_bugs(context.folder + "/bugs.csv", result, analysis);
  for (const auto& [name, svg] : programs::figures(result, analysis)) write_file(context.folder + "/" + name, svg);
  json["text"] = text;
  return json;
}

}  // namespace netmend::studies
