#include "preflight/setup_search.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "preflight/assignment.h"
#include "preflight/setups.h"
#include "session/toml_edit.h"

namespace netmend::preflight {
namespace {

using dataset::Batch;
using observers::PredictionSettings;
using observers::SampleRow;
using observers::Task;

constexpr double kDistinct = 0.05;                ///< McNemar's p below which two set-ups are told apart
constexpr double kTemperature = 8;                ///< networks are that much too confident at most
constexpr double kFreshWork = 6e9;                ///< multiply-adds for one set-up on fresh inputs
constexpr double kGood = 0.1, kExcellent = 0.02;  ///< error on the first look
constexpr size_t kFinalists = 5;                  ///< set-ups that are judged on all of the first inputs
constexpr size_t kLast = 4;                       ///< and on fresh ones

/// What a set-up makes of some inputs.
struct Outcome {
  at::Tensor values;
  Rows rows;
  Fitted loss;  ///< at the temperature that suits it; empty for tasks without classes
  double error = INFINITY;
  bool made() const { return !rows.empty(); }
};

/// Something to try: inputs prepared otherwise, classes numbered otherwise, another output.
struct Candidate {
  std::vector<Setup> setups;
  std::vector<int64_t> order;  ///< the output that each label stands for; empty for its own number
  PredictionSettings settings;
  model::ValueId value = model::kAbsent;
  Tried tried;
  std::string kind, where, title;
  Outcome few, first, fresh;
  size_t plainness = 0;  ///< of how its values are scaled: the place in the menu, the most usual first
  size_t changes() const { return setups.size() + size_t(!order.empty()) + size_t(kind == "wrong-output"); }
  bool scales() const { return !setups.empty() && setups[0].about == "scale"; }
};

class Search {
 public:
  Search(const Trial& trial, const SearchOptions& options) : trial_(trial), options_(options) {}

  Searched run() {
    look(as_it_is());
    try_inputs();
    try_classes();
    try_outputs();
    settle();
    return std::move(result_);
  }

 private:
  Candidate as_it_is() const {
    Candidate candidate;
    candidate.settings = trial_.settings;
    candidate.value = trial_.wanted();
    return candidate;
  }

  Candidate with(std::vector<Setup> setups) const {
    Candidate candidate = as_it_is();
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

  // ---- what a candidate makes of inputs ----

  /// The last set-up is applied first: an arrangement speaks of the data as it is, a scaling of what comes out.
  Batch prepared(const Candidate& candidate, const Batch& batch) const {
    Batch changed = batch;
    for (auto setup = candidate.setups.rbegin(); setup != candidate.setups.rend(); ++setup) setup->apply(changed);
    if (!candidate.order.empty())
      changed.labels = at::tensor(candidate.order, at::kLong).index_select(0, changed.labels.to(at::kLong));
    return changed;
  }

  Outcome outcome(const Candidate& candidate, const Batch& batch) const {
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

  /// On a few inputs; what changes nothing is not kept.
  Candidate* look(Candidate candidate) {
    if (!candidate.setups.empty() && changes_nothing(candidate.setups)) return nullptr;
    candidate.few = outcome(candidate, first_rows(trial_.first, Trial::kFirstLook));
    candidate.tried.runs = candidate.few.made();
    if (candidate.few.made()) candidate.tried.accuracy = figure(candidate.settings, candidate.few.rows);
    found_.push_back(std::make_unique<Candidate>(std::move(candidate)));
    return found_.back().get();
  }

  const Outcome& on_first(Candidate& candidate) {
    if (!candidate.first.made() && candidate.few.made()) {
      candidate.first = outcome(candidate, trial_.first);
      if (candidate.first.made()) candidate.tried.accuracy = figure(candidate.settings, candidate.first.rows);
    }
    return candidate.first;
  }

  bool changes_nothing(const std::vector<Setup>& setups) const {
    Batch few = first_rows(trial_.first, 8), changed = few;
    for (auto setup = setups.rbegin(); setup != setups.rend(); ++setup) setup->apply(changed);
    for (size_t i = 0; i < few.inputs.size(); ++i)
      if (!at::allclose(few.inputs[i], changed.inputs[i], 1e-4, 1e-5)) return false;
    return true;
  }

  static std::string title_of(const std::string& about) {
    if (about == "color") return "The colours are probably in the other order than in training.";
    if (about == "layout") return "The axes of the images are probably mixed up.";
    if (about == "orientation") return "The images probably lie on their side.";
    if (about == "mask") return "The mask is probably not the one of training.";
    if (about == "ids") return "The tokens are probably not numbered or ordered as in training.";
    return "The values are probably not scaled as in training.";
  }

  // ---- what there is to try ----

  using Places = std::vector<Candidate*>;

  /// Those that ran, the fewest mistakes first; of equals the lower loss.
  Places ranked(Places places) const {
    std::erase_if(places, [](const Candidate* c) { return !c->few.made(); });
    std::stable_sort(places.begin(), places.end(), [](const Candidate* a, const Candidate* b) {
      return std::pair(a->few.error, a->few.loss.mean()) < std::pair(b->few.error, b->few.loss.mean());
    });
    return places;
  }
  Places all() const {
    Places places;
    for (const auto& candidate : found_) places.push_back(candidate.get());
    return places;
  }
  bool affords(size_t looks) const {
    return double(looks) * double(Trial::kFirstLook) * trial_.subject.cost <= options_.work;
  }

  void try_inputs() {
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
    scaled = ranked(scaled);
    if (const Candidate& well = *ranked(all())[0]; well.few.error < kGood)
      std::erase_if(axes, [&](const Setup& axis) { return well.setups.empty() || well.setups[0].words != axis.words; });
    if (!affords(scaled.size() * axes.size()) && scaled.size() > 2) scaled.resize(2);
    for (const Setup& axis : axes)
      for (const Candidate* scale : scaled)
        if (Candidate* both = look(with({scale->setups[0], axis}))) both->plainness = scale->plainness;
    Places best = ranked(all());
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
  bool takes_rows() const {
    for (model::ValueId id : trial_.subject.graph.inputs)
      if (trial_.value_name(id) == trial_.input_name())
        return trial_.subject.graph.values[size_t(id)].shape.value_or(std::vector<model::Dim>{}).size() == 2;
    return false;
  }

  /// The classes in another order: the order that fits these inputs best is judged on others.
  void try_classes() {
    if (!trial_.settings.by_class()) return;
    const auto classes = int64_t(trial_.settings.classes.size());
    std::vector<int64_t> up, down;
    for (int64_t c = 0; c < classes; ++c) up.push_back((c + 1) % classes), down.push_back((c + classes - 1) % classes);
    if (classes > 2) {
      look(numbered(as_it_is(), "labels one higher", up));
      look(numbered(as_it_is(), "labels one lower", down));
    }
    if (classes > 1000) return;  // too few inputs per class to tell
    Places bases = {found_[0].get()};
    if (trial_.near_chance()) {  // two things may be wrong at once
      Places others = ranked(all());
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
  int64_t assigned(const Candidate& candidate) const {
    const std::vector<int64_t> order = best_assignment(trial_.settings, candidate.few.rows);
    int64_t right = 0;
    for (const SampleRow& row : candidate.few.rows)
      right += !std::isnan(row.predicted) && order[size_t(row.label)] == int64_t(row.predicted);
    return right;
  }

  Candidate numbered(const Candidate& base, const std::string& words, const std::vector<int64_t>& order) const {
    Candidate candidate = base;
    candidate.few = candidate.first = candidate.fresh = {};
    candidate.order = order;
    const std::string& line = base.tried.line;
    candidate.tried = {"classes",
                       base.tried.words.empty() ? words : base.tried.words + ", " + words,
                       line.empty() ? order_line(order) : line + "\n" + order_line(order),
                       {}};
    if (!base.setups.empty() && line.empty()) candidate.tried.line = "";
    candidate.kind = "class-order", candidate.where = "labels";
    candidate.title = "The classes are probably numbered differently from training.";
    return candidate;
  }

  std::string order_words(const std::vector<int64_t>& order) const {
    std::vector<std::string> moved;
    for (size_t c = 0; c < order.size(); ++c)
      if (order[c] != int64_t(c))
        moved.push_back(fmt::format("{} is {}", trial_.settings.classes[c], trial_.settings.classes[size_t(order[c])]));
    std::string rest = moved.size() > 3 ? fmt::format(" and {} more", moved.size() - 3) : "";
    if (moved.size() > 3) moved.resize(3);
    return "classes in another order: " + join(moved, ", ") + rest;
  }

  /// The names in the order of the model's outputs.
  std::string order_line(const std::vector<int64_t>& order) const {
    if (order.size() > 100) return "";
    std::vector<std::string> names(order.size());
    for (size_t c = 0; c < order.size(); ++c)
      names[size_t(order[c])] = session::toml_string(trial_.settings.classes[c]);
    return fmt::format("classes = [{}]", join(names, ", "));
  }

  void try_outputs() {
    for (model::ValueId id : trial_.subject.graph.outputs) {
      if (id == trial_.settings.head.output) continue;
      Candidate candidate = as_it_is();
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
      candidate.title = "Another output of the model is probably the one that counts.";
      look(std::move(candidate));
    }
  }

  // ---- which one it is ----

  void settle() {
    Candidate& now = *found_[0];
    Places last = finalists();
    for (const Candidate* candidate : ranked_by_tried()) result_.tried.push_back(candidate->tried);
    if (!now.first.made() || last.empty()) return;
    fresh_ = trial_.read_fresh(kFreshWork);
    now.fresh = outcome(now, fresh_);
    for (Candidate* candidate : last)
      if (candidate != &now) candidate->fresh = outcome(*candidate, fresh_);
    std::erase_if(last, [&](const Candidate* c) { return c != &now && !plausible(*c); });
    if (std::find(last.begin(), last.end(), &now) == last.end()) last.push_back(&now);
    mixed_ = std::any_of(last.begin(), last.end(), [](const Candidate* c) { return !c->order.empty(); });
    const Candidate& best = choose(last);
    if (&best == &now) return;
    const bool by_mistakes = convinces(now, best), by_loss = !by_mistakes && lowers_loss(now, best);
    if (!by_mistakes && !by_loss && !options_.free) return;
    // What is only a little better is a choice between guesses; damage costs more.
    if (by_mistakes && biases_explain(now, best)) return;
    result_.by_loss = by_loss;
    result_.removed = 1 - best.fresh.error / std::max(now.fresh.error, 1e-12);
    name(best, by_loss);
  }

  /// The best of the first look on all of the first inputs, and the best of these: by mistakes and by loss, since many
  /// set-ups make about as few mistakes.
  Places finalists() {
    Places chosen = best_of(ranked(all()), &Candidate::few, kFinalists);
    if (std::find(chosen.begin(), chosen.end(), found_[0].get()) == chosen.end()) chosen.push_back(found_[0].get());
    std::erase_if(chosen, [&](Candidate* c) { return !on_first(*c).made(); });
    return best_of(chosen, &Candidate::first, kLast);
  }

  static Places best_of(const Places& places, Outcome Candidate::*on, size_t most) {
    if (places.empty()) return {};
    Places by_error = places, by_loss, chosen;
    std::stable_sort(by_error.begin(), by_error.end(), [&](const Candidate* a, const Candidate* b) {
      return std::pair((a->*on).error, (a->*on).loss.mean()) < std::pair((b->*on).error, (b->*on).loss.mean());
    });
    for (Candidate* c : by_error)
      if ((c->*on).error <= (by_error[0]->*on).error + 0.05) by_loss.push_back(c);
    std::stable_sort(by_loss.begin(), by_loss.end(), [&](const Candidate* a, const Candidate* b) {
      return (a->*on).loss.mean() < (b->*on).loss.mean();
    });
    for (const Places* some : {&by_error, &by_loss})
      for (size_t i = 0; i < std::min(most, some->size()); ++i)
        if (std::find(chosen.begin(), chosen.end(), (*some)[i]) == chosen.end()) chosen.push_back((*some)[i]);
    return chosen;
  }

  Places ranked_by_tried() const {
    Places places = all();
    places.erase(places.begin());  // as it is
    auto error = [](const Candidate* c) { return c->first.made() ? c->first.error : c->few.error; };
    std::stable_sort(places.begin(), places.end(),
                     [&](const Candidate* a, const Candidate* b) { return error(a) < error(b); });
    return places;
  }

  /// The most accurate; of those that cannot be told from it the one with the lower loss, then the simplest.
  const Candidate& choose(const Places& places) const {
    const Candidate* best = places[0];
    for (const Candidate* c : places)
      if (std::pair(error(*c), loss(*c)) < std::pair(error(*best), loss(*best))) best = c;
    std::vector<const Candidate*> alike;
    for (const Candidate* c : places)
      if (c == best || changes(trial_.settings, rows(*c), rows(*best)).p > kDistinct) alike.push_back(c);
    const Candidate* least = alike[0];
    for (const Candidate* c : alike)
      if (loss(*c) < loss(*least)) least = c;
    const Candidate* chosen = nullptr;
    for (const Candidate* c : alike) {
      if (c != least && loses_more(*c, *least)) continue;
      if (!chosen || simplicity(*c) < simplicity(*chosen)) chosen = c;
    }
    return *chosen;
  }

  /// On all inputs that both sides were judged on; of an order of classes only the fresh ones tell, since the others
  /// were used to find it.
  Rows rows(const Candidate& c) const {
    Rows all = mixed_ ? Rows{} : c.first.rows;
    all.insert(all.end(), c.fresh.rows.begin(), c.fresh.rows.end());
    return all;
  }
  std::vector<double> losses_of(const Candidate& c) const {
    std::vector<double> all = mixed_ ? std::vector<double>{} : c.first.loss.losses;
    all.insert(all.end(), c.fresh.loss.losses.begin(), c.fresh.loss.losses.end());
    return all;
  }
  double error(const Candidate& c) const { return mean_error(c.settings, rows(c)); }
  double loss(const Candidate& c) const {
    const std::vector<double> all = losses_of(c);
    double sum = 0;
    for (double one : all) sum += one;
    return all.empty() ? 0 : sum / double(all.size());
  }

  /// What changes least; where nobody said how values are scaled, a usual scale is as simple as the present one.
  std::tuple<size_t, size_t, bool, double> simplicity(const Candidate& c) const {
    const size_t others = c.changes() - size_t(c.scales());
    const size_t scale = options_.free ? c.plainness : size_t(c.scales());
    return {others, scale, c.changes() > 0 && c.tried.line.empty(), loss(c)};
  }

  /// On the same inputs, by more than half a percent and more than chance makes of it.
  bool loses_more(const Candidate& one, const Candidate& least) const {
    const std::vector<double> losses = losses_of(one), other = losses_of(least);
    const size_t count = other.size();
    if (count < 2 || losses.size() != count) return false;
    double sum = 0, squares = 0;
    for (size_t i = 0; i < count; ++i) {
      const double more = losses[i] - other[i];
      sum += more, squares += more * more;
    }
    const double mean = sum / double(count), variance = std::max(squares / double(count) - mean * mean, 0.0);
    return mean > std::sqrt(variance / double(count)) && mean > 0.005 * loss(least);
  }

  /// Of orders of classes only the fresh inputs tell: the others were used to find them.
  bool convinces(const Candidate& now, const Candidate& best) const {
    if (!best.order.empty()) return improves_accuracy(trial_.settings, now.fresh.rows, best.fresh.rows);
    Rows before = now.first.rows, after = best.first.rows;
    before.insert(before.end(), now.fresh.rows.begin(), now.fresh.rows.end());
    after.insert(after.end(), best.fresh.rows.begin(), best.fresh.rows.end());
    const Changes again = changes(trial_.settings, now.fresh.rows, best.fresh.rows);
    return improves_accuracy(trial_.settings, before, after) && again.fixed > again.broken && again.p < kDistinct;
  }

  /// Networks of plain rectifiers predict almost the same for inputs of another scale, but with far too high a
  /// confidence: more than any training makes of it, which is why no temperature does as well.
  bool lowers_loss(const Candidate& now, const Candidate& best) const {
    if (best.where != "scale" || now.fresh.loss.losses.empty() || best.fresh.error >= 0.5) return false;
    auto plain = [&](const Candidate& c) { return mean_loss(c.fresh.rows); };
    return plain(now) >= 3 * plain(best) && now.fresh.loss.mean() >= 2 * plain(best);
  }

  /// Better than the majority class, each class with a number of its own, and not against what the network remembers of
  /// its training.
  bool plausible(const Candidate& candidate) const {
    if (!candidate.fresh.made()) return false;
    if (!trial_.settings.by_class()) return true;
    if (figure(candidate.settings, candidate.fresh.rows).low <= trial_.chance()) return false;
    if (!candidate.order.empty() && !one_to_one(candidate.fresh.rows)) return false;
    // A ruined network does better with odd inputs too, but not as well as one that was trained on them.
    if (!options_.free && !candidate.setups.empty() && candidate.order.empty() &&
        1 - candidate.fresh.error < nearest_mean())
      return false;
    if (!options_.distance || candidate.setups.empty()) return true;
    return options_.distance(prepared(candidate, trial_.first)) <= std::max(1.0, 2 * options_.distance(trial_.first));
  }

  /// The accuracy of the simplest classifier there is, the nearest mean of a class, on the fresh inputs: what any
  /// trained network exceeds. 0 where inputs are no quantities.
  double nearest_mean() const {
    auto flat = [](const Batch& batch) {
      std::vector<at::Tensor> columns;
      for (const at::Tensor& input : batch.inputs)
        if (input.is_floating_point()) columns.push_back(input.flatten(1).nan_to_num(0, 0, 0));
      return columns.empty() ? at::Tensor() : at::cat(columns, 1);
    };
    const at::Tensor known = flat(trial_.first), asked = flat(fresh_);
    if (!known.defined()) return 0;
    const at::Tensor labels = trial_.first.labels.to(at::kLong);
    const auto classes = int64_t(trial_.settings.classes.size());
    at::Tensor sums = at::zeros({classes, known.size(1)}), counts = at::zeros({classes, 1});
    sums.index_add_(0, labels, known), counts.index_add_(0, labels, at::ones({known.size(0), 1}));
    const at::Tensor means = sums / counts.clamp_min(1);
    at::Tensor distances = means.square().sum(1) - 2 * at::matmul(asked, means.t());
    distances.masked_fill_((counts == 0).t(), INFINITY);
    return (distances.argmin(1) == fresh_.labels.to(at::kLong)).to(at::kDouble).mean().item<double>();
  }

  /// For most classes the most frequent prediction is the right one.
  bool one_to_one(const Rows& rows) const {
    std::map<double, std::map<double, int64_t>> answers_of;
    for (const SampleRow& row : rows)
      if (!std::isnan(row.predicted)) ++answers_of[row.label][row.predicted];
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

  /// A bias of the last layer that is off makes a network do better with odd inputs too. Where biases that are fitted
  /// on the first inputs do as well on the fresh ones, the inputs are not to blame.
  bool biases_explain(const Candidate& now, const Candidate& best) const {
    if (best.setups.empty() || !best.order.empty() || !trial_.settings.by_class()) return false;
    const at::Tensor bias = fit_biases(trial_.settings, now.first.values, trial_.first);
    if (!bias.defined()) return false;
    const at::Tensor values = with_biases(trial_.settings, now.fresh.values, bias);
    const Rows rows = judge(trial_.settings, values, fresh_);
    const Changes more = changes(trial_.settings, rows, best.fresh.rows);
    const bool worse = more.fixed > more.broken && more.p < kDistinct;
    const Fitted loss = fit_temperature(trial_.settings, values, fresh_, kTemperature);
    return !worse && loss.mean() <= 1.1 * best.fresh.loss.mean() + 0.005;
  }

  void name(const Candidate& best, bool by_loss) {
    const Candidate& now = *found_[0];
    std::string guessing =
        trial_.settings.by_class() ? fmt::format(" (majority class: {:.0f} %)", 100 * trial_.chance()) : "";
    std::string loss =
        by_loss ? fmt::format("; loss {:.3g} instead of {:.3g}", mean_loss(best.fresh.rows), mean_loss(now.fresh.rows))
                : "";
    const bool slight = options_.free && !by_loss && !convinces(now, best);
    auto text = [&](const Rows& rows) { return figure_text(trial_.settings, figure(trial_.settings, rows)); };
    result_.blocker = Blocker{
        best.kind,
        best.where,
        slight ? "Inputs that are prepared in another way suit the network better." : best.title,
        fmt::format("As it is {}{}; {}: {} on {} inputs, {} on {} others (as it is {}){}", text(now.first.rows),
                    guessing, best.tried.words, text(best.first.rows), with_commas(int64_t(now.first.rows.size())),
                    text(best.fresh.rows), with_commas(int64_t(best.fresh.rows.size())), text(now.fresh.rows), loss),
        best.tried.line,
        fmt::format("tried on {} inputs: {} instead of {}", with_commas(int64_t(best.fresh.rows.size())),
                    text(best.fresh.rows), text(now.fresh.rows))};
  }

  const Trial& trial_;
  const SearchOptions& options_;
  std::vector<std::unique_ptr<Candidate>> found_;  ///< as it is first
  Batch fresh_;
  bool mixed_ = false;  ///< orders of classes are among the last
  Searched result_;
};

}  // namespace

Searched search_setups(const Trial& trial, const SearchOptions& options) { return Search(trial, options).run(); }

}  // namespace netmend::preflight
