// netmend next: which unlabelled inputs to label first. By how unsure the answers are, by how far inputs are from what
// is known, by how surprising they are, or by one unit that tests never drive high.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "adequacy/learn.h"
#include "base/error.h"
#include "base/file.h"
#include "base/pool.h"
#include "base/run_folder.h"
#include "base/text.h"
#include "executor/runtime.h"
#include "localise/candidates.h"
#include "netmend/show.h"
#include "observers/coverage/criteria.h"
#include "observers/coverage/traces.h"
#include "observers/top_predictions.h"
#include "observers/sample_table.h"
#include "observers/surprise/distance.h"
#include "selection/core_set.h"
#include "selection/priority.h"
#include "stream/layers.h"

namespace netmend::app {
namespace {

using observers::TopRow;
using observers::SampleRow;

const std::vector<std::string> kMethods = {"gini", "margin", "entropy", "max-p", "mcp", "coreset", "surprise"};

/// A folder alone is a folder of pictures.
std::string pool_spec(const std::string& pool) {
  std::error_code error;
  if (!std::filesystem::is_directory(pool, error)) return pool;
  return "images:" + (pool.ends_with("/") && pool.size() > 1 ? pool.substr(0, pool.size() - 1) : pool);
}

/// What a pass over some data shows.
struct Seen {
  std::vector<TopRow> likely;  ///< where answers are classes
  std::vector<SampleRow> rows;
  observers::UnitBatch values;  ///< of the layer that is looked at, where one is
  double seconds = 0;
};

/// `space` may be empty: then no values are kept; else those of every n-th input.
Seen look(const Common& common, const Judged& judged, const observers::SpacePtr& space, int64_t stride, bool classes) {
  observers::Predictions watch(judged.settings, true);
  observers::TopPredictions likely(judged.settings);
  std::vector<const stream::Observer*> all{&watch};
  std::optional<observers::Criteria> criteria;
  if (space) {
    auto traces =
        std::make_shared<observers::Traces>(space, 0, space->layers().size(), judged.subject.data->size(), stride);
    criteria.emplace(judged.settings, space, observers::Criteria::List{traces});
    all.push_back(&*criteria);
  }
  if (classes) all.push_back(&likely);
  stream::PassResult pass = stream::run_pass(judged.subject, all, pass_options(common));
  if (pass.interrupted) throw Interrupted();
  Seen seen;
  auto state = pass.collected[0].fold(watch);
  seen.rows = std::move(dynamic_cast<observers::PredictionState&>(*state).rows);
  if (criteria) {
    auto kept = pass.collected[1].fold(*criteria);
    auto& tally = *dynamic_cast<observers::CriteriaState&>(*kept).tallies[0];
    seen.values = std::move(dynamic_cast<observers::TraceTally&>(tally).kept);
  }
  if (classes) {
    auto rows = pass.collected.back().fold(likely);
    seen.top = std::move(dynamic_cast<observers::TopState&>(*rows).rows);
  }
  seen.seconds = pass.seconds;
  return seen;
}

at::Tensor as_tensor(const observers::UnitBatch& batch) {
  return at::from_blob(const_cast<float*>(batch.values.data()), {batch.count(), batch.units}, at::kFloat);
}

/// Other data of the same model: training inputs, or the tests there are.
Judged open_other(const Common& common, const NextOptions& options, const Case& about, const dataset::Spec& spec) {
  Common silent = common;
  silent.quiet = true;  // what the model is fed with was told already
  auto data = open_data(silent, spec, about.judged.subject.graph, about.config);
  Judged judged = make_judged(silent, about.judged.subject.model_name, about.judged.subject.graph, data,
                              options.output.empty() ? about.config.output : options.output, about.config.overrides);
  CaseOptions all = options;
  all.limit = 0;  // --limit is about the pool
  Case other{about.config, spec, data, std::move(judged)};
  other.judged.subject.data = plan_pass(common, all, other).data;
  return std::move(other.judged);
}

std::optional<dataset::Spec> train_spec(const NextOptions& options, const Config& config) {
  if (!options.train.empty()) return dataset::parse_spec(options.train);
  if (!options.data.empty() && options.test.empty())
    if (auto splits = dataset::parse_splits(options.data); splits.train) return splits.train;
  if (options.data.empty() && options.test.empty() && !config.train.empty()) return dataset::parse_spec(config.train);
  return {};
}

std::optional<dataset::Spec> tests_spec(const NextOptions& options, const Config& config) {
  if (options.data.empty() && options.test.empty() && config.test.empty()) return {};
  return test_spec(options.data, options.test, config);
}

/// What was chosen, most useful first, and how.
struct Choice {
  std::vector<size_t> order;   ///< positions in the pool; all of it, or the chosen alone
  std::vector<double> scores;  ///< one a position of the pool; NaN where there is none
  std::string score_name, words;
  bool whole = true;  ///< the order is one of the whole pool
  Json facts = Json::object();
};

bool has_classes(const Case& about) {
  const auto& settings = about.judged.settings;
  if (settings.by_class()) return true;
  if (settings.task != observers::Task::kNone) return false;
  return settings.outputs > 1 || about.config.overrides.kind == "binary" ||
         settings.head.output_kind != executor::OutputKind::kLogits;
}

std::vector<model::Layer> hidden_layers(const NextOptions& options, const Judged& judged) {
  return localise::candidates(stream::find_layers(judged.subject), judged.subject.graph, judged.settings.head,
                              judged.settings.outputs, options.layers);
}

void require_room(const observers::UnitSpace& space, int64_t inputs, const std::string& what) {
  const double room = double(executor::memory_budget()) / 4;
  if (adequacy::stride_for(space, 0, inputs, room) > 1)
    throw InputError(fmt::format("the values of {} {} take more than {}", with_commas(inputs), what, bytes_text(room)),
                     "--limit N takes fewer, --memory allows more.");
}

/// By how far inputs are from all that is known, or by how surprising they are.
Choice by_values(const Common& common, const NextOptions& options, const Case& about, Seen& seen, bool classes) {
  std::vector<model::Layer> layers = hidden_layers(options, about.judged);
  auto space = observers::make_unit_space(about.judged.subject, {layers.back()}, {});
  require_room(*space, about.judged.subject.data->size(), "inputs of the pool");
  const bool surprise = options.method == "surprise";
  std::optional<dataset::Spec> spec = train_spec(options, about.config);
  if (surprise && !spec)
    throw InputError("--method surprise compares with training data, and none is given", "Add --train SPEC.");
  if (!spec) spec = tests_spec(options, about.config);
  seen = look(common, about.judged, space, 1, classes);
  Seen known;
  Choice choice;
  if (spec) {
    Judged other = open_other(common, options, about, *spec);
    int64_t stride = adequacy::stride_for(*space, 0, other.subject.data->size(), double(executor::memory_budget()) / 4);
    known = look(common, other, space, stride, false);
    choice.facts["known"] = known.values.count();
    choice.facts["known_data"] = dataset::spec_text(*spec);
    if (surprise) {
      const auto count = int64_t(other.settings.classes.size());
      observers::ClassTraces training = observers::sort_by_class(known.values, count, false);
      choice.scores = observers::DistanceSurprise(training).scores(observers::sort_by_class(seen.values, count, false),
                                                                   common.jobs);
    }
  }
  choice.facts["layer"] = layers.back().name;
  if (surprise) {
    choice.score_name = "surprise";
    choice.words = fmt::format("the most surprising by {}, against {} training inputs", layers.back().name,
                               with_commas(known.values.count()));
    choice.order.resize(choice.scores.size());
    std::iota(choice.order.begin(), choice.order.end(), 0);
    auto key = [&](size_t i) { return std::isnan(choice.scores[i]) ? INFINITY : choice.scores[i]; };
    std::stable_sort(choice.order.begin(), choice.order.end(), [&](size_t a, size_t b) { return key(a) > key(b); });
    return choice;
  }
  choice.order =
      selection::core_set(as_tensor(seen.values), known.values.count() > 0 ? as_tensor(known.values) : at::Tensor(),
                          options.count, common.jobs);
  choice.whole = false;
  choice.words =
      fmt::format("each the farthest by {} from {}", layers.back().name,
                  spec ? fmt::format("{} known inputs and those chosen before", with_commas(known.values.count()))
                       : std::string("those chosen before"));
  return choice;
}

/// Inputs that drive one unit above what tests reach.
Choice by_unit(const Common& common, const NextOptions& options, const Case& about, Seen& seen, bool classes) {
  std::string name = options.on.starts_with("unit=") ? options.on.substr(5) : "";
  size_t slash = name.rfind('/');
  if (slash == std::string::npos)
    throw InputError(fmt::format("--on {}: not understood", printable(options.on)),
                     "Give unit=LAYER/NUMBER, such as unit=conv1/7.");
  std::vector<model::Layer> layers = stream::find_layers(about.judged.subject);
  auto all = observers::UnitSpace(layers);
  size_t place = all.find(name.substr(0, slash));
  int64_t unit = -1;
  if (!parse_int(name.substr(slash + 1), unit) || unit < 0 || unit >= layers[place].units)
    throw InputError(fmt::format("--on {}: layer {} has no such unit", printable(options.on), layers[place].name),
                     fmt::format("Its units are {0}/0 to {0}/{1}.", layers[place].name, layers[place].units - 1));
  auto space = observers::make_unit_space(about.judged.subject, {layers[place]}, {});
  require_room(*space, about.judged.subject.data->size(), "inputs of the pool");
  seen = look(common, about.judged, space, 1, classes);
  Choice choice;
  choice.score_name = "value";
  for (int64_t i = 0; i < seen.values.count(); ++i) choice.scores.push_back(seen.values.input(i)[unit]);
  choice.order.resize(choice.scores.size());
  std::iota(choice.order.begin(), choice.order.end(), 0);
  auto key = [&](size_t i) { return std::isnan(choice.scores[i]) ? -INFINITY : choice.scores[i]; };
  std::stable_sort(choice.order.begin(), choice.order.end(), [&](size_t a, size_t b) { return key(a) > key(b); });
  choice.facts["unit"] = name;
  choice.words = fmt::format("those that drive {} highest", name);
  if (std::optional<dataset::Spec> spec = tests_spec(options, about.config)) {
    Judged tests = open_other(common, options, about, *spec);
    require_room(*space, tests.subject.data->size(), "tests");
    Seen reached = look(common, tests, space, 1, false);
    double highest = -INFINITY;
    for (int64_t i = 0; i < reached.values.count(); ++i)
      if (double value = reached.values.input(i)[unit]; std::isfinite(value)) highest = std::max(highest, value);
    auto above = std::count_if(choice.scores.begin(), choice.scores.end(), [&](double v) { return v > highest; });
    choice.facts["tests_reach"] = std::isfinite(highest) ? Json(highest) : Json(nullptr);
    choice.facts["above"] = above;
    choice.words +=
        fmt::format("; {} of {} go above what {} tests reach ({:.4g})", with_commas(above),
                    with_commas(int64_t(choice.scores.size())), with_commas(reached.values.count()), highest);
  }
  return choice;
}

Choice by_answers(const NextOptions& options, const Seen& seen) {
  Choice choice;
  choice.order = selection::prioritise(seen.top, options.method, options.count);
  choice.score_name = options.method == "mcp" ? "ratio" : options.method;
  choice.words = "least sure, spread over the borders between classes";
  for (const selection::Score& score : selection::scores())
    if (score.name == options.method) choice.words = "least sure first: " + std::string(score.words);
  for (const TopRow& row : seen.top) {
    double value = row.probabilities[0] > 0 ? row.probabilities[1] / row.probabilities[0] : 0;
    for (const selection::Score& score : selection::scores())
      if (score.name == options.method) value = score.of(row);
    choice.scores.push_back(options.method == "margin" ? -value : value);
  }
  return choice;
}

std::string answer_of(const Judged& judged, const Seen& seen, size_t i) {
  if (!seen.top.empty()) {
    int32_t c = seen.top[i].classes[0];
    return c < 0                                        ? ""
           : judged.settings.classes.size() > size_t(c) ? judged.settings.classes[size_t(c)]
                                                        : std::to_string(c);
  }
  return std::isnan(seen.rows[i].predicted) ? "" : fmt::format("{:.6g}", seen.rows[i].predicted);
}

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

void write_chosen(const std::string& path, const Judged& judged, const Seen& seen, const Choice& choice, size_t count) {
  using observers::csv_field;
  const dataset::Dataset& data = *judged.subject.data;
  write_file(path, [&](std::ostream& out) {
    out << "rank,sample,id,answer" << (seen.top.empty() ? "" : ",confidence,second,second_confidence")
        << (choice.scores.empty() ? "" : "," + choice.score_name) << "\n";
    for (size_t rank = 0; rank < count; ++rank) {
      size_t i = choice.order[rank];
      out << rank + 1 << "," << seen.rows[i].sample << "," << csv_field(data.id(seen.rows[i].sample)) << ","
          << csv_field(answer_of(judged, seen, i));
      if (!seen.top.empty()) {
        const TopRow& row = seen.top[i];
        const auto& names = judged.settings.classes;
        std::string second = row.classes[1] < 0                      ? ""
                             : size_t(row.classes[1]) < names.size() ? names[size_t(row.classes[1])]
                                                                     : std::to_string(row.classes[1]);
        out << fmt::format(",{:.6g},{},{:.6g}", row.probabilities[0], csv_field(second), row.probabilities[1]);
      }
      if (!choice.scores.empty())
        out << "," << (std::isfinite(choice.scores[i]) ? fmt::format("{:.6g}", choice.scores[i]) : "");
      out << "\n";
    }
  });
}

}  // namespace

int next(const Common& common, const NextOptions& asked) {
  NextOptions options = asked;
  options.method = lower(options.method);
  if (std::find(kMethods.begin(), kMethods.end(), options.method) == kMethods.end())
    throw InputError(
        fmt::format("--method {}: not understood{}", printable(asked.method), did_you_mean(options.method, kMethods)),
        "There are " + join(kMethods, ", ") + ".");
  if (!options.product.empty()) require_writable(options.product);
  CaseOptions pool = options;
  pool.data.clear();
  pool.test = pool_spec(options.pool);
  Case about = open_case(common, pool);
  const bool classes = has_classes(about);
  const bool unit = !options.on.empty(), values = options.method == "coreset" || options.method == "surprise";
  if (!classes && !unit && options.method != "coreset")
    throw InputError(fmt::format("--method {} needs answers that are classes", options.method),
                     "--method coreset and --on unit=LAYER/NUMBER work for any model.");
  checkup::Preflight preflight = examine(common, pool, about);
  if (!common.json) print_preflight(preflight, about.judged.settings.metric);
  if (preflight.blocker && !options.anyway) {
    if (common.json)
      print_json({{"preflight", preflight_json(preflight)},
                  {"findings", Json::array({blocker_json(*preflight.blocker, "netmend next")})}});
    return 1;
  }
  Judged& judged = about.judged;
  // Data without labels has no names for classes; netmend.toml may.
  if (judged.settings.task == observers::Task::kNone && about.config.classes.size() == judged.settings.classes.size())
    judged.settings.classes = about.config.classes;
  judged.subject.data = plan_pass(common, pool, about).data;
  Seen seen;
  if (!unit && !values) seen = look(common, judged, nullptr, 1, true);
  Choice choice = unit     ? by_unit(common, options, about, seen, classes)
                  : values ? by_values(common, options, about, seen, classes)
                           : by_answers(options, seen);

  const dataset::Dataset& data = *judged.subject.data;
  const size_t count = std::min(choice.order.size(), size_t(options.count));
  std::vector<bool> fails;
  int64_t failing = 0, chosen_failing = 0;
  bool labelled = false;
  for (const SampleRow& row : seen.rows) {
    fails.push_back(row.right == SampleRow::kWrong);
    failing += fails.back();
    labelled = labelled || row.right != SampleRow::kNotJudged;
  }
  for (size_t rank = 0; rank < count; ++rank) chosen_failing += fails[choice.order[rank]];
  std::optional<double> early;
  if (labelled && choice.whole) early = selection::apfd(choice.order, fails);

  RunFolder folder(common.out, "next", common.arguments);
  write_chosen(folder.file("chosen.csv"), judged, seen, choice, count);
  if (!options.product.empty()) write_chosen(options.product, judged, seen, choice, count);
  Json json = {{"method", unit ? "unit" : options.method},
               {"pool", data.info().spec},
               {"inputs", data.size()},
               {"chosen", Json::array()}};
  for (size_t rank = 0; rank < count; ++rank) {
    size_t i = choice.order[rank];
    Json row = {
        {"sample", seen.rows[i].sample}, {"id", data.id(seen.rows[i].sample)}, {"answer", answer_of(judged, seen, i)}};
    if (!seen.top.empty()) row["confidence"] = number(seen.top[i].probabilities[0]);
    if (!choice.scores.empty()) row["score"] = number(choice.scores[i]);
    json["chosen"].push_back(row);
  }
  json.update(choice.facts);
  if (labelled) {
    json["wrong"] = failing;
    json["chosen_wrong"] = chosen_failing;
    json["apfd"] = early ? Json(*early) : Json(nullptr);
    json["apfd_random"] = 0.5;
  }
  json["model"] = judged.subject.model_name;
  json["preflight"] = preflight_json(preflight);
  json["run"] = folder.path();
  json["seconds"] = seen.seconds;
  write_file(folder.file("next.json"), json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  folder.note_file(judged.subject.model_name);
  for (const std::string& file : data.info().files) folder.note_file(file);
  folder.note("data", data.info().spec);
  folder.finish(common.seed, seen.seconds, 0);
  if (common.json) return print_json(json), 0;

  fmt::print("{}  on {}, {} inputs to choose from\n", judged.subject.model_name, data.info().spec,
             with_commas(data.size()));
  fmt::print("  {}\n", choice.words);
  if (labelled && failing > 0) {
    fmt::print("  the pool has labels: {} of {} chosen are wrong, at random it would be {:.1f}", chosen_failing, count,
               double(count) * double(failing) / double(data.size()));
    if (early) fmt::print("; APFD {:.3f}, in random order 0.5", *early);
    fmt::print("\n");
  }
  fmt::print("\n");
  size_t width = 2;
  for (size_t rank = 0; rank < count; ++rank)
    width = std::max(width, printable(data.id(seen.rows[choice.order[rank]].sample)).size());
  for (size_t rank = 0; rank < std::min<size_t>(count, 20); ++rank) {
    size_t i = choice.order[rank];
    fmt::print("  {:>4}  {:<{}}  {}", rank + 1, printable(data.id(seen.rows[i].sample)), width,
               printable(answer_of(judged, seen, i)));
    if (!seen.top.empty()) fmt::print(" {:.1f} %", 100 * seen.top[i].probabilities[0]);
    if (!choice.scores.empty() && std::isfinite(choice.scores[i]))
      fmt::print("  {} {:.4g}", choice.score_name, choice.scores[i]);
    fmt::print("\n");
  }
  if (count > 20) fmt::print("  … and {} more\n", count - 20);
  fmt::print("\n  chosen: {}\n", options.product.empty() ? folder.file("chosen.csv") : options.product);
  return 0;
}

}  // namespace netmend::app
