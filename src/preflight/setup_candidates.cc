#include "preflight/setup_candidates.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "preflight/assignment.h"
#include "session/toml_edit.h"

namespace netmend::preflight {
namespace {

using dataset::Batch;
using observers::SampleRow;
using observers::Task;
using Places = Candidates::Places;

constexpr double kGood = 0.1, kExcellent = 0.02;  ///< error on the first look

/// Those that ran, the fewest mistakes first; of equals the lower loss.
Places ranked_of(Places places) {
  std::erase_if(places, [](const Candidate* c) { return !c->few.made(); });
  std::stable_sort(places.begin(), places.end(), [](const Candidate* a, const Candidate* b) {
    return std::pair(a->few.error, a->few.loss.mean()) < std::pair(b->few.error, b->few.loss.mean());
  });
  return places;
}

Batch first_rows(const Batch& batch, int64_t count) {
  Batch part = batch;
  count = std::min(count, batch.count());
  auto cut = [&](at::Tensor& tensor) { tensor = tensor.defined() ? tensor.narrow(0, 0, count) : tensor; };
  for (at::Tensor& tensor : part.inputs) cut(tensor);
  for (at::Tensor& tensor : part.masks) cut(tensor);
  cut(part.labels);
  part.samples.resize(size_t(count));
  return part;
}

std::string title_of(const std::string& about) {
  if (about == "color") return "The colour channels are probably in a different order than in training.";
  if (about == "layout") return "The axes of the images are probably not in the order used in training.";
  if (about == "orientation") return "The rows and columns of the images are probably swapped.";
  if (about == "mask") return "The mask is probably not the one used in training.";
  if (about == "ids") return "The tokens are probably not numbered or ordered as in training.";
  return "The values are probably not scaled as in training.";
}

}  // namespace

Candidates::Candidates(const Trial& trial, double work) : trial_(trial), work_(work) {
  look(unchanged());
  try_inputs();
  try_classes();
  try_outputs();
}

Candidates::Places Candidates::all() const {
  Places places;
  for (const auto& candidate : found_) places.push_back(candidate.get());
  return places;
}

Candidates::Places Candidates::ranked() const { return ranked_of(all()); }

Candidate Candidates::unchanged() const {
  Candidate candidate;
  candidate.settings = trial_.settings;
  candidate.value = trial_.wanted();
  return candidate;
}

Candidate Candidates::with(std::vector<Setup> setups) const {
  Candidate candidate = unchanged();
  std::vector<std::string> words;
  for (const Setup& setup : setups) words.push_back(setup.words);
  // Of several the one that destroys most is what it is called by: axes before colours before scale.
  const std::string& about = setups.back().about;
  std::optional<Options> options = merged(trial_.subject.data->info(), setups);
  candidate.tried = {about, join(words, ", "), options ? input_line(trial_.input_name(), *options) : "", {}};
  candidate.kind = "preprocessing", candidate.where = about, candidate.title = title_of(about);
  candidate.setups = std::move(setups);
  return candidate;
}

/// The last set-up is applied first: an arrangement speaks of the data as it is, a scaling of what comes out.
Batch Candidates::prepared(const Candidate& candidate, const Batch& batch) const {
  Batch changed = batch;
  for (auto setup = candidate.setups.rbegin(); setup != candidate.setups.rend(); ++setup) setup->apply(changed);
  if (!candidate.order.empty())
    changed.labels = at::tensor(candidate.order, at::kLong).index_select(0, changed.labels.to(at::kLong));
  return changed;
}

Outcome Candidates::outcome(const Candidate& candidate, const Batch& batch) const {
  try {
    const Batch changed = prepared(candidate, batch);
    Outcome made;
    made.values = trial_.answers(changed, {candidate.value})[0];
    made.rows = judge(candidate.settings, made.values, changed);
    made.error = mean_error(candidate.settings, made.rows);
    made.loss = fit_temperature(candidate.settings, made.values, changed, kTemperature);
    return made;
  } catch (const InputError&) {
    return {};  // such inputs do not fit: token numbers beyond the vocabulary, for one
  }
}

/// On a few inputs; what changes nothing is not kept.
Candidate* Candidates::look(Candidate candidate) {
  if (!candidate.setups.empty() && changes_nothing(candidate.setups)) return nullptr;
  candidate.few = outcome(candidate, first_rows(trial_.first, Trial::kFirstLook));
  candidate.tried.runs = candidate.few.made();
  if (candidate.few.made()) candidate.tried.accuracy = figure(candidate.settings, candidate.few.rows);
  found_.push_back(std::make_unique<Candidate>(std::move(candidate)));
  return found_.back().get();
}

const Outcome& Candidates::on_first(Candidate& candidate) const {
  if (!candidate.first.made() && candidate.few.made()) {
    candidate.first = outcome(candidate, trial_.first);
    if (candidate.first.made()) candidate.tried.accuracy = figure(candidate.settings, candidate.first.rows);
  }
  return candidate.first;
}

bool Candidates::changes_nothing(const std::vector<Setup>& setups) const {
  Batch few = first_rows(trial_.first, 8), changed = few;
  for (auto setup = setups.rbegin(); setup != setups.rend(); ++setup) setup->apply(changed);
  for (size_t i = 0; i < few.inputs.size(); ++i)
    if (!at::allclose(few.inputs[i], changed.inputs[i], 1e-4, 1e-5)) return false;
  return true;
}

bool Candidates::affords(size_t looks) const {
  return double(looks) * double(Trial::kFirstLook) * trial_.subject.cost <= work_;
}

void Candidates::try_inputs() {
  const dataset::Info& info = trial_.subject.data->info();
  std::vector<Setup> scales = scalings(info, trial_.first), colors, axes;
  for (Setup& setup : arrangements(info, trial_.first, takes_rows())) {
    look(with({setup}));
    if (setup.about == "color") colors.push_back(setup);
    if (setup.about == "layout" || setup.about == "orientation") axes.push_back(setup);
  }
  Places scaled;
  for (size_t i = 0; i < scales.size(); ++i) {
    Candidate* candidate = look(with({scales[i]}));
    (candidate ? candidate : found_[0].get())->plainness = i;  // what changes nothing is how it is done now
    if (candidate) scaled.push_back(candidate);
  }
  // Neither shows without the other when two things are wrong at once. Where one thing alone does well, no other axis
  // is meant, but the scale may still be another.
  scaled = ranked_of(scaled);
  if (const Candidate& well = *ranked()[0]; well.few.error < kGood)
    std::erase_if(axes, [&](const Setup& axis) { return well.setups.empty() || well.setups[0].words != axis.words; });
  if (!affords(scaled.size() * axes.size()) && scaled.size() > 2) scaled.resize(2);
  for (const Setup& axis : axes)
    for (const Candidate* scale : scaled)
      if (fit_together(axis, scale->setups[0]))
        if (Candidate* both = look(with({scale->setups[0], axis}))) both->plainness = scale->plainness;
  Places best = ranked();
  std::erase_if(best, [](const Candidate* c) {
    return c->setups.empty() || (c->setups[0].changes && c->setups[0].changes->count("color"));
  });
  if (best.size() > 4) best.resize(4);
  if (!best.empty() && best[0]->few.error < kExcellent) colors.clear();
  for (const Setup& color : colors)
    for (const Candidate* base : best) {
      std::vector<Setup> setups = base->setups;  // colours are exchanged where channels are when the axes are right
      setups.insert(setups.begin() + base->scales(), color);
      if (Candidate* all_three = look(with(setups))) all_three->plainness = base->plainness;
    }
}

/// The model's input is a row of numbers, whatever the data is.
bool Candidates::takes_rows() const {
  for (model::ValueId id : trial_.subject.graph.inputs)
    if (trial_.value_name(id) == trial_.input_name())
      return trial_.subject.graph.values[size_t(id)].shape.value_or(std::vector<model::Dim>{}).size() == 2;
  return false;
}

/// The classes in another order: the order that fits these inputs best is judged on others.
void Candidates::try_classes() {
  if (!trial_.settings.by_class()) return;
  const auto classes = int64_t(trial_.settings.classes.size());
  std::vector<int64_t> up, down;
  for (int64_t c = 0; c < classes; ++c) up.push_back((c + 1) % classes), down.push_back((c + classes - 1) % classes);
  if (classes > 2) {
    look(numbered(unchanged(), "labels one higher", up));
    look(numbered(unchanged(), "labels one lower", down));
  }
  if (classes > 1000) return;  // too few inputs per class to tell
  Places bases = {found_[0].get()};
  if (trial_.near_chance()) {  // two things may be wrong at once
    Places others = ranked();
    std::erase_if(others, [](const Candidate* c) { return c->setups.empty() || !c->order.empty(); });
    std::stable_sort(others.begin(), others.end(),
                     [&](const Candidate* a, const Candidate* b) { return assigned(*a) > assigned(*b); });
    if (others.size() > 3) others.resize(3);
    bases.insert(bases.end(), others.begin(), others.end());
  }
  for (Candidate* base : bases) {
    if (!on_first(*base).made()) continue;
    std::vector<int64_t> order = best_assignment(trial_.settings, base->first.rows);
    if (!std::is_sorted(order.begin(), order.end())) look(numbered(*base, order_words(order), order));
  }
}

/// How many of the few are right when classes may be numbered in any order.
int64_t Candidates::assigned(const Candidate& candidate) const {
  const std::vector<int64_t> order = best_assignment(trial_.settings, candidate.few.rows);
  int64_t right = 0;
  for (const SampleRow& row : candidate.few.rows)
    right += !std::isnan(row.predicted) && order[size_t(row.label)] == int64_t(row.predicted);
  return right;
}

Candidate Candidates::numbered(const Candidate& base, const std::string& words,
                               const std::vector<int64_t>& order) const {
  Candidate candidate = base;
  candidate.few = candidate.first = candidate.fresh = candidate.further = {};
  candidate.order = order;
  const std::string& line = base.tried.line;
  candidate.tried = {"classes",
                     base.tried.words.empty() ? words : base.tried.words + ", " + words,
                     line.empty() ? order_line(order) : line + "\n" + order_line(order),
                     {}};
  if (!base.setups.empty() && line.empty()) candidate.tried.line = "";
  candidate.kind = "class-order", candidate.where = "labels";
  candidate.title = "The classes are probably numbered differently than in training.";
  return candidate;
}

std::string Candidates::order_words(const std::vector<int64_t>& order) const {
  std::vector<std::string> moved;
  for (size_t c = 0; c < order.size(); ++c)
    if (order[c] != int64_t(c))
      moved.push_back(fmt::format("{} is {}", trial_.settings.classes[c], trial_.settings.classes[size_t(order[c])]));
  std::string rest = moved.size() > 3 ? fmt::format(" and {} more", moved.size() - 3) : "";
  if (moved.size() > 3) moved.resize(3);
  return "classes in a different order: " + join(moved, ", ") + rest;
}

/// The names in the order of the model's outputs.
std::string Candidates::order_line(const std::vector<int64_t>& order) const {
  if (order.size() > 100) return "";
  std::vector<std::string> names(order.size());
  for (size_t c = 0; c < order.size(); ++c) names[size_t(order[c])] = session::toml_string(trial_.settings.classes[c]);
  return fmt::format("classes = [{}]", join(names, ", "));
}

void Candidates::try_outputs() {
  int64_t left = 32;  // each is a run of its own, and a file may have any number
  for (model::ValueId id : trial_.subject.graph.outputs) {
    if (id == trial_.settings.head.output) continue;
    if (left-- == 0) return;
    Candidate candidate = unchanged();
    candidate.settings.head = executor::find_head(trial_.subject.graph, id);
    if (candidate.settings.head.logits == trial_.settings.head.logits) continue;
    candidate.value =
        candidate.settings.task == Task::kNumber ? candidate.settings.head.output : candidate.settings.head.logits;
    try {
      at::Tensor columns = observers::as_columns(trial_.answers(first_rows(trial_.first, 8), {id})[0]);
      if (columns.dim() != 2 || columns.size(1) != trial_.settings.outputs) continue;
    } catch (const InputError&) {
      continue;  // an output without one row per input cannot be judged
    }
    candidate.tried = {"output",
                       fmt::format("output `{}`", trial_.value_name(id)),
                       fmt::format("model = {{ output = {} }}", session::toml_string(trial_.value_name(id))),
                       {}};
    candidate.kind = "wrong-output", candidate.where = trial_.value_name(trial_.settings.head.output);
    candidate.title = "Another output of the model is probably the prediction.";
    look(std::move(candidate));
  }
}

}  // namespace netmend::preflight
