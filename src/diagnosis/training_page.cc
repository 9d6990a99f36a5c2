#include "diagnosis/training_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>

#include "base/sparkline.h"
#include "base/text.h"
#include "base/version.h"
#include "findings/phrases.h"

namespace netmend::diagnosis {
namespace {

using findings::Finding;
using findings::Json;
using findings::Level;
using findings::plain;
using records::LayerStep;
using records::Line;

constexpr size_t kMostPoints = 400, kMostLooks = 60, kMostLayers = 200, kMostEvents = 40;

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

/// At most so many of `count`, evenly, the last among them.
std::vector<size_t> some_of(size_t count, size_t most) {
  std::vector<size_t> kept;
  const size_t n = std::min(count, most);
  for (size_t i = 0; i < n; ++i) kept.push_back(n == count ? i : (i + 1) * count / n - 1);
  return kept;
}

Json curve(const char* name, const char* plot, const std::vector<double>& steps, const std::vector<double>& values) {
  Json at = Json::array(), of = Json::array();
  for (size_t i : some_of(std::min(steps.size(), values.size()), kMostPoints))
    at.push_back(number(steps[i])), of.push_back(number(values[i]));
  return {{"name", name}, {"plot", plot}, {"step", at}, {"value", of}};
}

/// Of each epoch the step at its end; where the record does not say, its number.
std::vector<double> epoch_steps(const records::Record& record) {
  std::vector<double> steps;
  for (const records::Epoch& epoch : record.epochs)
    steps.push_back(epoch.step > 0 ? double(epoch.step) : double(steps.size() + 1));
  return steps;
}

Json curves_of(const records::Record& record, const Run& run) {
  Json all = Json::array();
  const std::vector<double> epochs = epoch_steps(record);
  if (const auto series = record.series.find(0); series != record.series.end() && series->second.losses.size() > 1)
    all.push_back(
        curve("loss", "loss", {series->second.steps.begin(), series->second.steps.end()}, series->second.losses));
  else if (run.losses.size() == epochs.size() && !epochs.empty())
    all.push_back(curve("loss", "loss", epochs, run.losses));
  if (!run.val_losses.empty()) all.push_back(curve("val. loss", "loss", epochs, run.val_losses));
  if (!run.accuracies.empty()) all.push_back(curve("accuracy", "accuracy", epochs, run.accuracies));
  if (!run.val_accuracies.empty()) all.push_back(curve("val. accuracy", "accuracy", epochs, run.val_accuracies));
  return all;
}

Json layers_of(const Run& run) {
  Json all = Json::array();
  for (const Track& track : run.tracks) {
    if (all.size() >= kMostLayers) break;
    Json step = Json::array(), gradient = Json::array(), update = Json::array(), activation = Json::array(),
         still = Json::array();
    for (size_t i : some_of(track.rows.size(), kMostLooks)) {
      const LayerStep& row = track.rows[i];
      step.push_back(track.steps[i]);
      gradient.push_back(number(row.size >= 1 ? row.gradient / std::sqrt(row.size) : NAN));
      update.push_back(number(row.weight > 0 ? row.update / row.weight : NAN));
      activation.push_back(number(row.activation));
      still.push_back(number(std::isfinite(row.dead) ? row.dead : row.saturated));
    }
    all.push_back({{"name", track.name},
                   {"step", step},
                   {"gradient", gradient},
                   {"update", update},
                   {"activation", activation},
                   {"still", still}});
  }
  return all;
}

Json events_of(const records::Record& record) {
  Json all = Json::array();
  auto add = [&](const Line& line, const std::string& what) {
    if (all.size() < kMostEvents)
      all.push_back({{"step", line.has("step") ? Json(line.whole("step")) : Json(nullptr)}, {"what", what}});
  };
  static const std::map<std::string, std::string> checks = {
      {"Z1", "gradients of the step before were still there"},
      {"Z2", "a step without a backward pass before it"},
      {"U3", "parameters changed outside of a step"},
      {"B1", "inputs of a batch influence each other"},
      {"E1", "evaluation gives different outputs for the same inputs"},
      {"C1", "a saved file differs from the weights in memory"}};
  for (const Line& fact : record.of("fact"))
    if (const auto words = checks.find(fact.text("check")); !fact.flag("holds", true) && words != checks.end())
      add(fact, words->second + (fact.text("source").empty() ? "" : ", " + fact.text("source")));
  for (const Line& line : record.of("nonfinite"))
    add(line, fmt::format("the loss is NaN or Inf: {}{}", line.text("operation"),
                          line.text("layer").empty() ? "" : " in " + line.text("layer")));
  for (const Line& line : record.of("checkpoint")) add(line, "saved " + line.text("file"));
  for (const Line& line : record.of("stopped")) add(line, "stopped: " + line.text("why"));
  for (const Line& line : record.of("failed")) add(line, "failed: " + line.text("error"));
  return all;
}

std::string about(const records::Record& record, const Run& run) {
  std::vector<std::string> words;
  const Line framework = record.first("framework");
  if (!framework.empty()) words.push_back(framework.text("name") + " " + framework.text("version"));
  if (!run.optimizer.empty())
    words.push_back(run.optimizer + (std::isfinite(run.rate) ? " at " + plain(run.rate) : ""));
  if (!run.loss.empty()) words.push_back(run.loss);
  return words.empty() ? "curves" : join(words, ", ");
}

std::string started_of(const records::Record& record) {
  const double seconds = record.header.number("time", 0);
  const std::time_t when = std::isfinite(seconds) && seconds > 0 && seconds < 1e11 ? std::time_t(seconds) : 0;
  std::tm local{};
  char text[32] = "";
  if (when > 0 && localtime_r(&when, &local)) std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &local);
  return text;
}

double seconds_of(const records::Record& record) {
  double most = 0;
  for (const auto& [type, lines] : record.lines)
    for (const Line& line : lines) most = std::max(most, line.number("t", 0));
  return std::isfinite(most) ? most : 0;
}

Json tiles_of(const Run& run) {
  Json tiles = Json::array();
  auto tile = [&](const char* name, const std::string& value, const std::string& detail) {
    tiles.push_back({{"name", name}, {"value", value}, {"detail", detail}});
  };
  auto text = [](double value) { return std::isfinite(value) ? plain(value) : std::string("NaN"); };
  if (!run.losses.empty()) tile("loss", text(run.losses.back()), fmt::format("from {}", text(run.first_loss())));
  if (!run.val_losses.empty()) tile("validation loss", text(run.val_losses.back()), "at the end");
  if (!run.val_accuracies.empty() && std::isfinite(run.val_accuracies.back()))
    tile("validation accuracy", findings::percent(run.val_accuracies.back()), "at the end");
  tile("steps", with_commas(run.steps), findings::counted(int64_t(run.record->epochs.size()), "epoch"));
  return tiles;
}

/// The curve in one line that a finding is about.
std::string curve_line(const Run& run, const Finding& finding) {
  auto line = [](const std::string& name, const std::vector<double>& values) {
    if (std::count_if(values.begin(), values.end(), [](double value) { return !std::isnan(value); }) < 2)
      return std::string();
    return fmt::format("{}  {}  {} → {}", printable(name), sparkline(values), plain(values.front()),
                       plain(values.back()));
  };
  const std::string plot = plot_of(finding.kind);
  for (const Track& track : run.tracks) {
    if (track.name != finding.where || track.rows.size() < 2) continue;
    std::vector<double> values;
    for (const LayerStep& row : track.rows)
      values.push_back(plot == "training-still" ? (std::isfinite(row.dead) ? row.dead : row.saturated) : row.gradient);
    return line((plot == "training-still" ? "dead or saturated units of " : "gradient of ") + track.name, values);
  }
  if (plot == "training-gradients") {
    std::vector<double> values;
    for (const Track& track : run.tracks)
      if (const LayerStep& row = track.first(); row.size > 1 && std::isfinite(row.gradient))
        values.push_back(std::log10(std::max(row.gradient / std::sqrt(row.size), 1e-12)));
    return values.size() < 2 ? "" : line("log10 gradient, first to last parameter", values);
  }
  if (finding.kind == "over-fitting-run") return line("validation loss", run.val_losses);
  return plot == "training-loss" ? line("loss", run.losses) : "";
}

}  // namespace

std::string plot_of(const std::string& kind) {
  static const std::map<std::string, std::string> plots = {{"learning-rate-high", "training-loss"},
                                                           {"learning-rate-low", "training-updates"},
                                                           {"still-learning", "training-loss"},
                                                           {"over-fitting-run", "training-loss"},
                                                           {"not-learning", "training-loss"},
                                                           {"unstable-training", "training-loss"},
                                                           {"non-finite-training", "training-loss"},
                                                           {"batch-size", "training-loss"},
                                                           {"gradients-accumulate", "training-gradients"},
                                                           {"vanishing-gradient", "training-gradients"},
                                                           {"exploding-gradient", "training-gradients"},
                                                           {"untrained-parameters", "training-gradients"},
                                                           {"lost-updates", "training-updates"},
                                                           {"changed-outside-step", "training-updates"},
                                                           {"dead-relu", "training-still"},
                                                           {"saturated-training", "training-still"},
                                                           {"bad-initialization", "training-activations"},
                                                           {"inputs-not-scaled", "training-activations"},
                                                           {"targets-not-scaled", "training-loss"},
                                                           {"output-activation", "training-loss"},
                                                           {"wrong-loss", "training-loss"}};
  const auto found = plots.find(kind);
  return found == plots.end() ? "" : found->second;
}

Json training_report(const records::Record& record, const Diagnosis& diagnosis, const std::string& command,
                     const std::string& run_name) {
  const Run run = digest(record);
  Json findings = Json::array(), skipped = Json::array();
  for (const Finding& one : diagnosis.findings) findings.push_back(findings::to_json(one));
  for (const std::string& trouble : diagnosis.troubles)
    skipped.push_back({{"what", printable(trouble)}, {"enable", "a record that shows it"}});
  int64_t units = 0;
  for (const Line& layer : run.layers) units += std::max<int64_t>(0, layer.whole("units"));
  const bool quiet = diagnosis.findings.empty() || diagnosis.findings[0].level == Level::kNote;
  const std::string name = record.first("model").text("name");
  return {{"format", "netmend.report/1"},
          {"run",
           {{"command", command},
            {"version", kVersion},
            {"started", started_of(record)},
            {"seconds", seconds_of(record)},
            {"seed", record.first("framework").whole("seed")},
            {"timed", false},
            {"model",
             {{"name", name.empty() ? run_name : name},
              {"checksum", "–"},
              {"layers", run.layers.size()},
              {"units", units},
              {"weights", run.parameters}}},
            {"data", Json::array()},
            {"pictures", false}}},
          {"verdict", quiet ? "Nothing above a note was found in this training." : utf8(diagnosis.findings[0].title)},
          {"tiles", tiles_of(run)},
          {"findings", findings},
          {"accepted", Json::array()},
          {"passed", Json::array()},
          {"skipped", skipped},
          {"preflight", {{"lines", Json::array()}, {"tried", Json::array()}}},
          {"method", Json::array({{{"name", "record"}, {"text", run_name}}})},
          {"training",
           {{"about", about(record, run)},
            {"steps", std::max<int64_t>(0, run.steps)},
            {"curves", curves_of(record, run)},
            {"layers", layers_of(run)},
            {"events", events_of(record)}}}};
}

std::vector<std::string> training_screen(const records::Record& record, const Diagnosis& diagnosis) {
  const Run run = digest(record);
  std::vector<std::string> lines;
  auto add = [&]<typename... Args>(fmt::format_string<Args...> format, Args&&... args) {
    lines.push_back(fmt::format(format, std::forward<Args>(args)...));
  };
  add("  {}, {}{}{}", findings::counted(run.steps, "step"), findings::counted(int64_t(record.epochs.size()), "epoch"),
      run.optimizer.empty() ? "" : ", " + printable(run.optimizer),
      std::isfinite(run.rate) ? fmt::format(" at {}", plain(run.rate)) : "");
  auto curve_of = [&](const char* name, const std::vector<double>& values) {
    // Accuracy is only known of steps that were looked at; what came last of it is what counts.
    std::vector<double> seen = values;
    if (name[0] == 'a' || name[0] == 'v') std::erase_if(seen, [](double value) { return std::isnan(value); });
    if (seen.size() >= 2) add("  {:<14}{}  {} → {}", name, sparkline(seen), plain(seen.front()), plain(seen.back()));
  };
  curve_of("loss", run.losses), curve_of("val. loss", run.val_losses);
  curve_of("accuracy", run.accuracies), curve_of("val. accuracy", run.val_accuracies);
  add("");
  bool shown = false;
  for (const Finding& finding : diagnosis.findings) {
    if (finding.level == Level::kNote) continue;
    shown = true;
    add("  {:<8} {}", findings::level_name(finding.level), printable(finding.id()));
    add("           {}", printable(finding.title));
    add("           {} ({})", printable(finding.evidence), findings::certainty_name(finding.certainty));
    if (const std::string curve = curve_line(run, finding); !curve.empty()) add("           {}", curve);
  }
  if (!shown) add("  Nothing above a note was found.");
  for (const Finding& finding : diagnosis.findings)
    if (finding.level == Level::kNote) add("  note     {}: {}", printable(finding.id()), printable(finding.brief));
  if (!diagnosis.second_opinion.empty() && diagnosis.second_opinion[0].second >= 0.5 && !diagnosis.is_confirmed())
    add("  opinion  a forest trained on planted faults: {}, {}",
        diagnosis.second_opinion[0].first == "none" ? "nothing wrong" : diagnosis.second_opinion[0].first,
        findings::percent(diagnosis.second_opinion[0].second));
  if (const Line stopped = record.last("stopped"); !stopped.empty()) {
    add("  stopped  {}", printable(stopped.text("why")));
    if (const std::string file = stopped.text("checkpoint"); !file.empty())
      add("           the last sound file of weights is {}{}", printable(file),
          stopped.has("checkpoint_step") ? fmt::format(", saved after step {}", stopped.whole("checkpoint_step")) : "");
  }
  for (const std::string& trouble : diagnosis.troubles) add("  unknown  {}", printable(trouble));
  if (shown) add(""), add("  next     {}", Shell::of("netmend why {}", diagnosis.findings.front().kind).text());
  return lines;
}

}  // namespace netmend::diagnosis
