// sbfl-repair from its options to the questions with their box plots.
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "studies/sbfl_repair.h"
#include "studies/tables.h"
#include "studies/trained_networks.h"

namespace netmend::studies {

using trials::boxes_svg;
namespace {

using Json = nlohmann::ordered_json;

Json boxes_json(const std::vector<Box>& boxes) {
  Json list = Json::array();
  for (const Box& box : boxes) {
    Json one = {{"label", box.label}, {"count", box.count}};
    if (box.count)
      one["least"] = box.least, one["low"] = box.low, one["median"] = box.median, one["high"] = box.high,
      one["most"] = box.most;
    list.push_back(one);
  }
  return list;
}

std::string signed_percent(double ratio) {
  return std::isfinite(ratio) ? fmt::format("{:+.2f}", 100 * (ratio - 1)) : "–";
}

std::string plain(double value, int digits = 2) {
  return std::isfinite(value) ? fmt::format("{:.{}f}", value, digits) : "–";
}

std::string part_name(const Answer& answer) {
  return fmt::format("{}, {}", answer.published ? "as published" : "corrected",
                     answer.trained ? "trained" : "untrained");
}

/// Markdown: table 5.2, each question with its boxes, and what is claimed.
std::string sbfl_text(const Json& json, const std::vector<BaseRow>& bases, const std::vector<Answer>& answers) {
  std::string out = fmt::format(
      "# The thesis on spectrum-based repair\n\n{} trajectories, each for eight ways to stop. Scaling by 1, which is "
      "in "
      "the grid, changes nothing and is told apart.\n\n"
      "## Table 1: networks before any mutation (the thesis's 5.2), in brackets its figures\n\n",
      with_commas(json["done"].get<int64_t>()));
  Table table({"network", "epochs", "data", "accuracy %", "loss"});
  for (const BaseRow& row : bases)
    table.row({row.network, std::to_string(row.epochs), row.size,
               fmt::format("{} ({:.2f})", plain(row.accuracy), row.paper_accuracy),
               fmt::format("{} ({:.4f})", plain(row.loss, 4), row.paper_loss)});
  out +=
      table.text() +
      "## Table 2: claims\n\nDifferences that are above 0 where the claim holds, one for each block of network, size "
      "and length that both sides share, their mean with its 95 % interval, and the p-value of a t-test. Accuracy and "
      "loss are relative to the benchmark, in percent.\n\n";
  Table claims({"question", "grid", "claim", "of", "blocks", "mean difference", "p", "verdict"});
  for (const Answer& answer : answers)
    for (const GridClaim& claim : answer.claims)
      claims.row({answer.question.substr(0, 3), part_name(answer), claim.text, claim.loss ? "loss" : "accuracy",
                  std::to_string(claim.blocks),
                  fmt::format("{} [{}, {}]", plain(100 * claim.mean), plain(100 * claim.low), plain(100 * claim.high)),
                  std::isfinite(claim.p) ? fmt::format("{:.2g}", claim.p) : "–", claim.verdict});
  out += claims.text();
  int64_t number = 2;
  for (const Answer& answer : answers) {
    out += fmt::format(
        "## Table {}: {}, {}\n\nThe thesis: {}. Changes against the benchmark in percent: median, "
        "quartiles, extremes, of accuracy and of loss.\n\n",
        ++number, answer.question, part_name(answer), answer.thesis);
    Table boxes({"", "rounds", "accuracy", "quartiles", "extremes", "loss", "quartiles", "extremes"});
    for (size_t i = 0; i < answer.accuracy.size(); ++i) {
      const Box &a = answer.accuracy[i], &l = answer.loss[i];
      auto pair = [](double low, double high) { return signed_percent(low) + " … " + signed_percent(high); };
      boxes.row({a.label, with_commas(int64_t(a.count)), signed_percent(a.median), pair(a.low, a.high),
                 pair(a.least, a.most), signed_percent(l.median), pair(l.low, l.high), pair(l.least, l.most)});
    }
    out += boxes.text();
  }
  return out;
}

}  // namespace

Json run_sbfl_study(const StudyContext& context, const SbflRequest& request) {
  const std::string& folder = context.folder;
  make_folders(folder);
  const std::string study = fmt::format("sbfl-repair, seed {}, {} training inputs", context.seed,
                                        request.limit ? std::to_string(request.limit) : "all");
  refuse_slice(context, request.slice);
  Store store = open_store(
      context, study,
      fmt::format("networks {}, sample {:g}{}{}{}", request.networks.empty() ? "all" : join(request.networks, "+"),
                  request.sample, request.as_published ? ", as published" : "", request.trained ? ", trained" : "",
                  request.both ? ", both halves" : ""),
      kGridVersion);
  add_trials(store, request.add, study, kGridVersion);
  GridOptions how;
  if (!request.networks.empty()) how.networks = request.networks;
  how.as_published = request.as_published;
  how.trained = request.trained, how.untrained = !request.trained || request.both;
  how.sample = request.sample, how.slice = parse_slice(request.slice), how.bases_only = request.bases_only;
  how.seed = context.seed, how.jobs = context.jobs, how.folder = folder, how.bases = request.bases;
  how.limit = request.limit, how.device = context.device, how.one_by_one = request.one_by_one;
  const GridSize size = grid_size(store, how);
  tell(context, fmt::format("{} of {} trajectories ({} trials), {} to do", with_commas(size.chosen),
                            with_commas(size.all), with_commas(size.trials), with_commas(size.missing)));
  if (how.bases_only || (size.missing > 0 && !request.report_only)) run_grid(store, how, context.progress);
  Json json = {{"trajectories", size.chosen}, {"of", size.all}, {"trials", size.trials}, {"done", 0}};
  int64_t done = 0;
  for (const auto& [key, unused] : store.all()) done += parse_key(key).has_value();
  json["done"] = done;
  json["bases"] = Json::array();
  const std::vector<BaseRow> bases = base_rows(store);
  auto figure = [](double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); };
  for (const BaseRow& row : bases)
    json["bases"].push_back({{"network", row.network},
                             {"epochs", row.epochs},
                             {"data", row.size},
                             {"accuracy", figure(row.accuracy)},
                             {"loss", figure(row.loss)},
                             {"thesis_accuracy", row.paper_accuracy},
                             {"thesis_loss", row.paper_loss}});
  json["answers"] = Json::array();
  const std::vector<Answer> answers = answer_questions(store);
  for (const Answer& answer : answers) {
    Json claims = Json::array();
    for (const GridClaim& claim : answer.claims)
      claims.push_back({{"claim", claim.text},
                        {"of", claim.loss ? "loss" : "accuracy"},
                        {"blocks", claim.blocks},
                        {"mean", figure(claim.mean)},
                        {"low", figure(claim.low)},
                        {"high", figure(claim.high)},
                        {"p", figure(claim.p)},
                        {"verdict", claim.verdict}});
    json["answers"].push_back({{"question", answer.question},
                               {"thesis", answer.thesis},
                               {"as_published", answer.published},
                               {"trained", answer.trained},
                               {"claims", claims},
                               {"accuracy", boxes_json(answer.accuracy)},
                               {"loss", boxes_json(answer.loss)}});
    const std::string file =
        fmt::format("{}/{}-{}-{}", folder, lower(answer.question.substr(0, 3)),
                    answer.published ? "published" : "corrected", answer.trained ? "trained" : "untrained");
    write_file(file + "-accuracy.svg", boxes_svg(answer.question + ": accuracy / benchmark", answer.accuracy, 1));
    write_file(file + "-loss.svg", boxes_svg(answer.question + ": loss / benchmark's loss", answer.loss, 1));
  }
  json["out"] = folder;
  write_trials(store, folder + "/trials.csv");
  write_file(folder + "/sbfl-repair.json", json_text(json, 2) + "\n");
  const std::string text = sbfl_text(json, bases, answers);
  write_file(folder + "/sbfl-repair.md", text);
  json["text"] = text;
  return json;
}

}  // namespace netmend::studies
