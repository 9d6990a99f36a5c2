// mutation-scores: which figure of a set of tests predicts that it finds faults? Sets of different quality of the same
// data, their mutation scores, their coverage, and the share of planted faults that they find.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "adequacy/coverage_run.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/random.h"
#include "base/text.h"
#include "dataset/spec.h"
#include "faults/plant.h"
#include "inputs/stress.h"
#include "mutants/judged.h"
#include "session/split.h"
#include "stats/bootstrap.h"
#include "studies/altered.h"
#include "studies/sensitivity.h"
#include "studies/tables.h"
#include "studies/trained_networks.h"
#include "trials/store.h"

namespace netmend::studies {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kScoresVersion = 3;
constexpr double kNoise = 0.3;        ///< of the deviation of the values, for the noisy set
constexpr const char* kEps = "0.05";  ///< of the adversarial set: part of the valid range
const std::vector<std::string> kCriteria = {"NC", "KMNC", "NBC", "TKNC"};

/// A set of tests as samples of the data, or noisy copies of them, or data of its own.
struct TestSet {
  std::string name;
  std::vector<int64_t> samples;
  bool noisy = false;
  std::shared_ptr<const dataset::Dataset> own = nullptr;
};

std::vector<TestSet> test_sets(const std::vector<int64_t>& labels, const std::vector<double>& confidence,
                               uint64_t seed) {
  std::vector<int64_t> all(labels.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = int64_t(i);
  std::vector<TestSet> sets = {{"full", all}};
  for (uint64_t half = 1; half <= 2; ++half) {
    std::vector<int64_t> drawn = all;
    Random(seed, half).shuffle(drawn);
    drawn.resize(all.size() / 2);
    std::sort(drawn.begin(), drawn.end());
    sets.push_back({fmt::format("random half {}", half), drawn});
  }
  std::vector<int64_t> tenth = all;
  Random(seed, 9).shuffle(tenth);
  tenth.resize(std::max<size_t>(20, all.size() / 10));
  sets.push_back({"random tenth", tenth});
  std::vector<int64_t> missing, easy = all, hard;
  for (int64_t i : all)
    if (labels[size_t(i)] != 0) missing.push_back(i);
  std::stable_sort(easy.begin(), easy.end(),
                   [&](int64_t a, int64_t b) { return confidence[size_t(a)] > confidence[size_t(b)]; });
  hard.assign(easy.end() - int64_t(easy.size() / 10), easy.end());
  easy.resize(easy.size() / 2);
  sets.push_back({"one class missing", missing});
  sets.push_back({"most confident half", easy});
  sets.push_back({"least confident tenth", hard});
  sets.push_back({"noisy", all, true});
  return sets;
}

std::shared_ptr<const dataset::Dataset> data_of(const std::shared_ptr<const dataset::Dataset>& data, const TestSet& set,
                                                uint64_t seed) {
  if (set.own) return set.own;
  std::shared_ptr<const dataset::Dataset> part = dataset::subset(data, set.samples);
  if (!set.noisy) return part;
  return altered(part, {.change = [seed](dataset::Batch& batch, std::span<const int64_t> rows) {
                   for (at::Tensor& input : batch.inputs) {
                     if (!input.is_floating_point()) continue;
                     input = input.clone();
                     const double deviation = kNoise * input.std().item<double>();
                     for (size_t i = 0; i < rows.size(); ++i) {
                       Random random(seed, uint64_t(rows[i]));
                       at::Tensor row = input[int64_t(i)].view(-1);
                       auto values = row.accessor<float, 1>();
                       for (int64_t k = 0; k < row.numel(); ++k) values[k] += float(deviation * random.normal());
                     }
                   }
                 }});
}

/// The tests after one signed-gradient step, as a file in the study's folder.
TestSet adversarial(const StudyContext& context, const NetworkFile& network, int64_t tests) {
  session::Session session = open_session(context, network, tests);
  inputs::StressRequest request;
  request.method = "fgsm", request.eps = kEps, request.from = "all";
  request.product = network.file + ".fgsm.npz";
  const inputs::StressReport made = inputs::stress(session, request);
  if (made.made_data.empty()) fail("no adversarial tests of {} could be made", network.file);
  return {
      "adversarial (FGSM)", {}, false, session::open_data(dataset::parse_spec(made.made_data), session.graph(), {})};
}

/// Share of the faults whose damage McNemar's test shows on the tests (p < 0.05).
double faults_found(const stream::Subject& subject, const observers::PredictionSettings& settings,
                    const std::vector<model::Layer>& layers, const std::vector<faults::Fault>& planted, int jobs) {
  whatif::WhatIf whatif(subject, settings, layers, {.jobs = jobs});
  std::vector<whatif::Question> questions(1);
  for (const faults::Fault& fault : planted) questions.push_back({fault.edits});
  std::vector<bool> right(size_t(subject.data->size()));
  std::vector<int64_t> fixed(planted.size()), broken(planted.size());
  whatif.ask(questions, [&](size_t q, int64_t first, std::span<const whatif::Judgement> rows) {
    for (size_t i = 0; i < rows.size(); ++i) {
      const size_t at = size_t(first) + i;
      if (q == 0)
        right[at] = rows[i].right;
      else
        fixed[q - 1] += rows[i].right && !right[at], broken[q - 1] += !rows[i].right && right[at];
    }
  });
  int64_t found = 0;
  for (size_t f = 0; f < planted.size(); ++f)
    found += broken[f] > fixed[f] && stats::sign_test(fixed[f], broken[f]) < 0.05;
  return double(found) / double(std::max<size_t>(1, planted.size()));
}

/// Small faults: some are found only by good tests.
std::vector<faults::Fault> draw_faults(const model::Graph& graph, const std::vector<model::Layer>& layers,
                                       int64_t count, uint64_t seed) {
  std::vector<faults::Fault> list;
  std::vector<const faults::Kind*> kinds;
  for (const faults::Kind& kind : faults::kinds())
    if (kind.of == faults::Kind::kUnit) kinds.push_back(&kind);
  for (uint64_t draw = 0; int64_t(list.size()) < count && draw < uint64_t(10 * count); ++draw) {
    try {
      list.push_back(faults::plant(graph, layers, *kinds[draw % kinds.size()],
                                   {.strength = 0.3, .seed = Random::hash(seed * 7919 + draw)}));
    } catch (const InputError&) {  // a unit without bias cannot be saturated
    }
  }
  return list;
}

Json judge_set(const StudyContext& context, session::Session& whole, const NetworkFile& network, const TestSet& set,
               const std::vector<mutants::Mutant>& list, const std::vector<faults::Fault>& planted) {
  session::Request request = whole.request();
  session::Split* train = whole.train();
  session::Session own(request, network.file, whole.graph(), data_of(whole.test().subject.data, set, context.seed),
                       train ? dataset::subset(train->data, stream::spread(train->data->size(), 5000)) : nullptr);
  const observers::PredictionSettings& task = own.task();
  const mutants::Judged judged =
      mutants::judge(own.test().subject, task, own.layers(), list, mutants::Kill::kClass, context.jobs);
  std::vector<size_t> every(list.size());
  for (size_t m = 0; m < every.size(); ++m) every[m] = m;
  const mutants::Killed by = mutants::killed(judged.table);
  const stats::Estimate score = mutants::score(judged.table, by, every);
  int64_t killed = 0;
  for (int32_t goals : by.goals) killed += goals > 0;
  Json row = {{"set", set.name}, {"tests", own.test().used()}, {"accuracy", judged.original_accuracy}};
  row["mutation_score"] = score.value, row["low"] = score.low, row["high"] = score.high;
  row["killed"] = double(killed) / double(list.size());
  row["faults_found"] = faults_found(own.test().subject, task, own.layers(), planted, context.jobs);
  adequacy::CoverageRequest coverage;
  coverage.criteria = train ? "NC,KMNC,NBC,TKNC" : "NC,TKNC";
  const Json covered = adequacy::CoverageRun(own, coverage).document();
  for (const Json& figure : covered["criteria"])
    for (const std::string& name : kCriteria)
      if (figure["name"] == name && !row.contains(name)) row[name] = figure["value"];
  return row;
}

std::string prefix_of(const StudyContext& context, const std::string& network, const ScoresRequest& request) {
  return fmt::format("{}|{}|{}|{}|{}", network, context.seed, request.mutants, request.faults, request.tests);
}

void run_network(const StudyContext& context, trials::Store& store, const std::string& text,
                 const ScoresRequest& request) {
  const NetworkFile network = trained_file(context, text);
  session::Session session = open_session(context, network, request.tests);
  session::Split& test = session.test();
  if (!session.task().by_class()) fail("{} does not predict classes", text);
  const std::string prefix = prefix_of(context, text, request);
  observers::Predictions predictions(session.task(), true);
  stream::Pass pass(test.subject);
  auto judged = pass.watch(predictions);
  session.run(pass, test, "confidence");
  std::vector<int64_t> labels;
  std::vector<double> confidence;
  for (const observers::SampleRow& row : pass.state(judged).rows)
    labels.push_back(int64_t(row.label)), confidence.push_back(row.confidence);
  mutants::Generation how;
  how.operators = mutants::find_operators("all"), how.sample = request.mutants, how.seed = context.seed;
  const auto list = mutants::generate(test.subject, session.layers(), session.task(), how).list;
  const auto planted = draw_faults(session.graph(), session.layers(), request.faults, context.seed);
  std::vector<TestSet> sets = test_sets(labels, confidence, context.seed);
  if (!store.find(prefix + "|adversarial (FGSM)")) sets.push_back(adversarial(context, network, request.tests));
  for (const TestSet& set : sets) {
    const std::string key = prefix + "|" + set.name;
    if (store.find(key)) continue;
    tell(context, key);
    store.put(key, json_text(judge_set(context, session, network, set, list, planted)));
  }
}

const std::vector<std::pair<std::string, std::string>> kFigures = {{"mutation_score", "the mutation score"},
                                                                   {"killed", "the share of mutants killed"},
                                                                   {"NC", "NC"},
                                                                   {"KMNC", "KMNC"},
                                                                   {"NBC", "NBC"},
                                                                   {"TKNC", "TKNC"},
                                                                   {"tests", "the number of tests"}};

/// A figure of every network's sets beside the faults that they find.
struct Figure {
  std::string name, words;
  std::vector<std::vector<double>> values, found;  ///< by network

  /// The mean over networks of the rank correlation of some sets; networks that do not have the figure are left out.
  double agreement(std::span<const size_t> sets) const {
    double sum = 0;
    int64_t count = 0;
    std::vector<double> a(sets.size()), b(sets.size());
    for (size_t n = 0; n < values.size(); ++n) {
      for (size_t i = 0; i < sets.size(); ++i) a[i] = values[n][sets[i]], b[i] = found[n][sets[i]];
      if (const double rho = stats::rank_correlation(a, b); std::isfinite(rho)) sum += rho, ++count;
    }
    return count > 0 ? sum / double(count) : NAN;
  }
};

std::vector<Figure> figures_of(const Json& networks) {
  std::vector<Figure> figures;
  for (const auto& [name, words] : kFigures) {
    Figure figure{name, words, {}, {}};
    for (const Json& network : networks) {
      std::vector<double> values, found;
      for (const Json& row : network["sets"])
        if (row.contains(name) && row[name].is_number())
          values.push_back(row[name]), found.push_back(row["faults_found"]);
      if (values.size() < 4 || values.size() != network["sets"].size()) continue;
      figure.values.push_back(values), figure.found.push_back(found);
    }
    if (!figure.values.empty()) figures.push_back(std::move(figure));
  }
  return figures;
}

/// Spearman's rank correlation of each figure with faults found, over the sets of one network.
Json correlations(const Json& network) {
  Json out = Json::object();
  for (const Figure& figure : figures_of(Json::array({network}))) {
    std::vector<size_t> all(figure.values[0].size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = i;
    const double rho = figure.agreement(all);
    out[figure.name] = std::isfinite(rho) ? Json(rho) : Json(nullptr);
  }
  return out;
}

/// Each figure's mean over networks with its interval, and which of them is the best, as far as these sets can tell.
struct Answer {
  Json json = Json::object();
  std::string text;
};
Answer answer(const Json& networks, uint64_t seed) {
  Answer out;
  const std::vector<Figure> figures = figures_of(networks);
  const size_t sets = figures.empty() ? 0 : figures[0].values[0].size();
  auto number = [](double x) { return std::isfinite(x) ? Json(x) : Json(nullptr); };
  auto interval = [](const stats::Estimate& e) {
    return std::isfinite(e.low) ? fmt::format("{:.2f} ({:.2f} to {:.2f})", e.value, e.low, e.high)
                                : fmt::format("{:.2f}", e.value);
  };
  const Figure* best = nullptr;
  stats::Estimate best_rho{-2, 0, 0};
  Table table({"figure", "mean rank correlation with planted faults found"});
  for (const Figure& figure : figures) {
    const stats::Estimate rho =
        stats::bootstrap(int64_t(sets), seed, [&](std::span<const size_t> drawn) { return figure.agreement(drawn); });
    out.json[figure.name] = {{"value", number(rho.value)}, {"low", number(rho.low)}, {"high", number(rho.high)}};
    if (!std::isfinite(rho.value)) continue;
    table.row({figure.words, interval(rho)});
    if (rho.value > best_rho.value) best = &figure, best_rho = rho;
  }
  if (!best) return out;
  std::vector<std::string> behind, level;
  for (const Figure& figure : figures) {
    if (&figure == best) continue;
    const stats::Estimate ahead = stats::bootstrap(int64_t(sets), seed, [&](std::span<const size_t> drawn) {
      return best->agreement(drawn) - figure.agreement(drawn);
    });
    (ahead.low > 0 ? behind : level).push_back(figure.words);
  }
  out.text = "## Which figure predicts that tests find faults?\n\n" + table.text();
  const std::string over =
      fmt::format("Over {} sets of tests of {} network{}", sets, networks.size(), networks.size() == 1 ? "" : "s");
  if (best_rho.low > 0)
    out.text +=
        fmt::format("{}, {} goes with the faults found most closely: {}.", over, best->words, interval(best_rho));
  else
    out.text += fmt::format("{}, no figure goes with the faults found beyond chance; the highest is {}: {}.", over,
                            best->words, interval(best_rho));
  if (!behind.empty()) out.text += " It is ahead beyond chance of " + join(behind, ", ") + ".";
  if (!level.empty()) out.text += " Not to be told apart from it on these sets: " + join(level, ", ") + ".";
  out.text += "\n";
  out.json["best"] = best->name;
  return out;
}

std::string text_of(const Json& networks) {
  std::string text = "# Scores of sets of tests\n\n";
  for (const Json& network : networks) {
    text += fmt::format(
        "## {}\n\n| tests | inputs | mutation score | mutants killed | NC | KMNC | NBC | TKNC | planted faults found "
        "|\n"
        "|---|---|---|---|---|---|---|---|---|\n",
        network["network"].get<std::string>());
    for (const Json& row : network["sets"]) {
      text +=
          fmt::format("| {} | {} | {:.1f} % | {:.1f} % |", row["set"].get<std::string>(), row["tests"].get<int64_t>(),
                      100 * row["mutation_score"].get<double>(), 100 * row["killed"].get<double>());
      for (const std::string& name : kCriteria)
        text += row.contains(name) && row[name].is_number() ? fmt::format(" {:.1f} % |", 100 * row[name].get<double>())
                                                            : " – |";
      text += fmt::format(" {:.1f} % |\n", 100 * row["faults_found"].get<double>());
    }
    text += "\nSpearman's rank correlation with faults found:";
    for (const auto& [name, rho] : network["correlations"].items())
      text += fmt::format(" {} {},", name, rho.is_number() ? fmt::format("{:.2f}", rho.get<double>()) : "–");
    text.back() = '\n';
    text += "\n";
  }
  return text;
}

}  // namespace

Json run_scores_study(const StudyContext& context, const ScoresRequest& request) {
  make_folders(context.folder);
  trials::Store store(context.folder + "/trials.db", "mutation-scores", kScoresVersion);
  for (const std::string& network : request.models) run_network(context, store, network, request);
  Json networks = Json::array();
  for (const std::string& network : request.models) {
    const std::string prefix = prefix_of(context, network, request) + "|";
    Json rows = Json::array();
    for (const auto& [key, text] : store.all())
      if (key.starts_with(prefix)) rows.push_back(Json(trials::trial_document(key, text).json()));
    networks.push_back({{"network", network}, {"sets", rows}, {"correlations", Json::object()}});
    networks.back()["correlations"] = correlations(networks.back());
  }
  const Answer best = answer(networks, context.seed);
  Json json = {{"networks", networks}, {"mean_correlations", best.json}};
  json["sensitivity"] = run_sensitivity(context, request);
  json["text"] = text_of(networks) + best.text + sensitivity_text(json["sensitivity"]);
  write_trials(store, context.folder + "/trials.csv");
  write_file(context.folder + "/mutation-scores.md", json["text"].get<std::string>());
  write_file(context.folder + "/mutation-scores.json", json_text(json, 2));
  return json;
}

}  // namespace netmend::studies
