// netmend locate: which units and layers are to blame when the network is wrong.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/file.h"
#include "base/run_folder.h"
#include "base/text.h"
#include "localise/blame.h"
#include "localise/candidates.h"
#include "netmend/show.h"
#include "netmend/target.h"
#include "stream/layers.h"

namespace netmend::app {
namespace {

using localise::Blame;
using localise::Choice;
using localise::Counts;
using localise::Located;
using localise::Ranking;

/// The measure asked for, then the others. Only the first one gets resamples unless all were asked for.
std::vector<Choice> choices_of(const std::string& name) {
  const bool all = lower(name) == "all";
  std::vector<Choice> choices{localise::find_measure(all ? "auto" : name)};
  for (const localise::Measure& measure : localise::measures()) {
    if (measure.name == choices[0].measure->name) continue;
    if (all || (measure.of == localise::Measure::kCounts && measure.name != "random")) choices.push_back({&measure});
  }
  return choices;
}

void require_judged(const observers::PredictionSettings& settings, const dataset::Dataset& data) {
  if (settings.task == observers::Task::kNone)
    throw InputError(fmt::format("{} has no labels: nothing tells which answers are wrong", data.info().spec),
                     "Give data with labels.");
  if (settings.task == observers::Task::kNumber && settings.tolerance < 0)
    throw InputError("the model gives numbers, which are neither right nor wrong by themselves",
                     "Say in netmend.toml how near is right: goal.tolerance = 0.5");
}

Blame locate_units(const Common& common, const LocateOptions& options, const Judged& judged, const NamedTarget& target,
                   std::vector<model::Layer> layers) {
  localise::BlameOptions how;
  how.choices = choices_of(options.measure);
  how.resample_all = lower(options.measure) == "all";
  how.top = options.top, how.resamples = options.resamples, how.threshold = options.threshold;
  how.before_activation = options.tap == "pre";
  how.target = target.target;
  how.seed = common.seed;
  how.pass = pass_options(common);
  return localise::blame(judged.subject, judged.settings, std::move(layers), how);
}

/// Rank of a unit, from 1.
int64_t rank_in(const Ranking& ranking, size_t place) {
  for (size_t i = 0; i < ranking.units.size(); ++i)
    if (ranking.units[i].place == place) return int64_t(i) + 1;
  return 0;
}

Json share(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json ranking_json(const Blame& found, const Located& located) {
  Json list = Json::array();
  for (int64_t i = 0; i < located.ranking.top; ++i) {
    const localise::RankedUnit& unit = located.ranking.units[size_t(i)];
    const Counts& counts = found.counts[unit.place];
    list.push_back({{"rank", i + 1},
                    {"unit", found.unit(unit.place)},
                    {"layer", found.layers[found.places[unit.place].layer].name},
                    {"score", unit.score},
                    {"chance", localise::chance_score(counts, located.choice)},
                    {"as", int64_t(counts.as)},
                    {"af", int64_t(counts.af)},
                    {"ns", int64_t(counts.ns)},
                    {"nf", int64_t(counts.nf)},
                    {"in_top", share(unit.in_top)},
                    {"rank_low", unit.rank_low},
                    {"rank_high", unit.rank_high}});
    if (!found.ablated || located.choice.measure->of != localise::Measure::kAblation) continue;
    // What would be: loss saved an input with the unit silent, held at its mean, negated, refitted; null where not
    // tried.
    const std::vector<double>& by = found.ablated->by[unit.place];
    list.back()["saved"] = {
        {"silent", share(by[0])}, {"held", share(by[1])}, {"negated", share(by[2])}, {"refitted", share(by[3])}};
    list.back()["helps_most"] = localise::ablation_name(found.ablated->best[unit.place]);
    list.back()["right_in_addition"] = found.ablated->right[unit.place];
  }
  return list;
}

Json layers_json(const Blame& found, const Ranking& ranking) {
  Json list = Json::array();
  for (const localise::RankedLayer& layer : ranking.layers)
    list.push_back({{"layer", found.layers[layer.layer].name},
                    {"units", layer.units},
                    {"mean_score", layer.mean},
                    {"best_score", layer.best},
                    {"in_top", layer.in_top},
                    {"in_top_by_chance", layer.by_chance},
                    {"first", share(layer.first)}});
  return list;
}

Json locate_json(const LocateOptions& options, const Blame& found) {
  const bool all = lower(options.measure) == "all";
  const Ranking& first = found.located[0].ranking;
  Json json = {{"measure", all ? "all" : found.located[0].choice.name()},
               {"on", options.on.empty() ? Json(nullptr) : Json(options.on)},
               {"inputs", found.result.samples},
               {"failures", found.failing},
               {"passes", found.passing},
               {"threshold", options.threshold},
               {"tap", options.tap},
               {"always_active", found.always_active()},
               {"units", found.places.size()},
               {"top", first.top},
               {"resamples", first.resamples},
               {"ranking", ranking_json(found, found.located[0])},
               {"layers", layers_json(found, first)},
               {"random", {{"rank", first.random_rank()}, {"in_top", first.random_in_top()}}}};
  if (all) json["ranked_by"] = found.located[0].choice.name();
  json["measures"] = Json::array();
  const size_t best = first.units[0].place;
  for (const Located& other : found.located) {
    Json row = {{"measure", other.choice.name()},
                {"rank_of_first", rank_in(other.ranking, best)},
                {"first", found.unit(other.ranking.units[0].place)}};
    if (all) row["ranking"] = ranking_json(found, other), row["layers"] = layers_json(found, other.ranking);
    json["measures"].push_back(std::move(row));
  }
  if (found.gradients_failing > 0)
    json["gradient_inputs"] = {{"failing", found.gradients_failing}, {"passing", found.gradients_passing}};
  json["seconds"] = found.seconds;
  json["scoring_seconds"] = found.scoring;
  return json;
}

std::string percent(double value) { return std::isfinite(value) ? fmt::format("{:.0f} %", 100 * value) : "–"; }

size_t width_of(const Blame& found, const Ranking& ranking) {
  size_t width = 6;
  for (int64_t i = 0; i < ranking.top; ++i) width = std::max(width, found.unit(ranking.units[size_t(i)].place).size());
  return std::min<size_t>(width, 40);
}

void print_units(const Blame& found, const Located& located) {
  const Ranking& ranking = located.ranking;
  const size_t width = width_of(found, ranking);
  fmt::print("\n        {:<{}}      score  by chance   active: wrong    right   in first {:<3}  rank in resamples\n",
             "unit", width, ranking.top);
  for (int64_t i = 0; i < ranking.top; ++i) {
    const localise::RankedUnit& unit = ranking.units[size_t(i)];
    const Counts& c = found.counts[unit.place];
    fmt::print("  {:>4}  {:<{}}  {:>9.4g}  {:>9.4g}         {:>5.1f} %  {:>5.1f} %   {:>10}   {:>8}–{}\n", i + 1,
               printable(found.unit(unit.place)), width, unit.score, localise::chance_score(c, located.choice),
               100 * c.af / (c.af + c.nf), 100 * c.as / (c.as + c.ns), percent(unit.in_top), unit.rank_low,
               unit.rank_high);
  }
  fmt::print("        {:<{}}  {:>58}   {:>8.4g} on average\n", "by lot", width, percent(ranking.random_in_top()),
             ranking.random_rank());
}

void print_layers(const Blame& found, const Ranking& ranking) {
  size_t width = 5, shown = 0;
  for (const model::Layer& layer : found.layers) width = std::max(width, layer.name.size());
  width = std::min<size_t>(width, 40);
  fmt::print("\n        {:<{}}   units  mean score       best   in first {:<3}  by chance   highest mean in\n", "layer",
             width, ranking.top);
  for (const localise::RankedLayer& layer : ranking.layers) {
    if (++shown > 12) break;
    fmt::print("        {:<{}}  {:>6}   {:>9.4g}  {:>9.4g}   {:>8}      {:>8.1f}   {:>8}\n",
               printable(found.layers[layer.layer].name), width, layer.units, layer.mean, layer.best, layer.in_top,
               layer.by_chance, percent(layer.first));
  }
  if (ranking.layers.size() > 12)
    fmt::print("        … and {} more layers (--json has all)\n", ranking.layers.size() - 12);
}

/// Where the other measures put the first unit.
void print_others(const Blame& found) {
  const size_t best = found.located[0].ranking.units[0].place;
  std::vector<std::string> others;
  for (size_t i = 1; i < found.located.size(); ++i)
    others.push_back(fmt::format("{} {}", found.located[i].choice.name(), rank_in(found.located[i].ranking, best)));
  if (!others.empty()) fmt::print("\n  rank of {} by {}\n", printable(found.unit(best)), join(others, ", "));
}

/// `--measure all`: a line a measure.
void print_measures(const Blame& found) {
  size_t width = 5;
  for (const Located& located : found.located)
    width = std::max(width, found.unit(located.ranking.units[0].place).size());
  width = std::min<size_t>(width, 40);
  const Ranking& lead = found.located[0].ranking;
  const std::string name = found.located[0].choice.name();
  fmt::print("\n  measure     {:<{}}      score   in first {:<3}  rank in resamples   of its first {} also in {}'s\n",
             "first", width, lead.top, lead.top, name);
  for (const Located& located : found.located) {
    const localise::RankedUnit& first = located.ranking.units[0];
    int64_t shared = 0;
    for (int64_t i = 0; i < lead.top; ++i) shared += rank_in(lead, located.ranking.units[size_t(i)].place) <= lead.top;
    fmt::print("  {:<10}  {:<{}}  {:>9.4g}   {:>8}     {:>4}–{:<4}           {:>4}\n", located.choice.name(),
               printable(found.unit(first.place)), width, first.score, percent(first.in_top), first.rank_low,
               first.rank_high, shared);
  }
}

/// The commonest mistake, as the flag that aims at it; "" when answers are not classes.
std::string commonest(const observers::PredictionSettings& settings, const observers::PredictionResult& result) {
  int64_t most = 0;
  std::string flag;
  for (size_t label = 0; label < result.confusion.size(); ++label)
    for (size_t answer = 0; answer < result.confusion.size(); ++answer)
      if (label != answer && result.confusion[label][answer] > most) {
        most = result.confusion[label][answer];
        flag = fmt::format("--on confusion={}:{}", settings.classes[label], settings.classes[answer]);
      }
  return flag;
}

/// A command that shows more; one that exists.
std::string next_command(const LocateOptions& options, const Judged& judged, const Blame& found) {
  std::string command = "netmend locate";
  if (!options.model.empty()) command += " " + options.model;
  if (!options.data.empty()) command += " --data " + options.data;
  if (!options.test.empty()) command += " --test " + options.test;
  std::string aim = options.on.empty() ? commonest(judged.settings, found.result) : "";
  if (!options.on.empty()) command += " --on " + options.on;
  if (!aim.empty()) return command + " " + aim;
  return command + (lower(options.measure) == "gradient" ? " --measure all" : " --measure gradient");
}

void print_located(const LocateOptions& options, const Judged& judged, const NamedTarget& target, const Blame& found) {
  const Ranking& ranking = found.located[0].ranking;
  const bool all = lower(options.measure) == "all";
  fmt::print("{}  on {}{}\n", judged.subject.model_name, judged.subject.data->info().spec,
             target.text.empty() ? "" : ", " + target.words);
  fmt::print("  {} failing against {} right inputs   {} units in {} layer{}, active above {:g} ({})   {:.2f} s\n",
             with_commas(found.failing), with_commas(found.passing), with_commas(int64_t(found.places.size())),
             found.layers.size(), found.layers.size() == 1 ? "" : "s", options.threshold, options.tap,
             found.seconds + found.scoring);
  fmt::print("  by {}: {}; {} resamples\n", found.located[0].choice.name(), found.located[0].choice.measure->formula,
             ranking.resamples);
  if (found.gradients_failing > 0)
    fmt::print("  gradients of {} failing and {} right inputs\n", with_commas(found.gradients_failing),
               with_commas(found.gradients_passing));
  if (found.failing < 10)
    fmt::print("  only {} failing input{}: take this as a hint\n", found.failing, found.failing == 1 ? "" : "s");
  if (int64_t always = found.always_active(); 4 * always > int64_t(found.places.size()) &&
                                              found.located[0].choice.measure->of == localise::Measure::kCounts &&
                                              options.measure != "random")
    fmt::print(
        "  {} of {} units are active on every input, counts cannot tell them apart: try --tap pre or --measure auto\n",
        with_commas(always), with_commas(int64_t(found.places.size())));
  print_units(found, found.located[0]);
  print_layers(found, ranking);
  all ? print_measures(found) : print_others(found);
}

void write_ranking(const std::string& path, const Blame& found, const Located& located) {
  write_file(path, [&](std::ostream& out) {
    out << "rank,unit,layer,score,chance,as,af,ns,nf,in_top,rank_low,rank_high\n";
    for (size_t i = 0; i < located.ranking.units.size(); ++i) {
      const localise::RankedUnit& unit = located.ranking.units[i];
      const Counts& c = found.counts[unit.place];
      out << fmt::format("{},{},{},{:.9g},{:.9g},{},{},{},{},{:.4g},{},{}\n", i + 1, found.unit(unit.place),
                         found.layers[found.places[unit.place].layer].name, unit.score,
                         localise::chance_score(c, located.choice), c.as, c.af, c.ns, c.nf, unit.in_top, unit.rank_low,
                         unit.rank_high);
    }
  });
}

int refuse(const Common& common, const checkup::Preflight& preflight, const std::string& model) {
  if (common.json)
    print_json({{"preflight", preflight_json(preflight)},
                {"findings", Json::array({blocker_json(*preflight.blocker, "netmend locate " + model)})}});
  return 1;
}

}  // namespace

int locate(const Common& common, const LocateOptions& options) {
  if (lower(options.measure) == "arachne") return locate_weights(common, options);
  choices_of(options.measure);  // a slip of the finger shows before the work
  Case about = open_case(common, options);
  Judged& judged = about.judged;
  require_judged(judged.settings, *about.data);
  std::vector<model::Layer> layers =
      localise::candidates(stream::find_layers(judged.subject), judged.subject.graph, judged.settings.head,
                           judged.settings.outputs, options.layers);
  // Gradients are taken where each input has an axis of its own.
  if ((localise::uses(choices_of(options.measure), localise::Measure::kGradient) ||
       localise::uses(choices_of(options.measure), localise::Measure::kAblation)) &&
      std::erase_if(layers, [](const model::Layer& layer) { return layer.merged != model::Merged::kNo; }) > 0)
    say(common, "layers whose values mix inputs and positions on one axis are left out of the gradient measure");
  NamedTarget target = parse_target(options.on, judged.settings, *about.data);
  checkup::Preflight preflight = examine(common, options, about);
  if (!common.json) print_preflight(preflight, judged.settings.metric);
  if (preflight.blocker && !options.anyway) return refuse(common, preflight, judged.subject.model_name);
  Plan plan = plan_pass(common, options, about);
  judged.subject.data = plan.data;
  if (plan.data != about.data) target = parse_target(options.on, judged.settings, *plan.data);

  Blame found = locate_units(common, options, judged, target, std::move(layers));
  if (found.located.empty() && found.interrupted) return say(common, "stopped before anything was found"), 130;
  require_both_sides(target, judged.settings, found.result, found.failing, found.passing);
  RunFolder folder(common.out, "locate", common.arguments);
  write_ranking(folder.file("ranking.csv"), found, found.located[0]);
  if (lower(options.measure) == "all")
    for (const Located& located : found.located)
      write_ranking(folder.file(fmt::format("ranking-{}.csv", located.choice.name())), found, located);
  folder.note_file(judged.subject.model_name);
  for (const std::string& file : plan.data->info().files) folder.note_file(file);
  folder.note("data", plan.data->info().spec);
  Json json = locate_json(options, found);
  json["of"] = plan.whole;
  json["model"] = judged.subject.model_name;
  json["data"] = plan.data->info().spec;
  json["preflight"] = preflight_json(preflight);
  json["next"] = Json::array({next_command(options, judged, found)});
  json["run"] = folder.path();
  write_file(folder.file("locate.json"), json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  folder.finish(common.seed, found.seconds + found.scoring, found.interrupted ? 130 : 0);
  if (common.json) {
    print_json(json);
  } else {
    print_located(options, judged, target, found);
    fmt::print("\n  next  {}\n  every unit: {}/ranking.csv\n", next_command(options, judged, found), folder.path());
  }
  if (found.interrupted)
    say(common, fmt::format("stopped: this is the result of the first {} inputs", with_commas(found.result.samples)));
  return found.interrupted ? 130 : 0;
}

}  // namespace netmend::app
