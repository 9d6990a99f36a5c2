#include "checkup/preflight.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>

#include "base/error.h"
#include "base/text.h"
#include "checkup/assignment.h"
#include "checkup/memory.h"
#include "checkup/setups.h"
#include "observers/metrics.h"

namespace netmend::checkup {
namespace {

using dataset::Batch;
using observers::PredictionSettings;
using observers::SampleRow;
using observers::Task;
using Rows = std::vector<SampleRow>;

constexpr int64_t kTrial = 512;      ///< inputs a set-up is judged on, and as many again to confirm it
constexpr int64_t kFirstLook = 128;  ///< of these, the first look at each
constexpr double kUnlikely = 1e-3;

/// Answers judged one by one, by the observer that judges them everywhere.
Rows judge(const PredictionSettings& settings, const at::Tensor& values, const Batch& batch) {
  observers::Predictions observer(settings, true);
  observers::PredictionState state(observer.settings(), true);
  state.observe({batch, [&](model::ValueId) -> const at::Tensor& { return values; }});
  return std::move(state.rows);
}

double error_of(const PredictionSettings& settings, const SampleRow& row) {
  if (settings.task == Task::kNumber) return std::isnan(row.loss) ? INFINITY : std::sqrt(double(row.loss));
  return row.right == SampleRow::kRight ? 0 : 1;
}

double mean_error(const PredictionSettings& settings, const Rows& rows) {
  double sum = 0;
  for (const SampleRow& row : rows) sum += error_of(settings, row);
  return rows.empty() ? NAN : sum / double(rows.size());
}

stats::Estimate figure(const PredictionSettings& settings, const Rows& rows) {
  int64_t right = 0;
  double sum = 0, squares = 0;
  for (const SampleRow& row : rows) {
    double error = error_of(settings, row);
    right += row.right == SampleRow::kRight;
    sum += error, squares += error * error;
  }
  if (settings.task == Task::kNumber) return stats::mean(sum, squares, int64_t(rows.size()));
  return stats::rate(right, int64_t(rows.size()));
}

std::string figure_text(const PredictionSettings& settings, const stats::Estimate& figure) {
  if (settings.task == Task::kNumber) return fmt::format("error {:.4g}", figure.value);
  return fmt::format("{:.1f} %", 100 * figure.value);
}

/// `better` makes clearly fewer mistakes than `rows` on the same inputs: a fifth of them and three points at least, or
/// twelve points, and not by chance.
bool explains(const PredictionSettings& settings, const Rows& rows, const Rows& better) {
  int64_t fixed = 0, broken = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    double before = error_of(settings, rows[i]), after = error_of(settings, better[i]);
    fixed += after<before, broken += after> before;
  }
  double before = mean_error(settings, rows), after = mean_error(settings, better);
  const bool number = settings.task == Task::kNumber;
  bool large = after <= 0.8 * before && (number || before - after >= 0.03);
  large = large || (!number && before - after >= 0.12);
  return large && fixed > broken && stats::sign_test(fixed, broken) < kUnlikely;
}

double mean_loss(const Rows& rows) {
  double sum = 0;
  for (const SampleRow& row : rows) sum += std::isnan(row.loss) ? INFINITY : double(row.loss);
  return rows.empty() ? NAN : sum / double(rows.size());
}

/// The loss of knowing nothing.
double blank_loss(const PredictionSettings& settings) { return std::log(double(settings.classes.size())); }

/// Networks of plain rectifiers answer almost the same for inputs of another scale, only far too surely. As it is the
/// loss is worse than that of knowing nothing, with `better` it is less than half of that, for answers as good.
bool calms(const PredictionSettings& settings, const Rows& rows, const Rows& better) {
  if (!settings.by_class()) return false;
  return mean_error(settings, better) <= mean_error(settings, rows) + 0.03 && mean_error(settings, better) < 0.5 &&
         mean_loss(rows) > blank_loss(settings) && mean_loss(better) < blank_loss(settings) / 2;
}

std::string toml_text(const std::string& key, const std::string& value) {
  if (key == "mean" || key == "std") return fmt::format("{} = [{}]", key, join(split(value, ':'), ", "));
  return fmt::format("{} = \"{}\"", key, value);
}

std::string input_line(const std::string& input, const std::map<std::string, std::string>& options) {
  if (options.empty()) return "";
  std::vector<std::string> parts;
  for (const auto& [key, value] : options) parts.push_back(toml_text(key, value));
  bool plain =
      input.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == input.npos;
  return fmt::format("input.{} = {{ {} }}", plain ? input : '"' + input + '"', join(parts, ", "));
}

class Examination {
 public:
  Examination(const stream::Subject& subject, const PredictionSettings& settings, const Expected& expected,
              const PreflightOptions& options)
      : subject_(subject), settings_(settings), expected_(expected), options_(options) {
    const int64_t size = subject.data->size(), part = std::min(kTrial, std::max<int64_t>(1, size / 2));
    first_ = subject.data->read(mixed(stream::spread(size, part, 0.1)));
    fresh_ = subject.data->read(mixed(stream::spread(size, part, 0.6)));
  }

  Preflight run() {
    auto start = std::chrono::steady_clock::now();
    std::vector<at::Tensor> values = answers(first_, {settings_.head.output, wanted()});
    double rate = double(first_.count()) /
                  std::max(1e-6, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    result_.inputs = first_.count();
    result_.lines.push_back({batching_text()});
    look_at_outputs(values[0], values[1]);
    if (result_.blocker) return result_;
    look_at_memory();
    if (settings_.task == Task::kNone) return without_labels();
    asis_ = judge(settings_, values[1], first_);
    result_.tried.push_back({"", "as it is", "", figure(settings_, asis_)});
    if (as_expected(rate)) return result_;
    if (!expected_met_ || suspicious() || worth_a_look(rate)) try_all(rate);
    if (!result_.blocker) conclude();
    return result_;
  }

 private:
  /// Sorted data would show one class in the first look.
  static std::vector<int64_t> mixed(std::vector<int64_t> samples) {
    std::mt19937 random(1);
    for (size_t i = samples.size(); i > 1; --i) std::swap(samples[i - 1], samples[random() % i]);
    return samples;
  }

  model::ValueId wanted() const {
    return settings_.task == Task::kNumber ? settings_.head.output : settings_.head.logits;
  }

  std::vector<at::Tensor> answers(const Batch& batch, const std::vector<model::ValueId>& values) const {
    return stream::run_few(subject_, values, batch, options_.jobs);
  }

  std::string batching_text() const {
    using executor::Batching;
    const Batching& batching = subject_.batching;
    return batching.kind == Batching::kAny     ? "any batch size"
           : batching.kind == Batching::kFixed ? fmt::format("batches of {}", batching.size)
                                               : "one input at a time";
  }

  std::string output_name(model::ValueId id) const { return subject_.graph.values[size_t(id)].name; }

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
          "wrong-gives:" + output_name(settings_.head.output), "The outputs are probabilities, not logits.",
          fmt::format("model.gives says logits, but on {} inputs no output is negative and each row sums to 1; "
                      "taking a softmax of them once more would flatten every confidence",
                      columns.size(0)),
          "model = { gives = \"probabilities\" }");
    if (settings_.task == Task::kBinary && says_logits && settings_.head.gives != Gives::kLogits)
      return block("wrong-gives:" + output_name(settings_.head.output), "The output is a probability, not a logit.",
                   fmt::format("model.gives says logits, but on {} inputs it goes from {:.3g} to {:.3g}",
                               columns.size(0), columns.min().item<double>(), columns.max().item<double>()),
                   "model = { gives = \"probabilities\" }");
    const bool in_range = columns.min().item<double>() >= 0 && columns.max().item<double>() <= 1;
    if (says_probabilities && (several ? !distribution : !in_range) && settings_.task != Task::kNumber)
      return block("wrong-gives:" + output_name(settings_.head.output), "The outputs are not probabilities.",
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
      if (softmaxes == 1 && node.op == "Softmax") before = output_name(at);
    }
    block(
        "softmax-twice:" + output_name(settings_.head.output), "A softmax is taken twice.",
        fmt::format("What goes into the last softmax of `{}` already is a distribution over the classes, so no answer "
                    "can be surer than {:.0f} %",
                    output_name(settings_.head.output),
                    100 * std::exp(1.0) / (std::exp(1.0) + double(settings_.outputs) - 1)),
        before.empty() ? "" : fmt::format("model = {{ output = \"{}\", gives = \"probabilities\" }}", before));
  }

  // ---- what the first normalisation remembers ----

  void look_at_memory() {
    memory_ = find_memory(subject_.graph, settings_.head.output);
    if (!memory_) return;
    distance_ = distance(first_);
    remembers_ = distance_ < 1;
    result_.lines.push_back({remembers_
                                 ? "inputs are as the first normalisation remembers them"
                                 : fmt::format("inputs are not as the first normalisation remembers them: {:.1f} "
                                               "deviations off",
                                               distance_),
                             remembers_});
  }

  double distance(const Batch& batch) const { return memory_distance(*memory_, answers(batch, {memory_->input})[0]); }

  Preflight without_labels() {
    result_.lines.push_back({"no labels, so that right and wrong cannot be told"});
    if (remembers_) return result_;
    const std::string input = data_input();
    for (const Setup& setup : scalings(subject_.data->info(), first_)) {
      Batch changed = first_;
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
    count = std::min(data.size(), std::max<int64_t>(2 * kTrial, int64_t(2 * rate)));
    std::vector<int64_t> samples = stream::spread(data.size(), count, 0.5);
    observers::Predictions observer(settings_, false);
    observers::PredictionState state(observer.settings(), false);
    for (int64_t first = 0; first < count; first += kTrial) {
      Batch batch = data.read(std::span(samples).subspan(size_t(first), size_t(std::min(kTrial, count - first))));
      at::Tensor values = answers(batch, {wanted()})[0];
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

  double chance() const {
    std::map<double, int64_t> counts;
    int64_t most = 0;
    for (const SampleRow& row : asis_) most = std::max(most, ++counts[row.label]);
    return double(most) / double(asis_.size());
  }

  bool near_chance() const { return settings_.by_class() && result_.tried[0].accuracy.low <= chance(); }
  bool suspicious() const { return near_chance() || !remembers_; }

  /// Fewer mistakes than a set-up must explain leave nothing to look for; slow networks only when something is odd.
  bool worth_a_look(double rate) {
    const bool sure_and_wrong = settings_.by_class() && mean_loss(asis_) > blank_loss(settings_);
    if (settings_.task != Task::kNumber && mean_error(settings_, asis_) < 0.03 && !sure_and_wrong) return false;
    if (30 * double(kFirstLook) / rate <= options_.seconds) return true;
    result_.lines.push_back({"other set-ups were not tried (this model is slow): expect in netmend.toml makes sure"});
    return false;
  }

  // ---- trying ----

  struct Candidate {
    std::vector<Setup> setups;
    Tried tried;
    std::string id, title;
    Rows rows;                             ///< on the first inputs
    std::function<Rows(const Batch&)> on;  ///< on any
  };

  /// The model's input that quantities go into.
  std::string data_input() const {
    for (model::ValueId id : subject_.graph.inputs)
      if (at::isFloatingType(model::carrier(subject_.graph.values[size_t(id)].type)))
        return subject_.graph.values[size_t(id)].name;
    return subject_.graph.values[size_t(subject_.graph.inputs.at(0))].name;
  }

  std::optional<Rows> rows_with(const std::vector<Setup>& setups, const Batch& batch) const {
    try {
      Batch changed = batch;
      for (const Setup& setup : setups) setup.apply(changed);
      return judge(settings_, answers(changed, {wanted()})[0], changed);
    } catch (const InputError&) {
      return std::nullopt;  // such inputs do not fit: token numbers beyond the vocabulary, for one
    }
  }

  static Batch first_rows(const Batch& batch, int64_t count) {
    Batch part = batch;
    count = std::min(count, batch.count());
    auto cut = [&](at::Tensor& tensor) { tensor = tensor.defined() ? tensor.narrow(0, 0, count) : tensor; };
    for (at::Tensor& tensor : part.inputs) cut(tensor);
    for (at::Tensor& tensor : part.masks) cut(tensor);
    cut(part.labels);
    part.samples.resize(size_t(count));
    return part;
  }

  /// Judges a set-up on a few inputs, and on all where that looks promising.
  void try_setup(const std::vector<Setup>& setups, std::vector<Candidate>& found) {
    const Setup& last = setups.back();
    if (changes_nothing(setups)) return;
    Candidate candidate;
    candidate.setups = setups;
    candidate.tried = {last.about, last.words, "", {}};
    for (size_t i = 0; i + 1 < setups.size(); ++i)
      candidate.tried.words = setups[i].words + ", " + candidate.tried.words;
    candidate.tried.line = input_line(data_input(), merged(setups));
    candidate.id = "preprocessing:" + last.about;
    candidate.title = title_of(last.about);
    std::optional<Rows> few = rows_with(setups, first_rows(first_, kFirstLook));
    candidate.tried.runs = few.has_value();
    if (few) {
      Rows same(asis_.begin(), asis_.begin() + std::ptrdiff_t(few->size()));
      bool promising = mean_error(settings_, *few) < mean_error(settings_, same) || calms(settings_, same, *few);
      if (promising && few->size() < asis_.size()) few = rows_with(setups, first_);
      candidate.rows = *few;
      candidate.tried.accuracy = figure(settings_, candidate.rows);
      candidate.on = [this, setups](const Batch& batch) { return rows_with(setups, batch).value_or(Rows{}); };
    }
    found.push_back(std::move(candidate));
  }

  bool changes_nothing(const std::vector<Setup>& setups) const {
    Batch few = first_rows(first_, 8), changed = few;
    for (const Setup& setup : setups) setup.apply(changed);
    for (size_t i = 0; i < few.inputs.size(); ++i)
      if (!at::allclose(few.inputs[i], changed.inputs[i], 1e-4, 1e-5)) return false;
    return true;
  }

  static std::map<std::string, std::string> merged(const std::vector<Setup>& setups) {
    std::map<std::string, std::string> options = setups.back().options;
    if (options.empty()) return {};
    for (const Setup& setup : setups)
      for (const auto& [key, value] : setup.options)
        if (setup.about == "scale" || &setup == &setups.back()) options[key] = value;
    return options;
  }

  static std::string title_of(const std::string& about) {
    if (about == "color") return "The colours are probably in the other order than in training.";
    if (about == "layout") return "The axes of the images are probably mixed up.";
    if (about == "orientation") return "The images probably lie on their side.";
    if (about == "mask") return "The mask is probably not the one of training.";
    if (about == "ids") return "The tokens are probably not numbered or ordered as in training.";
    return "The values are probably not scaled as in training.";
  }

  void try_all(double rate) {
    std::vector<Candidate> found;
    std::vector<Setup> scales = scalings(subject_.data->info(), first_),
                       orders = arrangements(subject_.data->info(), first_);
    for (const Setup& scale : scales) try_setup({scale}, found);
    size_t best = best_of(found);
    std::vector<Setup> helps;
    if (best < found.size() && mean_error(settings_, found[best].rows) < mean_error(settings_, asis_) - 0.02)
      helps = found[best].setups;
    for (const Setup& order : orders) {
      try_setup({order}, found);
      if (!helps.empty()) try_setup({helps[0], order}, found);
    }
    try_labels(found);
    try_outputs(found);
    if (!expected_met_ && expected_.metric >= 0) try_other_data(rate);
    settle(found);
  }

  size_t best_of(const std::vector<Candidate>& found) const {
    size_t best = found.size();
    for (size_t i = 0; i < found.size(); ++i)
      if (!found[i].rows.empty() &&
          (best == found.size() || mean_error(settings_, found[i].rows) < mean_error(settings_, found[best].rows)))
        best = i;
    return best;
  }

  /// The classes in another order: the order that fits these inputs best is judged on others.
  void try_labels(std::vector<Candidate>& found) {
    if (!settings_.by_class()) return;
    const auto classes = int64_t(settings_.classes.size());
    auto plain = [this](const Batch& batch) { return judge(settings_, answers(batch, {wanted()})[0], batch); };
    std::vector<int64_t> up, down;
    for (int64_t c = 0; c < classes; ++c) up.push_back((c + 1) % classes), down.push_back((c + classes - 1) % classes);
    if (classes > 2) {
      add_order("labels one higher", "", up, asis_, plain, found);
      add_order("labels one lower", "", down, asis_, plain, found);
    }
    if (classes > 1000) return;  // too few inputs a class to tell
    add_best_order("", "", asis_, plain, found);
    if (!near_chance()) return;
    // Two things may be wrong at once, and neither shows without the other.
    const size_t count = found.size();
    for (size_t i = 0; i < count; ++i) {
      if (found[i].tried.about != "scale" || found[i].rows.empty()) continue;
      auto on = found[i].on;
      add_best_order(found[i].tried.words + ", ", found[i].tried.line, on(first_), on, found);
    }
  }

  using OnBatch = std::function<Rows(const Batch&)>;

  void add_best_order(const std::string& words, const std::string& line, const Rows& rows, const OnBatch& on,
                      std::vector<Candidate>& found) const {
    std::vector<int64_t> order = best_assignment(settings_, rows);
    if (!std::is_sorted(order.begin(), order.end()))
      add_order(words + order_words(order), line, order, rows, on, found);
  }

  void add_order(const std::string& words, const std::string& line, const std::vector<int64_t>& order, const Rows& rows,
                 const OnBatch& on, std::vector<Candidate>& found) const {
    auto relabel = [order](Rows all) {
      for (SampleRow& row : all) {
        row.label = double(order[size_t(row.label)]);
        if (!std::isnan(row.predicted)) row.right = row.label == row.predicted ? SampleRow::kRight : SampleRow::kWrong;
      }
      return all;
    };
    Candidate candidate;
    candidate.rows = relabel(rows);
    std::string lines = line.empty() ? order_line(order) : line + "\n" + order_line(order);
    candidate.tried = {"classes", words, lines, figure(settings_, candidate.rows)};
    candidate.id = "class-order:labels";
    candidate.title = "The classes are probably numbered differently from training.";
    candidate.on = [on, relabel](const Batch& batch) { return relabel(on(batch)); };
    found.push_back(std::move(candidate));
  }

  std::string order_words(const std::vector<int64_t>& order) const {
    std::vector<std::string> moved;
    for (size_t c = 0; c < order.size(); ++c)
      if (order[c] != int64_t(c))
        moved.push_back(fmt::format("{} is {}", settings_.classes[c], settings_.classes[size_t(order[c])]));
    std::string rest = moved.size() > 3 ? fmt::format(" and {} more", moved.size() - 3) : "";
    if (moved.size() > 3) moved.resize(3);
    return "classes in another order: " + join(moved, ", ") + rest;
  }

  /// The names in the order of the model's outputs.
  std::string order_line(const std::vector<int64_t>& order) const {
    if (order.size() > 100) return "";
    std::vector<std::string> names(order.size());
    for (size_t c = 0; c < order.size(); ++c) names[size_t(order[c])] = fmt::format("\"{}\"", settings_.classes[c]);
    return fmt::format("classes = [{}]", join(names, ", "));
  }

  void try_outputs(std::vector<Candidate>& found) {
    for (model::ValueId id : subject_.graph.outputs) {
      if (id == settings_.head.output) continue;
      PredictionSettings other = settings_;
      other.head = executor::find_head(subject_.graph, id);
      if (other.head.logits == settings_.head.logits) continue;
      model::ValueId value = other.task == Task::kNumber ? other.head.output : other.head.logits;
      Candidate candidate;
      candidate.tried = {"output",
                         fmt::format("output `{}`", output_name(id)),
                         fmt::format("model = {{ output = \"{}\" }}", output_name(id)),
                         {}};
      candidate.id = "wrong-output:" + output_name(settings_.head.output);
      candidate.title = "Another output of the model is probably the one that counts.";
      candidate.on = [this, other, value](const Batch& batch) {
        return judge(other, answers(batch, {value})[0], batch);
      };
      try {
        at::Tensor columns = observers::as_columns(answers(first_, {id})[0]);
        if (columns.dim() != 2 || columns.size(1) != settings_.outputs) continue;
        candidate.rows = candidate.on(first_);
        candidate.tried.accuracy = figure(settings_, candidate.rows);
      } catch (const InputError&) {
        continue;  // an output that does not keep the inputs apart answers no question about them
      }
      found.push_back(std::move(candidate));
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

  void settle(std::vector<Candidate>& found) {
    std::stable_sort(found.begin(), found.end(), [&](const Candidate& a, const Candidate& b) {
      if (a.rows.empty() || b.rows.empty()) return a.rows.size() > b.rows.size();
      return mean_error(settings_, a.rows) < mean_error(settings_, b.rows);
    });
    for (const Candidate& candidate : found) result_.tried.push_back(candidate.tried);
    fresh_rows_ = judge(settings_, answers(fresh_, {wanted()})[0], fresh_);
    for (auto convinces : {&explains, &calms}) {
      std::vector<Confirmed> sure;
      for (const Candidate& candidate : found)
        if (convinces == &explains || candidate.tried.about == "scale") confirm(candidate, convinces, sure);
      if (!result_.blocker && !sure.empty()) name(best_confirmed(sure), convinces == &calms);
    }
  }

  /// A candidate that holds on inputs that the search has not seen.
  struct Confirmed {
    const Candidate* candidate;
    Rows again;
  };

  void confirm(const Candidate& candidate, bool (*convinces)(const PredictionSettings&, const Rows&, const Rows&),
               std::vector<Confirmed>& sure) const {
    if (candidate.rows.size() != asis_.size() || !convinces(settings_, asis_, candidate.rows)) return;
    Rows again = candidate.on(fresh_);
    if (again.size() == fresh_rows_.size() && convinces(settings_, fresh_rows_, again) && plausible(candidate, again))
      sure.push_back({&candidate, std::move(again)});
  }

  /// A damaged network may do better with odd inputs too, but not as one does that was trained on them: it beats
  /// guessing, it is not surer than it is right, and each class has a number of its own.
  bool plausible(const Candidate& candidate, const Rows& again) const {
    if (!settings_.by_class()) return true;
    if (figure(settings_, again).low <= chance()) return false;
    if (candidate.tried.about == "classes") return one_to_one(candidate.rows) && one_to_one(again);
    return candidate.tried.about == "output" || mean_loss(again) < std::max(blank_loss(settings_), 1.0);
  }

  /// For most classes the commonest answer is the right one.
  bool one_to_one(const Rows& rows) const {
    std::map<double, std::map<double, int64_t>> answers_of;
    for (const SampleRow& row : rows) ++answers_of[row.label][row.predicted];
    int64_t judged = 0, kept = 0;
    for (const auto& [label, counts] : answers_of) {
      int64_t total = 0, most = 0;
      for (const auto& [answer, count] : counts) total += count, most = std::max(most, count);
      if (total < 5) continue;
      ++judged;
      auto own = counts.find(label);
      kept += own != counts.end() && own->second == most;
    }
    return double(kept) >= 0.8 * double(judged);
  }

  /// The fewest mistakes; of scalings that make about as few, the one with the least loss, which tells them apart
  /// sooner.
  const Confirmed& best_confirmed(const std::vector<Confirmed>& sure) const {
    auto error = [&](const Confirmed& c) {
      return mean_error(settings_, c.candidate->rows) + mean_error(settings_, c.again);
    };
    auto loss = [&](const Confirmed& c) { return mean_loss(c.candidate->rows) + mean_loss(c.again); };
    const Confirmed* best = &sure[0];
    for (const Confirmed& c : sure)
      if (error(c) < error(*best)) best = &c;
    const Confirmed* calmest = best;
    for (const Confirmed& c : sure)
      if (settings_.by_class() && best->candidate->tried.about == "scale" && c.candidate->tried.about == "scale" &&
          error(c) < error(*best) + 0.04 && loss(c) < loss(*calmest))
        calmest = &c;
    return *calmest;
  }

  void name(const Confirmed& sure, bool by_loss) {
    const Candidate& candidate = *sure.candidate;
    std::string guessing = settings_.by_class() ? fmt::format(", guessing gives {:.0f} %", 100 * chance()) : "";
    std::string loss =
        by_loss ? fmt::format("; loss {:.3g} instead of {:.3g}", mean_loss(sure.again), mean_loss(fresh_rows_)) : "";
    std::string now = figure_text(settings_, figure(settings_, asis_)),
                then = figure_text(settings_, candidate.tried.accuracy);
    block(
        candidate.id, candidate.title,
        fmt::format("As it is {}{}; {}: {} on {} inputs, {} on {} others{}", now, guessing, candidate.tried.words, then,
                    asis_.size(), figure_text(settings_, figure(settings_, sure.again)), sure.again.size(), loss),
        candidate.tried.line);
    result_.blocker->brief = fmt::format("tried on {} inputs: {} instead of {}", asis_.size(), then, now);
  }

  void conclude() {
    stats::Estimate now = result_.tried[0].accuracy;
    if (!expected_met_ && expected_.metric >= 0)
      return block("expectation:" + settings_.metric, "The model does not do what was expected of it.",
                   found_instead_ + "; no common set-up explains it", "");
    if (near_chance())
      result_.lines.push_back(
          {fmt::format("accuracy {} is what guessing gives ({:.1f} %); no common set-up explains it",
                       figure_text(settings_, now), 100 * chance()),
           false});
    else
      result_.lines.push_back({settings_.by_class() ? fmt::format("accuracy {}, guessing gives {:.0f} %",
                                                                  figure_text(settings_, now), 100 * chance())
                                                    : figure_text(settings_, now)});
  }

  void block(std::string id, std::string title, std::string evidence, std::string line) {
    result_.blocker = Blocker{std::move(id), std::move(title), std::move(evidence), std::move(line), ""};
    result_.lines.push_back({result_.blocker->title, false});
  }

  const stream::Subject& subject_;
  const PredictionSettings& settings_;
  const Expected& expected_;
  const PreflightOptions& options_;
  Batch first_, fresh_;
  Rows asis_, fresh_rows_;
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
