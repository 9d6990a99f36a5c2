#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/escape.h"
#include "base/text.h"
#include "edits/operations.h"
#include "edits/outlying_biases.h"
#include "executor/layers.h"
#include "findings/phrases.h"
#include "localise/ablation.h"
#include "localise/candidates.h"
#include "observers/metrics.h"
#include "preflight/examination.h"
#include "preflight/running_statistics.h"
#include "preflight/setup_search.h"
#include "preflight/setups.h"
#include "session/session.h"
#include "session/split.h"
#include "session/toml_edit.h"
#include "stream/layers.h"
#include "stream/match.h"
#include "stream/reference.h"
#include "whatif/whatif.h"

namespace netmend::preflight {
namespace {

using dataset::Batch;
using observers::PredictionSettings;
using observers::SampleRow;
using observers::Task;

constexpr double kLittleWork = 5e10;  ///< multiply-adds: about two seconds on two cores
constexpr double kNearly = 0.8;     ///< of the failures that another set-up removes: then damage explains them as well
constexpr double kMostWork = 4e11;  ///< that trying set-ups may take when nothing is suspicious

class Examination {
 public:
  Examination(const stream::Subject& subject, const PredictionSettings& settings, const Expected& expected,
              const PreflightOptions& options)
      : trial_(subject, settings, options.jobs),
        subject_(subject),
        settings_(settings),
        expected_(expected),
        options_(options) {}

  Preflight run() {
    std::vector<at::Tensor> values = trial_.answers(trial_.first, {settings_.head.output, trial_.wanted()});
    result_.inputs = trial_.first.count();
    result_.lines.push_back({batching_text()});
    look_at_outputs(values[0], values[1]);
    if (result_.blocker) return result_;
    look_at_running_statistics();
    if (settings_.task == Task::kNone) return without_labels();
    trial_.asis = judge(settings_, values[1], trial_.first);
    result_.tried.push_back({"", "as it is", "", figure(settings_, trial_.asis)});
    if (as_expected()) return result_;
    if (!expected_met_ || suspicious() || (options_.free ? affordable() : worth_a_look())) try_setups();
    if (!result_.blocker) conclude();
    return result_;
  }

 private:
  std::string batching_text() const {
    using executor::Batching;
    const Batching& batching = subject_.batching;
    return batching.kind == Batching::kAny     ? "batch size: any"
           : batching.kind == Batching::kFixed ? fmt::format("batch size: {}", batching.size)
                                               : "batch size: one input at a time";
  }

  // ---- what the outputs are ----

  void look_at_outputs(const at::Tensor& output, const at::Tensor& logits) {
    at::Tensor columns = observers::as_columns(output.to(at::kDouble)),
               inside = observers::as_columns(logits.to(at::kDouble));
    if (!columns.isfinite().all().item<bool>()) {
      int64_t broken = (~columns.isfinite().all(1)).sum().item<int64_t>();
      result_.lines.push_back(
          {fmt::format("predictions that are NaN or Inf: {} of {}", broken, columns.size(0)), false});
      return;
    }
    using executor::OutputKind;
    const bool several = settings_.task == Task::kClasses || (settings_.task == Task::kNone && settings_.outputs > 1);
    const bool distribution = observers::look_like_probabilities(columns);
    if (several && settings_.head.output_kind == OutputKind::kProbabilities &&
        settings_.head.logits != settings_.head.output && observers::look_like_probabilities(inside))
      return softmax_twice();
    const bool says_logits = expected_.output_kind == "logits",
               says_probabilities = expected_.output_kind == "probabilities",
               says_logarithms = expected_.output_kind == "log-probabilities";
    const std::string name = trial_.value_name(settings_.head.output);
    const double least = columns.min().item<double>(), most = columns.max().item<double>();
    const bool logarithms = looks_like_log_probabilities(columns);
    const char* found = several                   ? (distribution ? "probabilities"
                                                     : logarithms ? "log-probabilities"
                                                                  : "logits")
                        : least >= 0 && most <= 1 ? "probabilities"
                                                  : "logits";
    if (several && says_logits && distribution)
      return block(
          "output-kind", name, "The outputs are probabilities, not logits.",
          fmt::format("model.output_kind says logits, but on {} inputs no output is negative and each row sums to 1; "
                      "a second softmax would flatten them",
                      columns.size(0)),
          "model = { output_kind = \"probabilities\" }");
    if (settings_.task == Task::kBinary && says_logits && settings_.head.output_kind != OutputKind::kLogits)
      return block("output-kind", name, "The output is a probability, not a logit.",
                   fmt::format("model.output_kind says logits, but on {} inputs it goes from {} to {}", columns.size(0),
                               findings::plain(least), findings::plain(most)),
                   "model = { output_kind = \"probabilities\" }");
    const bool in_range = least >= 0 && most <= 1;
    if (says_probabilities && (several ? !distribution : !in_range) && settings_.task != Task::kNumber)
      return block("output-kind", name, "The outputs are not probabilities.",
                   fmt::format("model.output_kind says probabilities, but outputs go from {} to {}",
                               findings::plain(least), findings::plain(most)),
                   fmt::format("model = {{ output_kind = \"{}\" }}", found));
    if (says_logarithms && !logarithms && settings_.task != Task::kNumber)
      return block("output-kind", name, "The outputs are not log-probabilities.",
                   fmt::format("model.output_kind says log-probabilities, but outputs go from {} to {}, and their "
                               "exponentials do not sum to 1",
                               findings::plain(least), findings::plain(most)),
                   fmt::format("model = {{ output_kind = \"{}\" }}", found));
    if (settings_.task != Task::kNumber) result_.lines.push_back({fmt::format("outputs: {}", output_kind_of(columns))});
  }

  void softmax_twice() {
    std::string before;
    std::vector<int> made_by = model::producers(subject_.graph);
    model::ValueId at = settings_.head.output;
    int softmaxes = 0;
    while (made_by[size_t(at)] >= 0 && before.empty()) {
      const model::Node& node = subject_.graph.nodes[size_t(made_by[size_t(at)])];
      if (node.op == "Softmax" && ++softmaxes == 2) break;
      if (node.op != "Softmax" && node.op != "Identity" && node.op != "Cast") break;
      at = node.inputs[0];
      if (softmaxes == 1 && node.op == "Softmax") before = trial_.value_name(at);
    }
    block("double-softmax", trial_.value_name(settings_.head.output), "Softmax is applied twice.",
          fmt::format("The input of the last softmax before `{}` is already a distribution over the classes, so no "
                      "confidence can exceed about {:.1f} %",
                      trial_.value_name(settings_.head.output),
                      100 * std::exp(1.0) / (std::exp(1.0) + double(settings_.outputs) - 1)),
          before.empty() ? ""
                         : fmt::format("model = {{ output = {}, output_kind = \"probabilities\" }}",
                                       session::toml_string(before)));
  }

  // ---- running statistics of the first batch normalisation ----

  void look_at_running_statistics() {
    statistics_ = find_running_statistics(subject_.graph, settings_.head.output);
    if (!statistics_) return;
    distance_ = distance(trial_.first);
    statistics_match_ = distance_ < 1;
    result_.lines.push_back(
        {statistics_match_ ? "inputs match the running statistics of the first batch normalisation"
                           : fmt::format("inputs do not match the running statistics of the first batch normalisation: "
                                         "{:.1f} standard deviations off",
                                         distance_),
         statistics_match_});
  }

  double distance(const Batch& batch) const {
    return statistics_distance(*statistics_, trial_.answers(batch, {statistics_->input})[0]);
  }

  Preflight without_labels() {
    result_.lines.push_back({"no labels: predictions cannot be judged"});
    if (statistics_match_) return result_;
    const std::string input = trial_.input_name();
    for (const Setup& setup : scalings(subject_.data->info(), trial_.first)) {
      Batch changed = trial_.first;
      setup.apply(changed);
      double now = distance(changed);
      if (now < 0.25 && now < 0.2 * distance_)
        block("preprocessing", setup.about, "The inputs are probably not preprocessed as in training.",
              fmt::format("The inputs are {:.1f} standard deviations away from the running statistics of the first "
                          "batch normalisation; with the set-up \"{}\" they are {:.2f} away",
                          distance_, setup.words, now),
              input_line(input, merged(subject_.data->info(), {setup}).value_or(Options{})));
      if (result_.blocker) return result_;
    }
    return result_;
  }

  // ---- accuracy ----

  /// The user's metric on as many inputs as a little work allows; on all of them for most networks.
  stats::Estimate metric_on(const dataset::Dataset& data, int64_t& count) const {
    count = std::min(data.size(), std::max<int64_t>(2 * Trial::kInputs, int64_t(kLittleWork / subject_.cost)));
    std::vector<int64_t> samples = stream::spread(data.size(), count, 0.5);
    observers::Predictions observer(settings_, false);
    observers::PredictionState state(observer.settings(), false);
    for (int64_t first = 0; first < count; first += Trial::kInputs) {
      Batch batch =
          data.read(std::span(samples).subspan(size_t(first), size_t(std::min(Trial::kInputs, count - first))));
      at::Tensor values = trial_.answers(batch, {trial_.wanted()})[0];
      state.observe({batch, [&](model::ValueId) -> const at::Tensor& { return values; }});
    }
    return observers::measure(observer.settings(), state).at(0).estimate;
  }

  /// Twice the interval, since with many models to check 95 % would raise too many false alarms; none of it where all
  /// of the data was looked at. Half a point for what rounds differently.
  bool meets(const stats::Estimate& now, int64_t count, int64_t size) const {
    double unseen = 2 * std::sqrt(1 - double(count) / double(size));
    double slack = observers::is_error(settings_.metric) ? 0.02 * now.value : 0.005;
    return expected_.metric >= now.value - unseen * (now.value - now.low) - slack &&
           expected_.metric <= now.value + unseen * (now.high - now.value) + slack;
  }

  std::string metric_text(double value) const {
    bool plain = settings_.metric == "auc" || observers::is_error(settings_.metric);
    return plain ? fmt::format("{} {:.4g}", settings_.metric, value)
                 : fmt::format("{} {:.1f} %", settings_.metric, 100 * value);
  }

  bool as_expected() {
    if (expected_.metric < 0) return false;
    int64_t count = 0;
    stats::Estimate now = metric_on(*subject_.data, count);
    result_.looked.push_back({"preflight: the expected metric", count});
    expected_met_ = meets(now, count, subject_.data->size());
    found_instead_ = fmt::format("{} was expected, but {} was found on {}", metric_text(expected_.metric),
                                 metric_text(now.value), findings::counted(count, "input"));
    if (expected_met_) result_.lines.push_back({fmt::format("{} as expected", metric_text(now.value))});
    return expected_met_;
  }

  std::string output_kind_of(const at::Tensor& columns) const {
    if (settings_.head.output_kind == executor::OutputKind::kProbabilities ||
        settings_.head.output_kind == executor::OutputKind::kSigmoid)
      return "probabilities";
    return looks_like_log_probabilities(columns) ? "log-probabilities" : "logits";
  }

  bool suspicious() const { return trial_.near_chance() || !statistics_match_; }

  bool affordable() {
    if (30 * double(Trial::kFirstLook) * subject_.cost <= kMostWork) return true;
    result_.lines.push_back(
        {"other set-ups were not tried, because this model is slow: set goal.expect in netmend.toml to be certain"});
    return false;
  }

  /// Fewer mistakes than a set-up must explain leave nothing to look for; slow networks only when something is odd.
  bool worth_a_look() {
    const bool sure_and_wrong = settings_.by_class() && mean_loss(trial_.asis) > 0.5 * uniform_loss(settings_);
    if (settings_.task != Task::kNumber && mean_error(settings_, trial_.asis) < 0.01 && !sure_and_wrong) return false;
    return affordable();
  }

  void try_setups() {
    if (!expected_met_ && expected_.metric >= 0) try_other_data();
    SearchOptions how{options_.free, kMostWork / 4, {}};
    if (statistics_) how.distance = [this](const Batch& batch) { return distance(batch); };
    Searched searched = search_setups(trial_, how);
    result_.tried.insert(result_.tried.end(), searched.tried.begin(), searched.tried.end());
    if (!searched.doubt.empty()) {
      result_.unknown = "how the inputs were preprocessed in training";
      result_.lines.push_back({searched.doubt, false});
      result_.rivals = searched.rivals;
    }
    if (!searched.instead.empty()) {
      put_aside_ = true;
      result_.lines.push_back({searched.instead});
    }
    if (!searched.blocker || result_.blocker) return;
    // Where the loss convinced and not the mistakes, a unit has nothing to explain; where nearly all mistakes go, no
    // damage was behind them; and where nobody said how inputs are prepared, that is likelier than damage.
    const bool by_mistakes = !options_.free && searched.blocker->id() == "preprocessing:scale" &&
                             settings_.by_class() && searched.removed * mean_error(settings_, trial_.asis) >= 0.05 &&
                             searched.removed < 0.75;
    put_aside_ = true;
    if (!options_.free && settings_.by_class() && putting_biases_back_does_away_with(kNearly * searched.removed)) {
      result_.lines.push_back(
          {"some biases are far from the others of their layer; resetting them removes about as many failures as "
           "different preprocessing would"});
      return;
    }
    if (by_mistakes && one_unit_does_away_with(kNearly * searched.removed)) {
      result_.lines.push_back({"ablating one unit removes about as many failures as different preprocessing would"});
      return;
    }
    if (by_mistakes && one_factor_does_away_with(kNearly * searched.removed)) {
      result_.lines.push_back(
          {"scaling one layer's weights removes about as many failures as different preprocessing would"});
      return;
    }
    put_aside_ = false;
    result_.blocker = std::move(searched.blocker);
    result_.lines.push_back({result_.blocker->title, false});
  }

  std::vector<model::Layer> find_layers() const {
    std::vector<model::Layer> layers =
        localise::candidates(stream::find_layers(subject_), subject_.graph, settings_.head, settings_.outputs);
    std::erase_if(layers, [](const model::Layer& layer) { return layer.merged != model::Merged::kNo; });
    return layers;
  }

  /// A bias that drives its unit whatever comes in: larger inputs drown it.
  bool putting_biases_back_does_away_with(double share) {
    std::vector<edits::Edit> all;
    for (const model::Layer& layer : find_layers())
      for (const edits::OutlyingBias& one : edits::find_outlying_biases(subject_.graph, layer))
        all.insert(all.end(), one.reset.begin(), one.reset.end());
    return !all.empty() && edits_do_away_with(share, {{std::move(all)}}, "biases reset");
  }

  /// A layer whose weights are all too large or too small: another scale of the inputs makes up for some of it. Of the
  /// first layer nobody can tell the two apart.
  bool one_factor_does_away_with(double share) {
    const std::vector<model::Layer> layers = find_layers();
    std::vector<whatif::Question> questions;
    for (size_t i = 1; i < layers.size(); ++i)
      for (double factor : {1. / 8, 1. / 5, 1. / 4, 1. / 2, 2., 4., 5., 8.})
        if (auto edits = edits::scale_layer(subject_.graph, layers[i], factor); !edits.empty())
          questions.push_back({std::move(edits)});
    return edits_do_away_with(share, questions, "layers scaled");
  }

  /// Whether the best of some edits removes that share of the failures.
  bool edits_do_away_with(double share, const std::vector<whatif::Question>& questions, const char* what) {
    if (subject_.batching.kind != executor::Batching::kAny) return false;
    try {
      const std::vector<model::Layer> layers = find_layers();
      if (questions.empty() || double(questions.size()) * double(Trial::kInputs) * subject_.cost > kLittleWork)
        return false;
      std::vector<int64_t> samples;
      for (const SampleRow& row : trial_.asis) samples.push_back(row.sample);
      std::sort(samples.begin(), samples.end());
      stream::Subject some = subject_;
      some.data = dataset::subset(subject_.data, samples);
      whatif::WhatIf whatif(some, settings_, layers, {options_.jobs});
      double most = 0;
      for (const whatif::Tally& tally : whatif::tally(whatif, settings_, questions))
        most = std::max(most, tally.accuracy());
      result_.looked.push_back({std::string("preflight: ") + what, int64_t(samples.size())});
      const double error = mean_error(settings_, trial_.asis);
      return most - (1 - error) >= share * error;
    } catch (const InputError&) {
      return false;
    }
  }

  /// A damaged unit makes a network do better with odd inputs too. Where ablating one unit (zero, mean, sign-flip or
  /// refit) does away with as large a share of the mistakes, the inputs are not to blame.
  bool one_unit_does_away_with(double share) {
    if (subject_.batching.kind != executor::Batching::kAny) return false;
    std::vector<int64_t> failing, passing;
    for (const observers::SampleRow& row : trial_.asis)
      (row.right == observers::SampleRow::kRight ? passing : failing).push_back(row.sample);
    if (failing.empty() || passing.empty()) return false;
    try {
      const std::vector<model::Layer> layers = find_layers();
      if (layers.empty()) return false;
      localise::AblationOptions how;
      Budget budget = Budget::of_work(kLittleWork);
      how.inputs = Trial::kInputs, how.jobs = options_.jobs, how.budget = &budget;
      const localise::Ablation found = localise::ablate(subject_, settings_, layers, failing, passing, how);
      result_.looked.push_back({"preflight: ablation of single units", found.inputs});
      const double most = found.right.empty() ? 0 : *std::max_element(found.right.begin(), found.right.end());
      return most >= share * (1 - found.accuracy);
    } catch (const InputError&) {
      return false;
    }
  }

  /// Only what was expected can tell one split from another.
  void try_other_data() {
    for (const OtherData& other : options_.others) {
      std::shared_ptr<const dataset::Dataset> data = other.open();
      int64_t count = 0;
      stats::Estimate now = metric_on(*data, count);
      result_.looked.push_back({"preflight: the expected metric on " + other.words, count, false});
      std::string about = settings_.metric == "accuracy" ? "" : fmt::format(" ({})", settings_.metric);
      result_.tried.push_back({"data", other.words + about, other.line, now});
      if (!meets(now, count, data->size()) || result_.blocker) continue;
      block("wrong-split", "test", "The expected metric was probably measured on other data.",
            fmt::format("{}; {} gives {}", found_instead_, other.words, metric_text(now.value)), other.line);
    }
  }

  void conclude() {
    stats::Estimate now = result_.tried[0].accuracy;
    if (!expected_met_ && expected_.metric >= 0)
      return block("expectation", settings_.metric, "The metric is not the expected one.",
                   found_instead_ + (put_aside_ ? "" : "; no common set-up explains it"), "");
    if (trial_.near_chance()) result_.unknown = "how the inputs were preprocessed in training";
    if (trial_.near_chance())
      result_.lines.push_back(
          {fmt::format("accuracy {} is not clearly above the majority class ({:.1f} %){}", figure_text(settings_, now),
                       100 * trial_.chance(), put_aside_ ? "" : "; no common set-up explains it"),
           false});
    else
      result_.lines.push_back({settings_.by_class()
                                   ? fmt::format("accuracy {}{} (majority class: {:.0f} %)",
                                                 figure_text(settings_, now), on_words(), 100 * trial_.chance())
                                   : figure_text(settings_, now) + on_words()});
  }

  /// How many inputs a figure is of, where they are not all.
  std::string on_words() const {
    const auto count = int64_t(trial_.asis.size());
    return count < subject_.data->size() ? fmt::format(" on {} inputs", with_commas(count)) : "";
  }

  void block(std::string kind, std::string where, std::string title, std::string evidence, std::string line) {
    result_.blocker =
        Blocker{std::move(kind), std::move(where), std::move(title), std::move(evidence), std::move(line), ""};
    result_.lines.push_back({result_.blocker->title, false});
  }

  Trial trial_;
  const stream::Subject& subject_;
  const PredictionSettings& settings_;
  const Expected& expected_;
  const PreflightOptions& options_;
  std::optional<RunningStatistics> statistics_;
  double distance_ = 0;
  bool statistics_match_ = true, expected_met_ = true;
  bool put_aside_ = false;     ///< a set-up that explains the failures as well as damage does
  std::string found_instead_;  ///< of what was expected
  Preflight result_;
};

}  // namespace

const std::vector<std::string>& blocker_kinds() {
  static const std::vector<std::string> kinds = {"preprocessing", "class-order",    "wrong-output", "wrong-split",
                                                 "output-kind",   "double-softmax", "expectation",  "reference"};
  return kinds;
}

Preflight examine(const stream::Subject& subject, const PredictionSettings& settings, const Expected& expected,
                  const PreflightOptions& options) {
  return Examination(subject, settings, expected, options).run();
}

namespace {

/// The splits that someone may have taken for each other.
std::vector<OtherData> other_splits(session::Session& session) {
  std::vector<OtherData> others;
  const dataset::Spec& own = session.test().spec;
  auto add = [&](const dataset::Spec& spec) {
    std::string text = dataset::spec_text(spec);
    if (text == dataset::spec_text(own)) return;
    others.push_back({fmt::format("data = {{ test = {} }}", session::toml_string(text)), text,
                      [&session, spec] { return session::open_data(spec, session.graph(), session.config()); }});
  };
  if (own.head.empty()) return others;  // data in memory
  if (own.is_name())
    for (const char* split : {"train", "test"}) {
      dataset::Spec spec = own;
      spec.rest = split;
      if (!(own.rest.empty() && spec.rest == "test")) add(spec);
    }
  else
    for (const std::string& text : {session.config().train, session.config().test})
      if (!text.empty()) add(dataset::parse_spec(text));
  return others;
}

/// Does the file predict as the framework did that trained it?
void look_at_reference(const session::Session& session, Preflight& preflight) {
  const std::string& path = session.config().reference;
  stream::Match match = stream::compare_with_reference(session.graph(), stream::read_reference(path), {});
  double most = 0;
  for (const stream::OutputMatch& output : match.outputs) most = std::max(most, output.difference.max);
  if (!match.matches && session.graph().metadata.count("netmend.repair")) {
    // The reference is of the model as it was: a repair that changed no output would be none.
    preflight.lines.push_back(
        {fmt::format("outputs differ from {} by up to {:.2g}: this model was repaired", path, most)});
    return;
  }
  preflight.lines.push_back(
      {fmt::format("outputs {} {} (largest difference {:.2g} on {})", match.matches ? "match" : "do not match", path,
                   most, findings::counted(match.inputs, "input")),
       match.matches});
  if (!match.matches && !preflight.blocker)
    preflight.blocker =
        Blocker{"reference",
                "outputs",
                "The outputs differ from those of the training framework.",
                fmt::format("{}; {} shows where they begin to differ", match.reason,
                            Shell::of("netmend match {} --reference {}", session.model_name(), path).text()),
                "",
                ""};
}

}  // namespace

Preflight examine(session::Session& session) {
  const session::Config& config = session.config();
  PreflightOptions how;
  how.jobs = session.request().jobs;
  how.others = other_splits(session);
  Expected expected{config.expect, config.overrides.output_kind};
  // What was expected holds for the metric and the data of netmend.toml, not for others.
  const bool other_data = !config.test.empty() && dataset::spec_text(dataset::parse_spec(config.test)) !=
                                                      dataset::spec_text(session.test().spec);
  if (!session.request().metric.empty() || !session.request().output.empty() || other_data) expected.metric = -1;
  Preflight result = examine(session.test().subject, session.task(), expected, how);
  session.record(session.test(), "preflight", result.inputs);
  for (const Preflight::Looked& looked : result.looked)
    if (looked.tests)
      session.record(session.test(), looked.reason, looked.inputs, 0, looked.inputs == session.test().inputs());
  if (!config.reference.empty()) look_at_reference(session, result);
  return result;
}

findings::Finding finding_of(const Blocker& blocker, const session::Session& session, const std::string& verb) {
  findings::Words words = {
      {"case", session.words()}, {"model", session.model_name()}, {"data", session.request().data}};
  findings::Finding finding =
      findings::make(blocker.kind, blocker.where, words, {0.5, 0}, findings::Certainty::kConfirmed,
                     blocker.brief.empty() ? blocker.evidence : blocker.brief, blocker.evidence + ".");
  finding.level = findings::Level::kBlocker;
  finding.title = blocker.title;
  if (!blocker.line.empty()) finding.numbers["toml"] = blocker.line;
  finding.next = {blocker.line.empty() ? session.again(verb, {"--anyway"}) : session.again(verb)};
  return finding;
}

}  // namespace netmend::preflight
