#include "localise/ablation.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "base/error.h"
#include "edits/places.h"
#include "executor/layers.h"
#include "localise/weight_gradient.h"

namespace netmend::localise {

using edits::Edit;
using model::ValueId;

std::string ablation_name(AblationKind kind) {
  switch (kind) {
    case AblationKind::kZero:
      return "zero";
    case AblationKind::kMean:
      return "mean";
    case AblationKind::kSignFlip:
      return "sign-flip";
    case AblationKind::kRefit:
      return "refit";
  }
  return "";
}

at::Tensor total_scores(const Draws& draws) {
  at::Tensor scores = draws.failing + draws.passing;
  for (int64_t d = 0; d < scores.size(0); ++d)
    scores[d].div_(std::max(1.0, draws.failing_inputs[size_t(d)] + draws.passing_inputs[size_t(d)]));
  return scores;
}

namespace {

/// What refitting a unit saves counts less than what other ablations save: refitting any unit makes up for some of a
/// fault.
constexpr double kFitting = 0.5;
constexpr double kSteps[] = {0.1, 0.3, 1.0};  ///< of the typical size of a unit's weights in its layer

/// A unit's own numbers: where they stand, what they are, the gradient of the loss at them.
struct Own {
  struct Part {
    ValueId parameter;
    std::vector<int64_t> positions;
    std::vector<double> values, gradients;
    bool weight = false, bias = false;
  };
  std::vector<Part> parts;
  double size = 0, gradient = 0;  ///< Euclidean norms
  bool revived = false;
};

constexpr int64_t kFewestInputs = 256, kFewestUnits = 12, kEnoughUnits = 24;

class Ablating {
 public:
  Ablating(const stream::Subject& subject, const observers::PredictionSettings& settings,
           const std::vector<model::Layer>& layers, const AblationOptions& options)
      : subject_(subject), settings_(settings), layers_(layers), options_(options), places_(unit_places(layers)) {
    keep_to_budget();
  }

  Ablation run(const std::vector<int64_t>& failing, const std::vector<int64_t>& passing) {
    sample(failing, passing);
    gather();
    choose();
    ask();
    return std::move(found_);
  }

 private:
  /// Fewer inputs first, then fewer units: a ranking that looks at few units finds nothing.
  void keep_to_budget() {
    if (!options_.budget) return;
    const int64_t wanted =
        options_.tried > 0 ? std::min<int64_t>(options_.tried, int64_t(places_.size())) : int64_t(places_.size());
    auto each = [&] { return double(options_.inputs) * subject_.cost; };
    while (options_.inputs > kFewestInputs && options_.budget->times(each(), wanted) < std::min(wanted, kEnoughUnits))
      options_.inputs /= 2;
    options_.tried = std::max(options_.budget->times(each(), wanted), kFewestUnits);
    options_.budget->spend(double(std::min(options_.tried, wanted)) * each());
  }

  /// An even sample of both sides together, in the order of the data.
  void sample(const std::vector<int64_t>& failing, const std::vector<int64_t>& passing) {
    std::vector<int64_t> all;
    std::set<int64_t> fails(failing.begin(), failing.end());
    all.insert(all.end(), failing.begin(), failing.end());
    all.insert(all.end(), passing.begin(), passing.end());
    std::sort(all.begin(), all.end());
    for (int64_t i : stream::spread(int64_t(all.size()), options_.inputs, 0.5)) {
      samples_.push_back(all[size_t(i)]);
      sides_.push_back(fails.count(samples_.back()) ? 0 : 1);
    }
    found_.inputs = int64_t(samples_.size());
    some_ = std::make_unique<stream::Subject>(subject_);
    some_->data = dataset::subset(subject_.data, samples_);
  }

  std::vector<int64_t> everything() const {
    std::vector<int64_t> all(samples_.size());
    std::iota(all.begin(), all.end(), 0);
    return all;
  }

  /// Every unit's own numbers and the gradients at them.
  void gather() {
    std::vector<ValueId> learned = executor::find_parameters(subject_.graph);
    const std::set<ValueId> known(learned.begin(), learned.end());
    std::set<ValueId> wanted;
    for (const model::Layer& layer : layers_) {
      parts_.push_back(edits::find_parts(subject_.graph, layer));
      std::erase_if(parts_.back().list, [&](const edits::Part& part) {
        return !part.refusal.empty() || (part.role == edits::Role::kNorm && !known.count(part.parameter)) ||
               !subject_.graph.constant(part.parameter).is_floating_point();
      });
      for (const edits::Part& part : parts_.back().list) wanted.insert(part.parameter);
    }
    constants_.assign(wanted.begin(), wanted.end());
    if (constants_.empty()) return void(own_.resize(places_.size()));
    read(weight_gradients(*some_, settings_, constants_, everything(), options_.jobs));
    revive();
  }

  void read(const std::map<ValueId, at::Tensor>& gradients) {
    for (const UnitPlace& place : places_) {
      Own own;
      for (const edits::Part& part : parts_[place.layer].list) {
        Own::Part one{part.parameter, part.positions(subject_.graph, place.unit), {}, {}};
        one.weight = part.role == edits::Role::kWeight, one.bias = part.role == edits::Role::kBias;
        at::Tensor at = at::tensor(one.positions, at::kLong);
        one.values = edits::numbers(subject_.graph.constant(part.parameter).contiguous().view(-1).index_select(0, at));
        one.gradients = edits::numbers(gradients.at(part.parameter).view(-1).index_select(0, at));
        own.parts.push_back(std::move(one));
      }
      measure(own);
      own_.push_back(std::move(own));
    }
    typical_.resize(layers_.size());
    for (size_t l = 0; l < layers_.size(); ++l) {
      std::vector<double> sizes;
      for (size_t p = 0; p < places_.size(); ++p)
        if (places_[p].layer == l) sizes.push_back(own_[p].size);
      std::nth_element(sizes.begin(), sizes.begin() + int64_t(sizes.size() / 2), sizes.end());
      typical_[l] = std::max(sizes[sizes.size() / 2], 1e-6);
    }
  }

  static void measure(Own& own) {
    own.size = own.gradient = 0;
    for (const Own::Part& part : own.parts)
      for (size_t i = 0; i < part.values.size(); ++i) {
        // A NaN weight has no size; other checks name such units anyway.
        if (std::isfinite(part.values[i])) own.size += part.values[i] * part.values[i];
        if (std::isfinite(part.gradients[i])) own.gradient += part.gradients[i] * part.gradients[i];
      }
    own.size = std::sqrt(own.size), own.gradient = std::sqrt(own.gradient);
  }

  /// Units behind a rectifier without any weight: with a little bias they let gradients through and change next to
  /// nothing. Units that learned to stay at zero are left so: they add nothing, so they are not to blame.
  void revive() {
    model::Graph graph = some_->batching.graph;
    std::map<ValueId, at::Tensor> fresh;
    bool any = false;
    for (size_t p = 0; p < places_.size(); ++p) {
      const bool has_bias =
          std::any_of(own_[p].parts.begin(), own_[p].parts.end(), [](const auto& x) { return x.bias; });
      const bool empty = std::all_of(own_[p].parts.begin(), own_[p].parts.end(), [](const auto& part) {
        return !part.weight || std::all_of(part.values.begin(), part.values.end(), [](double x) { return x == 0; });
      });
      if (own_[p].gradient > 0 || layers_[places_[p].layer].activation != "Relu" || !has_bias || !empty) continue;
      own_[p].revived = any = true;
      for (Own::Part& part : own_[p].parts) {
        if (!part.weight && !part.bias) continue;
        std::fill(part.values.begin(), part.values.end(), part.bias ? 1e-3 * typical_[places_[p].layer] : 0.0);
        if (!fresh.count(part.parameter)) fresh[part.parameter] = graph.constant(part.parameter).clone().contiguous();
        for (size_t i = 0; i < part.positions.size(); ++i)
          fresh[part.parameter].view(-1)[part.positions[i]] = part.values[i];
      }
    }
    if (!any) return;
    for (auto& [id, value] : fresh) graph.replace(id, value);
    stream::Subject revived = *some_;
    revived.batching.graph = graph;
    auto gradients = weight_gradients(revived, settings_, constants_, everything(), options_.jobs);
    for (Own& own : own_) {
      if (!own.revived) continue;
      for (Own::Part& part : own.parts)
        part.gradients = edits::numbers(
            gradients.at(part.parameter).view(-1).index_select(0, at::tensor(part.positions, at::kLong)));
      measure(own);
    }
  }

  /// Where ablating all would take too long: those with the largest gradient, by what a step of the usual length would
  /// save.
  void choose() {
    std::vector<size_t> order(places_.size());
    std::iota(order.begin(), order.end(), 0);
    auto promise = [&](size_t p) { return own_[p].gradient * std::max(own_[p].size, typical_[places_[p].layer]); };
    if (!own_.empty() && !typical_.empty())
      std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return promise(a) > promise(b); });
    if (options_.tried > 0 && int64_t(order.size()) > options_.tried) order.resize(size_t(options_.tried));
    std::sort(order.begin(), order.end());
    tried_ = std::move(order);
  }

  std::vector<Edit> step(size_t p, double share) const {
    std::vector<Edit> edits;
    const Own& own = own_[p];
    if (own.gradient == 0 || typical_.empty()) return edits;
    const double length = share * typical_[places_[p].layer] / own.gradient;
    const std::string name = model::unit_name(layers_[places_[p].layer], places_[p].unit);
    for (const Own::Part& part : own.parts) {
      std::vector<double> values = part.values;
      for (size_t i = 0; i < values.size(); ++i) values[i] -= length * part.gradients[i];
      for (Edit& edit : edits::cut(subject_.graph, part.parameter, part.positions, values, name))
        edits.push_back(std::move(edit));
    }
    return edits;
  }

  /// Weights and bias with the other sign; norms stay.
  std::vector<Edit> negated(size_t p) const {
    std::vector<Edit> edits;
    const std::string name = model::unit_name(layers_[places_[p].layer], places_[p].unit);
    for (const Own::Part& part : own_[p].parts) {
      if ((!part.weight && !part.bias) || own_[p].revived) continue;
      std::vector<double> values = part.values;
      for (double& value : values) value = -value;
      for (Edit& edit : edits::cut(subject_.graph, part.parameter, part.positions, values, name))
        edits.push_back(std::move(edit));
    }
    return edits;
  }

  struct Tried {
    size_t place;
    AblationKind what;
  };

  void ask() {
    whatif::WhatIf whatif(*some_, settings_, layers_, {.jobs = options_.jobs});
    std::vector<std::vector<double>> means = whatif.means();
    std::vector<whatif::Question> questions(1);
    std::vector<Tried> asked;
    for (size_t p : tried_) {
      const auto layer = int(places_[p].layer);
      const int64_t unit = places_[p].unit;
      if (whatif.has_shortcut(layer)) {
        questions.push_back({{}, layer, unit, 0}), asked.push_back({p, AblationKind::kZero});
        questions.push_back({{}, layer, unit, means[size_t(layer)][size_t(unit)]}),
            asked.push_back({p, AblationKind::kMean});
      }
      if (std::vector<Edit> turned = negated(p); !turned.empty())
        questions.push_back({std::move(turned)}), asked.push_back({p, AblationKind::kSignFlip});
      for (double share : kSteps) {
        std::vector<Edit> edits = step(p, share);
        if (edits.empty()) continue;
        questions.push_back({std::move(edits)}), asked.push_back({p, AblationKind::kRefit});
      }
    }
    judge(whatif, questions, asked);
  }

  void judge(whatif::WhatIf& whatif, const std::vector<whatif::Question>& questions, const std::vector<Tried>& asked) {
    const int64_t groups = observers::kSampleGroups;
    std::vector<double> base(samples_.size()), saved(questions.size()), right(questions.size());
    std::vector<bool> was_right(samples_.size());
    at::Tensor sums = at::zeros({int64_t(questions.size()), 2, groups}, at::kDouble);
    auto sum = sums.accessor<double, 3>();
    whatif.ask(questions, [&](size_t q, int64_t first, std::span<const whatif::Judgement> rows) {
      for (size_t i = 0; i < rows.size(); ++i) {
        const size_t at = size_t(first) + i;
        // An output that is NaN or Inf counts as a very wrong one.
        double loss = std::isfinite(rows[i].loss) ? rows[i].loss : 100;
        if (q == 0) {
          base[at] = loss, was_right[at] = rows[i].right;
          found_.loss += loss / double(samples_.size()), found_.accuracy += rows[i].right / double(samples_.size());
          continue;
        }
        double gain = base[at] - loss;
        saved[q] += gain / double(samples_.size());
        right[q] += (int(rows[i].right) - int(was_right[at])) / double(samples_.size());
        sum[int64_t(q)][sides_[at]][observers::sample_group(samples_[at])] += gain;
      }
    });
    settle(questions.size(), asked, saved, right, sums);
  }

  void settle(size_t questions, const std::vector<Tried>& asked, const std::vector<double>& saved,
              const std::vector<double>& right, const at::Tensor& sums) {
    const size_t units = places_.size();
    found_.tried.assign(units, false);
    found_.best.assign(units, AblationKind::kRefit);
    found_.saved.assign(units, 0), found_.right.assign(units, 0);
    found_.by.assign(units, std::vector<double>(4, std::numeric_limits<double>::quiet_NaN()));
    std::vector<size_t> best(units, 0), best_held(units, 0), best_fit(units, 0);
    for (size_t p : tried_) found_.tried[p] = true;
    for (size_t q = 1; q < questions; ++q) {
      const Tried& one = asked[q - 1];
      double& by = found_.by[one.place][size_t(one.what)];
      by = std::isnan(by) ? saved[q] : std::max(by, saved[q]);
      size_t& kind = (one.what == AblationKind::kRefit ? best_fit : best_held)[one.place];
      if (kind == 0 || saved[q] > saved[kind]) kind = q;
      if (best[one.place] == 0 || saved[q] > found_.saved[one.place])
        best[one.place] = q, found_.saved[one.place] = saved[q], found_.right[one.place] = right[q],
        found_.best[one.place] = one.what;
    }
    found_.evidence = {at::zeros({2, observers::kSampleGroups, int64_t(units)}, at::kDouble),
                       at::zeros({2, observers::kSampleGroups}, at::kDouble)};
    for (size_t i = 0; i < samples_.size(); ++i)
      found_.evidence.inputs[sides_[i]][observers::sample_group(samples_[i])].add_(1);
    found_.weighed = {at::zeros_like(found_.evidence.sums), found_.evidence.inputs};
    for (size_t p = 0; p < units; ++p) {
      at::Tensor whole = found_.evidence.sums.select(2, int64_t(p)),
                 weighed = found_.weighed.sums.select(2, int64_t(p));
      if (best[p]) whole.copy_(sums[int64_t(best[p])]);
      if (best_held[p] && saved[best_held[p]] > 0) weighed.add_(sums[int64_t(best_held[p])]);
      if (best_fit[p] && saved[best_fit[p]] > 0) weighed.add_(kFitting * sums[int64_t(best_fit[p])]);
    }
  }

  const stream::Subject& subject_;
  const observers::PredictionSettings& settings_;
  const std::vector<model::Layer>& layers_;
  AblationOptions options_;
  std::vector<UnitPlace> places_;
  std::vector<int64_t> samples_;
  std::vector<int64_t> sides_;  ///< 0 failing, 1 passing
  std::unique_ptr<stream::Subject> some_;
  std::vector<edits::Parts> parts_;  ///< by layer
  std::vector<ValueId> constants_;
  std::vector<Own> own_;         ///< by place
  std::vector<double> typical_;  ///< by layer: the usual size of a unit's weights
  std::vector<size_t> tried_;
  Ablation found_;
};

}  // namespace

Ablation ablate(const stream::Subject& subject, const observers::PredictionSettings& settings,
                const std::vector<model::Layer>& layers, const std::vector<int64_t>& failing,
                const std::vector<int64_t>& passing, const AblationOptions& options) {
  return Ablating(subject, settings, layers, options).run(failing, passing);
}

}  // namespace netmend::localise
