// Facts without thresholds: what a program did or did not do. A healthy program never raises them above a note.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "diagnosis/rules.h"
#include "findings/phrases.h"

namespace netmend::diagnosis {
namespace {

using findings::Certainty;
using findings::counted;
using findings::Level;
using findings::percent;
using findings::plain;
using records::Line;

std::string names_text(const std::vector<std::string>& names, size_t most = 3) {
  std::vector<std::string> some(names.begin(), names.begin() + long(std::min(most, names.size())));
  return join(some, ", ") + (names.size() > most ? fmt::format(" and {} more", names.size() - most) : "");
}

/// A check of the recorder that did not hold, with the number of steps in which it did not.
void violated(const Scope& s, const char* check, Alarm alarm, double least_share) {
  for (const Line& fact : s.run.record->of("fact")) {
    if (fact.text("check") != check || fact.flag("holds", true)) continue;
    double count = 1, steps = std::max<double>(1, double(s.run.steps));
    for (const Line& summary : s.run.record->of("summary"))
      if (summary.whole("optimizer") == fact.whole("optimizer")) {
        count = summary.numbers("violations")[check];
        steps = std::max(1.0, summary.number("steps", 1));
        // Gradients that a backward pass does not change, as those of saturated outputs, say nothing of that step.
        if (alarm.kind == std::string("gradients-accumulate") && summary.has("cleared"))
          steps = std::max(count + summary.number("cleared", 0), std::min(steps, 4.0));
      }
    // In a record that is cut there is no count: the first violation is all that is known.
    if (count < least_share * std::min(steps, 200.0) && !s.run.record->cut) continue;
    alarm.source = fact.text("source");
    alarm.numbers = {{"first_step", fact.whole("step")}, {"steps", count}};
    alarm.evidence = fmt::format("{} This was first seen in step {}{}.", alarm.evidence, fact.whole("step"),
                                 count > 1 ? fmt::format(" and {} times in all", int64_t(count)) : "");
    if (const std::vector<std::string> names = fact.texts("names"); !names.empty()) alarm.what = names_text(names);
    s.out.push_back(alarm);
    return;
  }
}

void zero_grad(const Scope& s) {
  violated(s, "Z1",
           {.kind = "gradients-accumulate",
            .level = Level::kSerious,
            .certainty = Certainty::kConfirmed,
            .likelihood = 0.98,
            .brief = "zero_grad is missing",
            .evidence = "Steps used gradients that had not been cleared since the previous step."},
           0.5);
}

void no_backward(const Scope& s) {
  violated(s, "Z2",
           {.kind = "step-without-backward",
            .level = Level::kMinor,
            .certainty = Certainty::kConfirmed,
            .likelihood = 0.9,
            .brief = "no backward pass between two steps",
            .evidence = "The optimiser made steps without a new gradient."},
           0.1);
}

void outside_step(const Scope& s) {
  violated(s, "U3",
           {.kind = "changed-outside-step",
            .level = Level::kNote,
            .certainty = Certainty::kConfirmed,
            .likelihood = 0.3,
            .brief = "parameters changed between steps",
            .evidence = "Parameters changed while no optimiser was stepping."},
           0);
}

void frozen_change(const Scope& s) {
  violated(s, "U2",
           {.kind = "changed-outside-step",
            .level = Level::kNote,
            .certainty = Certainty::kConfirmed,
            .likelihood = 0.35,
            .brief = "frozen parameters changed",
            .evidence = "Parameters without requires_grad that are in no optimiser changed."},
           0);
}

void samples_mixed(const Scope& s) {
  for (const Line& fact : s.run.record->of("fact"))
    if (fact.text("check") == "B1" && !fact.flag("holds", true))
      s.out.push_back(
          {.kind = "samples-mixed",
           .level = Level::kSerious,
           .certainty = Certainty::kConfirmed,
           .likelihood = 0.95,
           .brief = "an output depends on other inputs of the batch",
           .evidence = fmt::format("The gradient of one input's output with respect to the other inputs adds up to {}.",
                                   plain(fact.number("value")))});
}

void optimizer_holds(const Scope& s) {
  for (const Line& held : s.run.record->of("held")) {
    Alarm alarm{.kind = "untrained-parameters", .certainty = Certainty::kConfirmed, .likelihood = 0.95};
    alarm.source = s.run.source_optimizer;
    const std::vector<std::string> missing = held.texts("missing");
    if (held.flag("all_foreign")) {
      alarm.level = Level::kSerious;
      alarm.what = "the optimiser holds none of the network's parameters";
      alarm.brief = "the optimiser holds parameters of another network";
      alarm.evidence = fmt::format("None of the optimiser's parameters ({}) belongs to the network that is called.",
                                   held.whole("parameters"));
    } else if (!missing.empty()) {
      alarm.level = held.flag("not_a_prefix") ? Level::kSerious : Level::kMinor;
      alarm.what = names_text(missing);
      alarm.brief = fmt::format("{} in no optimiser", counted(held.whole("missing_count"), "parameter"));
      alarm.evidence = fmt::format("{} of the network with requires_grad set {} in no optimiser: {}.",
                                   counted(held.whole("missing_count"), "parameter"),
                                   held.whole("missing_count") == 1 ? "is" : "are", names_text(missing));
    } else {
      continue;
    }
    s.out.push_back(alarm);
    return;
  }
}

/// Parameters that never got a gradient, or only zeros, or never changed, in all the steps that were looked at.
void gradients_arrive(const Scope& s) {
  const double looks = double(s.run.probes.size());
  if (looks < 3) return;
  std::vector<std::string> none, lost;
  for (const Line& summary : s.run.record->of("summary")) {
    for (const auto& [name, count] : summary.numbers("no_gradient"))
      if (count >= looks) none.push_back(name);
    for (const auto& [name, count] : summary.numbers("lost"))
      if (count >= looks) lost.push_back(name);
  }
  size_t trainable = 0;
  for (const Track& track : s.run.tracks) {
    const bool weight = track.last().weight == track.last().weight && !track.last().frozen && track.last().size > 0;
    trainable += weight;
    if (!s.run.keras || !weight || track.rows.size() < 3) continue;
    bool unchanged = true, gradient = false;
    for (size_t i = 1; i < track.rows.size(); ++i) {
      unchanged = unchanged && track.rows[i].unchanged;
      gradient = gradient || track.rows[i].gradient > 0;
    }
    if (unchanged && gradient) lost.push_back(track.name);
    if (track.last().no_gradient) none.push_back(track.name);
  }
  auto tell = [&](const std::vector<std::string>& names, const char* kind, Level all, const char* brief,
                  const char* evidence) {
    if (names.empty()) return;
    const bool most = names.size() * 2 >= std::max<size_t>(trainable, 1);
    s.out.push_back({.kind = kind,
                     .what = names_text(names),
                     .level = most ? all : Level::kNote,
                     .certainty = Certainty::kConfirmed,
                     .likelihood = most ? 0.85 : 0.3,
                     .brief = brief,
                     .evidence = fmt::format("{}: {}.", evidence, names_text(names, 8)),
                     .source = s.run.source_optimizer});
  };
  tell(lost, "lost-updates", Level::kSerious, "gradients are not zero, but weights stay the same",
       "Despite nonzero gradients, these stayed the same to the last bit in every step that was looked at");
  tell(none, "untrained-parameters", Level::kMinor, "no gradient reaches them",
       "No backward pass reached these parameters");
}

/// Keras: a layer that is frozen although it was never trained (its biases are all 0, as they start), and layers that
/// change although they are said to be frozen: `trainable` was set after compile.
void frozen_at_start(const Scope& s) {
  std::vector<std::string> untrained, moving;
  for (const Line& layer : s.run.layers) {
    if (!layer.has("trainable") || layer.flag("trainable") || !layer.has("fan_in")) continue;
    const std::string name = layer.text("name");
    for (const Track& track : s.run.tracks) {
      if (!track.name.starts_with(name + "/") || !track.last().frozen || track.rows.size() < 2) continue;
      const bool still =
          std::all_of(track.rows.begin() + 1, track.rows.end(), [](const auto& row) { return row.unchanged; });
      if (!still) moving.push_back(name);
      if (still && layer.flag("zero_bias")) untrained.push_back(name);
      break;
    }
  }
  if (!untrained.empty())
    s.out.push_back(
        {.kind = "untrained-parameters",
         .what = names_text(untrained),
         .level = s.run.learned() ? Level::kMinor : Level::kSerious,
         .certainty = Certainty::kLikely,
         .likelihood = 0.8,
         .brief = "frozen with the weights it started with",
         .evidence = fmt::format("{} {} frozen, and all biases are 0, as they start: {} never trained before.",
                                 names_text(untrained, 8), untrained.size() == 1 ? "is" : "are",
                                 untrained.size() == 1 ? "it was" : "they were"),
         .source = s.run.source_fit});
  if (!moving.empty())
    s.out.push_back({.kind = "changed-outside-step",
                     .what = names_text(moving),
                     .level = Level::kNote,
                     .certainty = Certainty::kConfirmed,
                     .likelihood = 0.5,
                     .brief = "frozen layers changed",
                     .evidence = fmt::format("{} changed although trainable is False: after it is set, compile must be "
                                             "called again.",
                                             names_text(moving, 8)),
                     .source = s.run.source_fit});
}

void frozen(const Scope& s) {
  const Line model = s.run.record->first("model");
  if (model.has("trainable") && model.whole("parameters") > 0 && model.whole("trainable") == 0) {
    s.out.push_back({.kind = "untrained-parameters",
                     .what = "every layer is frozen",
                     .level = Level::kSerious,
                     .certainty = Certainty::kConfirmed,
                     .likelihood = 0.95,
                     .brief = "nothing can be trained",
                     .evidence = "No parameter of the network is trainable."});
    return;
  }
  if (s.run.keras) frozen_at_start(s);
}

void modes(const Scope& s) {
  const Line modes = s.run.record->last("modes");
  const double calls = modes.number("eval_calls", 0), wrong = modes.number("no_grad_training", 0),
               back = modes.number("eval_backward", 0);
  // The same inputs again, with no step in between: predictions are drawn several times on purpose.
  const double repeated = modes.number("repeated", 0);
  if (wrong > 0 && repeated >= 0.5 * wrong)
    s.out.push_back(
        {.kind = "evaluated-in-train-mode",
         .level = Level::kNote,
         .certainty = Certainty::kConfirmed,
         .likelihood = 0.2,
         .brief = "the same inputs are predicted several times: Monte Carlo dropout",
         .evidence = fmt::format("{} of {} forward passes without gradients ran with {} in training mode, {} of "
                                 "them with inputs that had just been predicted: Monte Carlo dropout.",
                                 int64_t(wrong), int64_t(calls), names_text(modes.texts("names")), int64_t(repeated))});
  else if (wrong > 0) {
    const bool always = wrong >= 0.9 * calls;
    s.out.push_back({.kind = "evaluated-in-train-mode",
                     .level = always ? Level::kMinor : Level::kNote,
                     .certainty = Certainty::kConfirmed,
                     .likelihood = 0.8,
                     .brief = "eval() is missing before the evaluation",
                     .evidence = fmt::format("{} of {} forward passes without gradients ran with {} in training mode.",
                                             int64_t(wrong), int64_t(calls), names_text(modes.texts("names")))});
  }
  if (s.run.steps > 0 && back >= 0.5 * double(s.run.steps))
    s.out.push_back({.kind = "trained-in-eval-mode",
                     .level = Level::kMinor,
                     .certainty = Certainty::kConfirmed,
                     .likelihood = 0.8,
                     .brief = "train() is missing",
                     .evidence = fmt::format("{} of {} backward passes ran while the network was in evaluation mode.",
                                             int64_t(back), s.run.steps)});
}

/// Not an error: predictions are right, memory and time are lost.
void evaluation_keeps_graphs(const Scope& s) {
  const Line modes = s.run.record->last("modes");
  const double kept = modes.number("eval_with_grad", 0);
  if (kept < 2) return;
  s.out.push_back(
      {.kind = "evaluated-with-gradients",
       .level = Level::kNote,
       .certainty = Certainty::kConfirmed,
       .likelihood = 0.3,
       .brief = "no_grad is missing around the evaluation",
       .evidence = fmt::format("{} forward passes in evaluation mode kept what a backward pass would need, and "
                               "none followed.",
                               int64_t(kept))});
}

struct ScheduleFault {
  std::string what, evidence;
  Certainty certainty;
};

/// What is wrong with how a schedule was used; nothing where it did what it says.
std::optional<ScheduleFault> schedule_fault(const Line& line) {
  const std::string type = line.text("type"), by = line.text("by");
  const double steps = line.number("steps", 0), own = line.number("optimizer_steps", 0),
               all = line.number("all_steps", 0), passes = line.number("passes", 0),
               planned = line.number("planned", 0), low = line.number("low_at", 0);
  if (own == 0 && all >= 3)
    return ScheduleFault{
        type + " drives an optimiser that makes no steps",
        fmt::format("The optimiser that {} belongs to made no step; another one made {}.", type, int64_t(all)),
        Certainty::kConfirmed};
  if (steps == 0 && own >= 3)
    return ScheduleFault{type + " is never stepped",
                         fmt::format("{} was made, but its step() was not called in {} steps of the optimiser: the "
                                     "learning rate stayed at {}.",
                                     type, int64_t(own), plain(line.number("first_rate"))),
                         Certainty::kConfirmed};
  const bool per_batch = steps >= 0.9 * own && own >= 20;
  const bool falls = type == "StepLR" || type == "MultiStepLR" || type == "ExponentialLR";
  if (per_batch && falls && low > 0 && low < own / 3)
    return ScheduleFault{
        type + " is stepped in every step",
        fmt::format("{} was stepped once per step of the optimiser, and the learning rate was below 1 % of "
                    "its start from step {} of {} on.",
                    type, int64_t(low), int64_t(own)),
        Certainty::kLikely};
  if (per_batch && by == "T_max" && passes >= 3 && own >= 5 * passes && planned <= passes)
    return ScheduleFault{
        type + " is stepped in every step",
        fmt::format("{} was made for {} steps, as many as there are passes over the data, and stepped {} "
                    "times, once per step of the optimiser: the learning rate swings.",
                    type, int64_t(planned), int64_t(steps)),
        Certainty::kLikely};
  const bool whole = by == "total_steps" || by == "T_max";
  if (whole && steps >= 1 && own >= 5 * steps && planned >= 0.5 * own && steps < 0.2 * planned)
    return ScheduleFault{
        type + " is stepped once per epoch",
        fmt::format("{} was made for {} steps and stepped {} times, while the optimiser made {} steps: only "
                    "{} of the schedule was used.",
                    type, int64_t(planned), int64_t(steps), int64_t(own), percent(steps / planned)),
        Certainty::kLikely};
  return std::nullopt;
}

void schedule(const Scope& s) {
  // A program that ended early may have had no time to step it.
  if (s.run.record->cut || !s.run.record->of("failed").empty() || !s.run.record->of("stopped").empty()) return;
  for (const Line& line : s.run.record->of("schedule")) {
    if (line.flag("part")) continue;
    const std::optional<ScheduleFault> fault = schedule_fault(line);
    if (!fault) continue;
    s.out.push_back({.kind = "schedule-not-followed",
                     .what = fault->what,
                     .level = Level::kMinor,
                     .certainty = fault->certainty,
                     .likelihood = fault->certainty == Certainty::kConfirmed ? 0.95 : 0.75,
                     .brief = fault->what,
                     .evidence = fault->evidence,
                     .source = line.text("source")});
    return;
  }
}

/// The probe's comparison of gradients with differences of the loss.
void gradient_check(const Scope& s) {
  for (const Line& probe : s.run.record->of("probe")) {
    const std::vector<std::string> names = probe.texts("names");
    if (probe.text("probe") != "gradient" || !(probe.number("worst") > s.limit["probe-gradient"]) || names.empty())
      continue;
    s.out.push_back(
        {.kind = "wrong-gradient",
         .what = names_text(names),
         .level = Level::kSerious,
         .certainty = Certainty::kConfirmed,
         .likelihood = 0.95,
         .brief = fmt::format("{} of {} parameters", names.size(), probe.whole("parameters")),
         .evidence = fmt::format("For {}, the gradient differs from the change of the loss by {} of its size, "
                                 "where {} is allowed.",
                                 names_text(names), percent(std::min(1.0, probe.number("worst"))),
                                 percent(s.limit["probe-gradient"]))});
    return;
  }
}

/// Dropout as a function is on unless it is told otherwise; a network that samples on purpose is none of our business.
void evaluation_repeats(const Scope& s) {
  const std::vector<std::string> ops = s.run.graph.texts("ops");
  bool layers = false;
  for (const Line& layer : s.run.layers) layers = layers || layer.text("role") == "dropout";
  const Line modes = s.run.record->last("modes");
  const bool repeated = modes.number("repeated", 0) >= 0.5 * std::max(2.0, modes.number("eval_calls", 0));
  const bool function = !repeated && !layers && std::find(ops.begin(), ops.end(), "dropout") != ops.end();
  for (const Line& fact : s.run.record->of("fact"))
    if (fact.text("check") == "E1" && !fact.flag("holds", true)) {
      s.out.push_back({.kind = "evaluated-in-train-mode",
                       .what = "the same inputs give different outputs in evaluation mode",
                       .level = function ? Level::kMinor : Level::kNote,
                       .certainty = Certainty::kConfirmed,
                       .likelihood = function ? 0.8 : 0.2,
                       .brief = function ? "dropout is called as a function and never turned off"
                                         : "the same inputs give different outputs in evaluation mode",
                       .evidence =
                           "The network was run twice on the same inputs in evaluation mode, with different states of "
                           "the random generators, and its outputs differed."});
      return;
    }
}

void order(const Scope& s) {
  const Line seen = s.run.record->last("order"), fit = s.run.record->first("fit");
  const int64_t period = seen.whole("period"), again = seen.whole("repeated"), steps = seen.whole("steps");
  const bool same = period >= 2 && again >= 3 && double(again) >= 0.8 * double(steps - period);
  const bool fixed = s.run.keras && fit.has("shuffle") && !fit.flag("shuffle", true) && s.run.rows > s.run.batch;
  const bool sorted = s.run.targets.sorted;
  Alarm alarm{.kind = "not-shuffled", .certainty = Certainty::kConfirmed, .source = s.run.source_fit};
  if (sorted && (same || fixed || (!s.run.keras && period == 0 && s.run.steps > 3))) {
    alarm.level = Level::kSerious, alarm.likelihood = 0.9;
    alarm.brief = "labels are sorted";
    alarm.evidence =
        "Labels come in sorted order and the data is not shuffled, so each batch shows few of the classes.";
  } else if (same) {
    alarm.level = Level::kNote, alarm.likelihood = 0.3;
    alarm.brief = fmt::format("the same {} batches in the same order", period);
    alarm.evidence = fmt::format("After {} steps, the same batches came again in the same order.", period);
  } else if (sorted && s.run.keras && fit.number("validation_split", 0) > 0) {
    alarm.level = Level::kSerious, alarm.likelihood = 0.85;
    alarm.kind = "validation-overlap";
    alarm.brief = "validation_split of sorted labels";
    alarm.evidence =
        "Labels are sorted, and validation_split takes the last rows, so validation data holds other classes than "
        "training data.";
  } else {
    return;
  }
  s.out.push_back(alarm);
}

void shared_rows(const Scope& s) {
  const Line overlap = s.run.record->last("overlap");
  const double rows = overlap.number("rows", 0), common = overlap.number("overlapping", 0);
  if (rows < 1 || common / rows < s.limit["overlap-share"] || common / rows < 2 * s.run.inputs.duplicates) return;
  const bool arrays = overlap.flag("arrays"), all = overlap.flag("all_in_train"), mixed = overlap.whole("mixed") > 0;
  Alarm alarm{.kind = "validation-overlap", .certainty = Certainty::kConfirmed, .likelihood = 0.7};
  alarm.level = arrays ? (all ? Level::kSerious : Level::kMinor) : (mixed ? Level::kMinor : Level::kNote);
  if (!arrays && !mixed && !all) return;
  alarm.brief = fmt::format("training inputs: {} of {}", int64_t(common), counted(int64_t(rows), "input"));
  alarm.evidence =
      fmt::format("Of {} that the network was evaluated on, {} ({}) {} also in the training data.",
                  counted(int64_t(rows), "input"), int64_t(common), percent(common / rows), common == 1 ? "is" : "are");
  s.out.push_back(alarm);
}

void not_finite(const Scope& s) {
  const Line found = s.run.record->first("nonfinite");
  Alarm alarm{
      .kind = "non-finite-training", .level = Level::kSerious, .certainty = Certainty::kConfirmed, .likelihood = 0.9};
  if (found.empty()) {
    if (s.run.finite() || s.run.losses.empty()) return;
    alarm.what = "the loss", alarm.brief = "the loss is NaN or Inf", alarm.evidence = "The loss became NaN or Inf.";
    s.out.push_back(alarm);
    return;
  }
  const std::string what = found.text("what"), operation = found.text("operation"), layer = found.text("layer"),
                    saved = found.text("checkpoint");
  alarm.source = found.text("source");
  if (what == "input")
    alarm.what = operation + " hold NaN or Inf", alarm.brief = "NaN or Inf in the data";
  else if (what == "weights")
    alarm.what = "the weights of " + layer + " after a step", alarm.brief = "a step made weights NaN or Inf";
  else if (what == "backward")
    alarm.what = fmt::format("the gradient{}{}", operation.empty() ? "" : " of " + operation,
                             layer.empty() ? "" : " in " + layer),
    alarm.brief = operation.empty() ? "the backward pass made it" : "the backward pass of " + operation + " made it";
  else if (what == "operation")
    alarm.what = fmt::format("{}{}", operation, layer.empty() ? "" : " in " + layer),
    alarm.brief = "made by " + alarm.what;
  else
    alarm.what = "the loss", alarm.brief = "the loss is NaN or Inf";
  alarm.evidence = fmt::format("NaN or Inf first appeared in step {}: {}.", found.whole("step"), alarm.what);
  if (!saved.empty())
    alarm.evidence += fmt::format(" The last sound file of weights is {}, saved after step {}.", saved,
                                  found.whole("checkpoint_step"));
  // Steps with such gradients are left out by some programs.
  if (what == "backward" && s.run.finite() && s.run.record->of("stopped").empty()) alarm.level = Level::kNote;
  alarm.numbers = {{"step", found.whole("step")}, {"operation", operation}, {"layer", layer}};
  // What grew until it overflowed has another reason, such as a rate that is too high; a logarithm of 0 is its own.
  static const std::vector<std::string> own = {"log",   "log2", "log10",       "log1p",       "sqrt",
                                               "rsqrt", "div",  "__truediv__", "true_divide", "reciprocal",
                                               "pow",   "acos", "asin",        "softmax",     "log_softmax"};
  const bool invalid = what == "operation" && std::find(own.begin(), own.end(), operation) != own.end();
  if (what == "backward" && !operation.empty()) alarm.likelihood = 0.93;
  if (!invalid && what != "input" && !(what == "backward" && !operation.empty())) alarm.likelihood = 0.6;
  s.out.push_back(alarm);
}

void nonlinearity(const Scope& s) {
  const int64_t weighted = s.run.graph.whole("weighted"), pairs = s.run.graph.whole("pair_count");
  if (pairs < 1 || weighted < 2 || !s.run.graph.json().contains("pairs") || !s.run.graph.json()["pairs"].is_array())
    return;
  const auto& first = s.run.graph.json()["pairs"];
  std::string between = "layers";
  if (!first.empty() && first[0].is_array() && first[0].size() == 2 && first[0][0].is_string() &&
      first[0][1].is_string())
    between = utf8(first[0][0].get<std::string>()) + " and " + utf8(first[0][1].get<std::string>());
  const bool all = pairs >= weighted - 1;
  s.out.push_back(
      {.kind = "missing-nonlinearity",
       .what = between,
       .level = !all              ? Level::kNote
                : s.run.learned() ? Level::kMinor
                                  : Level::kSerious,
       .certainty = Certainty::kConfirmed,
       .likelihood = all ? 0.8 : 0.4,
       .brief = all ? "the whole network is linear" : fmt::format("{} of {} layers", pairs, weighted),
       .evidence = fmt::format("Of the {1} layers with weights, {0} {2} another one with no nonlinearity between them.",
                               pairs, weighted, pairs == 1 ? "follows" : "follow")});
}

/// Units of a hidden layer that start alike stay alike. An output layer that starts at zero is common and harmless.
void equal_units(const Scope& s) {
  size_t last = 0;
  for (size_t i = 0; i < s.run.layers.size(); ++i)
    if (s.run.layers[i].has("same_units")) last = i;
  const Line summary = s.run.record->last("summary");
  const std::vector<std::string> still = summary.texts("equal_units");
  std::vector<std::string> names, parted;
  for (size_t i = 0; i < last; ++i) {
    const std::string name = lower(s.run.layers[i].text("name")), role = s.run.layers[i].text("role");
    const bool by_design = name.find("lora") != std::string::npos || name.find("zero") != std::string::npos;
    if (s.run.layers[i].flag("same_units") && !by_design &&
        (role == "linear" || role == "conv" || role == "recurrent")) {
      const std::string shown = s.run.layers[i].text("name");
      const bool became_different =
          summary.has("equal_units") && std::find(still.begin(), still.end(), shown) == still.end();
      (became_different ? parted : names).push_back(shown);
    }
  }
  if (names.empty() && !parted.empty())
    s.out.push_back(
        {.kind = "bad-initialization",
         .where = parted[0],
         .what = "all units of " + names_text(parted) + " start equal",
         .level = Level::kNote,
         .certainty = Certainty::kConfirmed,
         .likelihood = 0.2,
         .brief = "equal initial weights, which became different",
         .evidence = fmt::format("All units of {} start with the same weights; training made them different.",
                                 names_text(parted))});
  if (!names.empty())
    s.out.push_back({.kind = "bad-initialization",
                     .where = names[0],
                     .what = "all units of " + names_text(names) + " start equal",
                     .level = Level::kSerious,
                     .certainty = Certainty::kConfirmed,
                     .likelihood = 0.9,
                     .brief = "equal initial weights",
                     .evidence = fmt::format("All units of {} start with the same weights.", names_text(names))});
}

constexpr Rule kRules[] = {
    {"exact", "zero-grad", "gradients are not cleared", "gradients before backward", "exact", "gradients-accumulate",
     "TrainCheck", zero_grad},
    {"exact", "backward", "no new gradient", "backward passes between steps", "exact", "step-without-backward",
     "TrainCheck", no_backward},
    {"exact", "optimizer-holds", "parameters in no optimiser", "sets of parameters", "exact", "untrained-parameters",
     "torcheck", optimizer_holds},
    {"exact", "gradients-arrive", "parameters without gradient or change", "gradients, bits of weights", "exact",
     "untrained-parameters", "torcheck", gradients_arrive},
    {"exact", "frozen", "nothing is trainable", "trainable parameters", "exact", "untrained-parameters", "torcheck",
     frozen},
    {"exact", "outside-step", "weights change between steps", "bits of weights", "exact", "changed-outside-step",
     "TrainCheck", outside_step},
    {"exact", "frozen-change", "frozen parameters change", "sums of weights", "exact", "changed-outside-step",
     "TrainCheck", frozen_change},
    {"exact", "modes", "dropout and batch normalisation in the wrong mode", "mode of each forward pass", "exact",
     "evaluated-in-train-mode", "TrainCheck", modes},
    {"exact", "evaluation-graphs", "evaluation without no_grad", "gradients kept in evaluation mode", "exact",
     "evaluated-with-gradients", "own", evaluation_keeps_graphs},
    {"exact", "schedule", "a schedule that does not do what it says", "calls of the schedule, steps", "exact",
     "schedule-not-followed", "own", schedule},
    {"exact", "gradient-check", "gradients against differences of the loss (--probe)", "loss with a weight moved",
     "probe-gradient", "wrong-gradient", "TheDeepChecker", gradient_check},
    {"exact", "evaluation-repeats", "evaluation is random", "outputs of the same batch", "exact",
     "evaluated-in-train-mode", "TrainCheck", evaluation_repeats},
    {"exact", "samples-mixed", "inputs of a batch influence each other", "gradient across inputs", "exact",
     "samples-mixed", "lightning-bolts", samples_mixed},
    {"exact", "order", "the same order in every epoch", "fingerprints of batches, order of labels", "exact",
     "not-shuffled", "own", order},
    {"exact", "overlap", "training inputs among validation inputs", "fingerprints of inputs", "overlap-share",
     "validation-overlap", "own", shared_rows},
    {"exact", "finite", "NaN or Inf", "loss, weights, operations", "exact", "non-finite-training", "own", not_finite},
    {"exact", "nonlinearity", "layers in a row without a nonlinear function", "graph", "exact", "missing-nonlinearity",
     "NeuraLint", nonlinearity},
    {"exact", "equal-units", "units that start equal", "start weights", "exact", "bad-initialization", "NeuraLint",
     equal_units},
};

}  // namespace

std::span<const Rule> exact_rules() { return kRules; }

}  // namespace netmend::diagnosis
