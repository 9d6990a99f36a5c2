#include "netmend/paired.h"

#include <ATen/ATen.h>

#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "netmend/fingerprint.h"
#include "onnx/reader.h"

namespace netmend::app {
namespace {

using observers::Before;
using observers::Change;
using observers::Flips;
using observers::PredictionState;
using observers::SampleRow;

bool is_model(const std::string& path) {
  std::error_code error;
  return !std::filesystem::is_directory(path, error) && !path.ends_with(".json");
}

bool has_own_ids(const dataset::Dataset& data) {
  for (int64_t sample : stream::spread(data.size(), 16))
    if (data.id(sample) != std::to_string(sample)) return true;
  return false;
}

/// Takes the newer rows of a chunk, with the older ones where the reference is a model.
class Pairing {
 public:
  Pairing(const Case& about, const EarlierAnswers* earlier, Compared& into)
      : settings_(about.judged.settings),
        data_(*about.judged.subject.data),
        earlier_(earlier),
        into_(into),
        ids_(has_own_ids(data_)) {}

  void take(const std::vector<SampleRow>* older, const std::vector<SampleRow>& newer) {
    fingerprint_.add(newer);
    for (size_t i = 0; i < newer.size(); ++i) {
      Before now = observers::before_of(settings_, newer[i]);
      into_.newer.answers.push_back(now);
      if (ids_) into_.newer.ids.push_back(id_mark(data_.id(newer[i].sample)));
      Before then = older ? observers::before_of(settings_, (*older)[i]) : Before{};
      if (!older) {
        const Before* found = earlier_->find(newer[i].sample);
        if (!found) {
          ++into_.missing;
          continue;
        }
        then = *found;
      }
      Change change = into_.flips.add(then, newer[i]);
      if (change != Change::kNone && into_.list.size() < kMostListed)
        into_.list.push_back({newer[i].sample, change, newer[i].label, older ? (*older)[i].predicted : NAN,
                              newer[i].predicted, newer[i].confidence});
    }
  }
  std::string fingerprint() const { return fingerprint_.finish(data_); }

 private:
  static constexpr size_t kMostListed = 1000000;
  const observers::PredictionSettings& settings_;
  const dataset::Dataset& data_;
  const EarlierAnswers* earlier_;
  Compared& into_;
  bool ids_;
  Fingerprint fingerprint_;
};

void require_same_data(const Baseline& baseline, const Compared& done, bool common_only) {
  if (common_only || baseline.fingerprint.empty() || baseline.fingerprint == done.newer.fingerprint) return;
  throw InputError(fmt::format("{} was made on other data (its mark is {}, this data's is {})", baseline.source,
                               baseline.fingerprint, done.newer.fingerprint),
                   "Compare on the same data, or on the inputs that both name: --common");
}

}  // namespace

Reference open_reference(const Common& common, const CaseOptions& options, Case& about, const std::string& path) {
  Reference reference{path, {}, {}};
  if (!is_model(path)) {
    reference.baseline = read_baseline(path);
    return reference;
  }
  about.judged.subject.data = plan_pass(common, options, about).data;
  reference.model.emplace(make_judged(common, path, onnx::read_model(path), about.judged.subject.data,
                                      options.output.empty() ? about.config.output : options.output,
                                      about.config.wishes));
  const auto& older = reference.model->settings;
  if (older.outputs != about.judged.settings.outputs || older.task != about.judged.settings.task)
    fail("{} gives {} outputs, {} gives {}: their answers cannot be compared", path, older.outputs,
         about.judged.subject.model_name, about.judged.settings.outputs);
  return reference;
}

Compared run_both(const Common& common, const Case& about, const Reference& reference, bool by_id,
                  const std::vector<const stream::Observer*>& also) {
  const dataset::Dataset& data = *about.judged.subject.data;
  const Judged* older = reference.model ? &*reference.model : nullptr;
  Compared done{Flips(about.judged.settings, data)};
  std::optional<EarlierAnswers> earlier;
  if (reference.baseline) earlier.emplace(*reference.baseline, data, by_id);
  Pairing pairing(about, earlier ? &*earlier : nullptr, done);
  observers::Predictions watch_new(about.judged.settings, true);
  std::optional<observers::Predictions> watch_old;
  std::vector<stream::Lane> lanes;
  if (older) watch_old.emplace(older->settings, true), lanes.push_back({&older->subject, {&*watch_old}});
  lanes.push_back({&about.judged.subject, {&watch_new}});
  lanes.back().observers.insert(lanes.back().observers.end(), also.begin(), also.end());
  const size_t place = lanes.size() - 1;
  stream::PassOptions how = pass_options(common);
  how.on_chunk = [&](std::vector<std::unique_ptr<stream::State>>& chunk) {
    auto& newer = dynamic_cast<PredictionState&>(*chunk[place]);
    auto* past = older ? &dynamic_cast<PredictionState&>(*chunk.front()) : nullptr;
    pairing.take(past ? &past->rows : nullptr, newer.rows);
    newer.rows.clear();
    if (past) past->rows.clear();
  };
  done.pass = stream::run_pass(lanes, how);
  auto result = [&](const observers::Predictions& watch, size_t at) {
    auto state = done.pass.collected[at].fold(watch);
    return observers::finish(watch, dynamic_cast<const PredictionState&>(*state));
  };
  done.after = result(watch_new, place);
  if (older) done.before = result(*watch_old, 0);
  done.newer.model = about.judged.subject.model_name;
  done.newer.metric = about.judged.settings.metric;
  if (!done.after.metrics.empty()) done.newer.value = done.after.metrics[0].estimate;
  done.newer.fingerprint = pairing.fingerprint();
  if (reference.baseline) require_same_data(*reference.baseline, done, by_id);
  if (done.flips.whole().samples == 0)
    throw InputError(fmt::format("{} and {} have no input in common", reference.name, about.data->info().spec),
                     "Inputs are matched by their names (data.id).");
  return done;
}

}  // namespace netmend::app
