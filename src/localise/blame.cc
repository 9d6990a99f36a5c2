#include "localise/blame.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/error.h"
#include "edits/places.h"
#include "localise/gradient.h"
#include "localise/mutation.h"
#include "observers/spectrum.h"

namespace netmend::localise {

using observers::PredictionState;
using observers::Side;

int64_t Blame::always_active() const {
  return std::count_if(counts.begin(), counts.end(), [](const Counts& c) { return c.ns + c.nf == 0; });
}

bool uses(const std::vector<Choice>& choices, Measure::Of of) {
  return std::any_of(choices.begin(), choices.end(), [&](const Choice& choice) { return choice.measure->of == of; });
}

namespace {

/// More make the gradient measure slow and hardly more certain.
constexpr int64_t kMostGradients = 2048;

/// Inputs of one side, spread evenly, for the gradient measure.
std::vector<int64_t> some_of(const std::vector<int64_t>& samples) {
  std::vector<int64_t> chosen;
  for (int64_t i : stream::spread(int64_t(samples.size()), kMostGradients, 0.5)) chosen.push_back(samples[size_t(i)]);
  return chosen;
}

class Blaming {
 public:
  Blaming(const stream::Subject& subject, const observers::PredictionSettings& settings, const BlameOptions& options)
      : subject_(subject), settings_(settings), options_(options) {}

  Blame run(std::vector<model::Layer> layers) {
    found_.layers = std::move(layers);
    found_.places = unit_places(found_.layers);
    std::optional<Evidence> spectra;
    options_.rows ? take_rows(*options_.rows) : void(spectra = pass());
    auto start = std::chrono::steady_clock::now();
    if (found_.failing > 0 && found_.passing > 0) {
      std::optional<Draws> draws;
      if (spectra) draws = draw(*spectra, options_.resamples, options_.seed);
      score(draws ? &*draws : nullptr);
    }
    found_.scoring = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return std::move(found_);
  }

 private:
  Evidence pass() {
    const bool rows = uses(options_.choices, Measure::kGradient) || uses(options_.choices, Measure::kAblation) ||
                      uses(options_.choices, Measure::kMutation);
    observers::Predictions predictions(settings_, rows);
    observers::Spectrum spectrum(settings_, found_.layers,
                                 {options_.threshold, options_.target, options_.before_activation});
    stream::Pass pass(subject_);
    auto predicted = pass.watch(predictions);
    auto counted = pass.watch(spectrum);
    pass.each_chunk(predicted, [&](PredictionState& state) {
      for (const observers::SampleRow& row : state.rows)
        if (Side side = options_.target.side(row); side != Side::kNeither) sides_[size_t(side)].push_back(row.sample);
      state.rows.clear();
    });
    pass.run(options_.pass);
    const observers::SpectrumState& state = pass.state(counted);
    found_.result = observers::finish(predictions, pass.state(predicted));
    at::Tensor sides = state.inputs.sum(1);
    found_.failing = sides[0].item<int64_t>(), found_.passing = sides[1].item<int64_t>();
    found_.seconds = pass.seconds();
    found_.interrupted = pass.interrupted();
    return evidence_of(state);
  }

  void take_rows(const std::vector<observers::SampleRow>& rows) {
    check(!uses(options_.choices, Measure::kCounts), "measures of counts need a pass");
    for (const observers::SampleRow& row : rows)
      if (Side side = options_.target.side(row); side != Side::kNeither) sides_[size_t(side)].push_back(row.sample);
    found_.failing = int64_t(sides_[0].size()), found_.passing = int64_t(sides_[1].size());
  }

  /// `draws` is null without a pass.
  void score(const Draws* draws) {
    for (size_t u = 0; draws && u < found_.places.size(); ++u) found_.counts.push_back(draws->counts(0, int64_t(u)));
    for (const Choice& choice : options_.choices) {
      at::Tensor scores = choice.measure->of == Measure::kCounts     ? spectrum_scores(*draws, choice, options_.seed)
                          : choice.measure->of == Measure::kGradient ? gradients()
                          : choice.measure->of == Measure::kMutation ? mutated(choice.measure->name)
                          : choice.measure->name == "auto"           ? combined()
                                                                     : tried();
      if (!options_.resample_all && !found_.located.empty()) scores = scores.narrow(0, 0, 1);
      found_.located.push_back({choice, rank_units(found_.places, scores, options_.top)});
    }
  }

  /// Taken once, also where several measures ask for them.
  const at::Tensor& gradients() {
    if (gradients_.defined()) return gradients_;
    std::vector<int64_t> failing = some_of(sides_[0]), passing = some_of(sides_[1]);
    found_.gradients_failing = int64_t(failing.size()), found_.gradients_passing = int64_t(passing.size());
    Evidence evidence = gradient_evidence(subject_, settings_, found_.layers, failing, passing, options_.pass.jobs);
    gradients_ = difference_scores(draw(evidence, options_.resamples, options_.seed));
    return gradients_;
  }

  /// Units that are damaged whatever the data says: all weights 0, or one that is NaN or Inf. Where a tenth of a layer
  /// and more is so, that is how it was made (pruned, say) and no sign of a fault.
  std::vector<size_t> plainly_broken() const {
    std::vector<size_t> broken;
    for (size_t l = 0, first = 0; l < found_.layers.size(); first += size_t(found_.layers[l].units), ++l) {
      std::vector<size_t> own;
      for (const edits::Part& part : edits::find_parts(subject_.graph, found_.layers[l]).list) {
        at::Tensor value = subject_.graph.constant(part.parameter);
        if (part.role != edits::Role::kWeight || !value.is_floating_point()) continue;
        at::Tensor flat = value.contiguous().view(-1);
        for (int64_t unit = 0; unit < found_.layers[l].units; ++unit) {
          at::Tensor mine = flat.index_select(0, at::tensor(part.positions(subject_.graph, unit), at::kLong));
          if (!(mine != 0).any().item<bool>() || !at::isfinite(mine).all().item<bool>())
            own.push_back(first + size_t(unit));
        }
        break;
      }
      if (int64_t(own.size()) * 10 <= found_.layers[l].units + 9) broken.insert(broken.end(), own.begin(), own.end());
    }
    return broken;
  }

  const Ablation& ablated() {
    if (!found_.ablated) {
      AblationOptions how = options_.ablation;
      how.seed = options_.seed, how.jobs = options_.pass.jobs;
      found_.ablated = ablate(subject_, settings_, found_.layers, sides_[0], sides_[1], how);
    }
    return *found_.ablated;
  }

  at::Tensor tried() { return total_scores(draw(ablated().evidence, options_.resamples, options_.seed)); }

  /// What ablation saves and the gradient measure, each as a share of the highest; units that are plainly damaged
  /// first. Ablation finds what gradients do not see (sign-flipped and zeroed units); gradients find units whose fault
  /// others make up for under ablation.
  at::Tensor combined() {
    at::Tensor saved = total_scores(draw(ablated().weighed, options_.resamples, options_.seed)).clamp_min(0),
               steep = gradients().clamp_min(0);
    auto share = [](const at::Tensor& scores) { return scores / scores.amax(1, true).clamp_min(1e-30); };
    const int64_t rows = std::min(saved.size(0), steep.size(0));
    at::Tensor scores = share(saved.narrow(0, 0, rows)) + share(steep.narrow(0, 0, rows));
    for (size_t place : plainly_broken()) scores.select(1, int64_t(place)).add_(2);
    return scores;
  }

  at::Tensor mutated(std::string_view measure) {
    if (!mutants_)
      mutants_ = mutation_evidence(subject_, settings_, found_.layers, sides_[0], sides_[1], options_.mutants,
                                   options_.pass.jobs);
    const size_t units = found_.places.size();
    if (measure == "metallaxis")
      return metallaxis_scores(draw(mutants_->changed, options_.resamples, options_.seed), mutants_->places, units);
    const Draws draws = draw(mutants_->turned, options_.resamples, options_.seed);
    if (measure == "muse") return muse_scores(draws, mutants_->places, units);
    return published_muse_scores(draws, mutants_->places, mutants_->layers, units);
  }

  const stream::Subject& subject_;
  const observers::PredictionSettings& settings_;
  const BlameOptions& options_;
  std::optional<MutationEvidence> mutants_;
  std::vector<int64_t> sides_[2];  ///< samples, when more than counts is wanted
  at::Tensor gradients_;
  Blame found_;
};

}  // namespace

Blame blame(const stream::Subject& subject, const observers::PredictionSettings& settings,
            std::vector<model::Layer> layers, const BlameOptions& options) {
  return Blaming(subject, settings, options).run(std::move(layers));
}

}  // namespace netmend::localise
