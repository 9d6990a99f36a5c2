#include "checkup/preflight.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "checkup/memory.h"
#include "checkup/search.h"
#include "checkup/setups.h"
#include "localise/candidates.h"
#include "localise/counterfactual.h"
#include "observers/metrics.h"
#include "stream/layers.h"

namespace netmend::checkup {
namespace {

using dataset::Batch;
using observers::PredictionSettings;
using observers::SampleRow;
using observers::Task;

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
    auto start = std::chrono::steady_clock::now();
    std::vector<at::Tensor> values = trial_.answers(trial_.first, {settings_.head.output, trial_.wanted()});
    double rate = double(trial_.first.count()) /
                  std::max(1e-6, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    result_.inputs = trial_.first.count();
    result_.lines.push_back({batching_text()});
    look_at_outputs(values[0], values[1]);
    if (result_.blocker) return result_;
    look_at_memory();
    if (settings_.task == Task::kNone) return without_labels();
    trial_.asis = judge(settings_, values[1], trial_.first);
    result_.tried.push_back({"", "as it is", "", figure(settings_, trial_.asis)});
    if (as_expected(rate)) return result_;
    if (!expected_met_ || suspicious() || worth_a_look(rate)) try_setups(rate);
    if (!result_.blocker) conclude();
    return result_;
  }

 private:
  std::string batching_text() const {
    using executor::Batching;
    const Batching& batching = subject_.batching;
    return batching.kind == Batching::kAny     ? "any batch size"
           : batching.kind == Batching::kFixed ? fmt::format("batches of {}", batching.size)
                                               : "one input at a time";
  }

  // ---- what the outputs are ----

  void look_at_outputs(const at::Tensor& output, const at::Tensor& logits) {
    at::Tensor columns = observers::as_columns(output.to(at::kDouble)),
               inside = observers::as_columns(logits.to(at::kDouble));
    if (!columns.isfinite().all().item<bool>()) {
      int64_t broken = (~columns.isfinite().all(1)).sum().item<int64_t>();
      result_.lines.push_back({fmt::format("{} of {} answers are NaN or infinite", broken, columns.size(0)), false});
      return;
    }
    using executor::Gives;
    const bool several = settings_.task == Task::kClasses || (settings_.task == Task::kNone && settings_.outputs > 1);
    const bool distribution = observers::look_like_probabilities(columns);
    if (several && settings_.head.gives == Gives::kProbabilities && settings_.head.logits != settings_.head.output &&
        observers::look_like_probabilities(inside))
      return softmax_twice();
    const bool says_logits = expected_.gives == "logits", says_probabilities = expected_.gives == "probabilities";
    if (several && says_logits && distribution)
      return block(
          "wrong-gives:" + trial_.value_name(settings_.head.output), "The outputs are probabilities, not logits.",
          fmt::format("model.gives says logits, but on {} inputs no output is negative and each row sums to 1; "
                      "taking a softmax of them once more would flatten every confidence",
                      columns.size(0)),
          "model = { gives = \"probabilities\" }");
    if (settings_.task == Task::kBinary && says_logits && settings_.head.gives != Gives::kLogits)
      return block("wrong-gives:" + trial_.value_name(settings_.head.output),
                   "The output is a probability, not a logit.",
                   fmt::format("model.gives says logits, but on {} inputs it goes from {:.3g} to {:.3g}",
                               columns.size(0), columns.min().item<double>(), columns.max().item<double>()),
                   "model = { gives = \"probabilities\" }");
    const bool in_range = columns.min().item<double>() >= 0 && columns.max().item<double>() <= 1;
    if (says_probabilities && (several ? !distribution : !in_range) && settings_.task != Task::kNumber)
      return block("wrong-gives:" + trial_.value_name(settings_.head.output), "The outputs are not probabilities.",
                   fmt::format("model.gives says probabilities, but outputs go from {:.3g} to {:.3g}",
                               columns.min().item<double>(), columns.max().item<double>()),
                   "model = { gives = \"logits\" }");
    if (settings_.task != Task::kNumber)
      result_.lines.push_back(
          {settings_.head.gives == Gives::kLogits ? "outputs are logits" : "outputs are probabilities"});
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
    block(
        "softmax-twice:" + trial_.value_name(settings_.head.output), "A softmax is taken twice.",
        fmt::format("What goes into the last softmax of `{}` already is a distribution over the classes, so no answer "
                    "can be surer than {:.0f} %",
                    trial_.value_name(settings_.head.output),
                    100 * std::exp(1.0) / (std::exp(1.0) + double(settings_.outputs) - 1)),
        before.empty() ? "" : fmt::format("model = {{ output = \"{}\", gives = \"probabilities\" }}", before));
  }

  // ---- what the first normalisation remembers ----

  void look_at_memory() {
    memory_ = find_memory(subject_.graph, settings_.head.output);
    if (!memory_) return;
    distance_ = distance(trial_.first);
    remembers_ = distance_ < 1;
    result_.lines.push_back({remembers_
                                 ? "inputs are as the first normalisation remembers them"
                                 : fmt::format("inputs are not as the first normalisation remembers them: {:.1f} "
                                               "deviations off",
                                               distance_),
                             remembers_});
  }

  double distance(const Batch& batch) const {
    return memory_distance(*memory_, trial_.answers(batch, {memory_->input})[0]);
  }

  Preflight without_labels() {
    result_.lines.push_back({"no labels, so that right and wrong cannot be told"});
    if (remembers_) return result_;
    const std::string input = trial_.input_name();
    for (const Setup& setup : scalings(subject_.data->info(), trial_.first)) {
      Batch changed = trial_.first;
      setup.apply(changed);
      double now = distance(changed);
      if (now < 0.25 && now < 0.2 * distance_)
        block("preprocessing:" + setup.about, "The inputs are probably not prepared as in training.",
              fmt::format("The first normalisation layer remembers other values ({:.1f} deviations off); {}: {:.2f}",
                          distance_, setup.words, now),
              input_line(input, setup.options));
      if (result_.blocker) return result_;
    }
    return result_;
  }

  // ---- accuracy ----

  /// The user's metric on as many inputs as two seconds allow; on all of them for most networks.
  stats::Estimate metric_on(const dataset::Dataset& data, double rate, int64_t& count) const {
    count = std::min(data.size(), std::max<int64_t>(2 * Trial::kInputs, int64_t(2 * rate)));
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

  /// Twice the interval, since with many models to check 95 % would cry wolf too often; none of it where all of the
  /// data was looked at. Half a point for what rounds differently.
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

  bool as_expected(double rate) {
    if (expected_.metric < 0) return false;
    int64_t count = 0;
    stats::Estimate now = metric_on(*subject_.data, rate, count);
    expected_met_ = meets(now, count, subject_.data->size());
    found_instead_ =
        fmt::format("Expected {}, found {} on {} inputs", metric_text(expected_.metric), metric_text(now.value), count);
    if (expected_met_) result_.lines.push_back({fmt::format("{} as expected", metric_text(now.value))});
    return expected_met_;
  }

  bool suspicious() const { return trial_.near_chance() || !remembers_; }

  /// Fewer mistakes than a set-up must explain leave nothing to look for; slow networks only when something is odd.
  bool worth_a_look(double rate) {
    const bool sure_and_wrong = settings_.by_class() && mean_loss(trial_.asis) > blank_loss(settings_);
    if (settings_.task != Task::kNumber && mean_error(settings_, trial_.asis) < 0.03 && !sure_and_wrong) return false;
    if (30 * double(Trial::kFirstLook) / rate <= options_.seconds) return true;
    result_.lines.push_back({"other set-ups were not tried (this model is slow): expect in netmend.toml makes sure"});
    return false;
  }

  void try_setups(double rate) {
    if (!expected_met_ && expected_.metric >= 0) try_other_data(rate);
    Searched searched = search_setups(trial_);
    result_.tried.insert(result_.tried.end(), searched.tried.begin(), searched.tried.end());
    if (!searched.blocker || result_.blocker) return;
    const double wrong = mean_error(settings_, trial_.asis);
    const double gain = searched.tried.empty() ? 0 : searched.tried[0].accuracy.value - (1 - wrong);
    // Where the loss convinced and not the mistakes, a unit has nothing to explain.
    const bool by_mistakes = searched.blocker->id == "preprocessing:scale" && settings_.by_class() && gain >= 0.05;
    if (by_mistakes && one_unit_does_away_with(0.8 * gain / wrong)) {
      result_.lines.push_back({"one unit explains its mistakes as well as another preparation of the inputs would"});
      return;
    }
    result_.blocker = std::move(searched.blocker);
    result_.lines.push_back({result_.blocker->title, false});
  }

  /// A damaged unit makes a network do better with odd inputs too. Where silencing, holding or refitting one unit does
  /// away with as large a share of the mistakes, the inputs are not to blame.
  bool one_unit_does_away_with(double share) const {
    if (subject_.batching.kind != executor::Batching::kAny) return false;
    std::vector<int64_t> failing, passing;
    for (const observers::SampleRow& row : trial_.asis)
      (row.right == observers::SampleRow::kRight ? passing : failing).push_back(row.sample);
    if (failing.empty() || passing.empty()) return false;
    try {
      std::vector<model::Layer> layers =
          localise::candidates(stream::find_layers(subject_), subject_.graph, settings_.head, settings_.outputs);
      std::erase_if(layers, [](const model::Layer& layer) { return layer.merged != model::Merged::kNo; });
      if (layers.empty()) return false;
      localise::SuppositionOptions how;
      how.inputs = Trial::kInputs, how.jobs = options_.jobs;
      const localise::Supposition found = localise::suppose(subject_, settings_, layers, failing, passing, how);
      const double most = found.right.empty() ? 0 : *std::max_element(found.right.begin(), found.right.end());
      return most >= share * (1 - found.accuracy);
    } catch (const InputError&) {
      return false;
    }
  }

  /// Only what was expected can tell one split from another.
  void try_other_data(double rate) {
    for (const OtherData& other : options_.others) {
      std::shared_ptr<const dataset::Dataset> data = other.open();
      int64_t count = 0;
      stats::Estimate now = metric_on(*data, rate, count);
      std::string about = settings_.metric == "accuracy" ? "" : fmt::format(" ({})", settings_.metric);
      result_.tried.push_back({"data", other.words + about, other.line, now});
      if (!meets(now, count, data->size()) || result_.blocker) continue;
      block("wrong-split:test", "The expected figure probably belongs to other data.",
            fmt::format("{}; on {} {}", found_instead_, other.words, metric_text(now.value)), other.line);
    }
  }

  void conclude() {
    stats::Estimate now = result_.tried[0].accuracy;
    if (!expected_met_ && expected_.metric >= 0)
      return block("expectation:" + settings_.metric, "The model does not do what was expected of it.",
                   found_instead_ + "; no common set-up explains it", "");
    if (trial_.near_chance())
      result_.lines.push_back(
          {fmt::format("accuracy {} is what guessing gives ({:.1f} %); no common set-up explains it",
                       figure_text(settings_, now), 100 * trial_.chance()),
           false});
    else
      result_.lines.push_back({settings_.by_class() ? fmt::format("accuracy {}, guessing gives {:.0f} %",
                                                                  figure_text(settings_, now), 100 * trial_.chance())
                                                    : figure_text(settings_, now)});
  }

  void block(std::string id, std::string title, std::string evidence, std::string line) {
    result_.blocker = Blocker{std::move(id), std::move(title), std::move(evidence), std::move(line), ""};
    result_.lines.push_back({result_.blocker->title, false});
  }

  Trial trial_;
  const stream::Subject& subject_;
  const PredictionSettings& settings_;
  const Expected& expected_;
  const PreflightOptions& options_;
  std::optional<Memory> memory_;
  double distance_ = 0;
  bool remembers_ = true, expected_met_ = true;
  std::string found_instead_;  ///< of what was expected
  Preflight result_;
};

}  // namespace

Preflight preflight(const stream::Subject& subject, const PredictionSettings& settings, const Expected& expected,
                    const PreflightOptions& options) {
  return Examination(subject, settings, expected, options).run();
}

}  // namespace netmend::checkup
