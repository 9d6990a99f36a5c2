#include "observers/coverage/profile.h"

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "stream/state_file.h"

namespace netmend::observers {
namespace {

using Json = nlohmann::json;

constexpr const char* kAnother = "Name another file with --profile: if it does not exist, it is written.";

/// The observer's states are of this type.
std::unique_ptr<CriteriaState> as_criteria(std::unique_ptr<stream::State> state) {
  return std::unique_ptr<CriteriaState>(static_cast<CriteriaState*>(state.release()));
}

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

}  // namespace

Profile::Profile(const PredictionSettings& settings, SpacePtr space, size_t layer, int64_t expected, int64_t stride)
    : space_(space),
      layer_(layer),
      kept_ranges_(std::make_shared<Ranges>(space)),
      kept_peaks_(std::make_shared<Peaks>(space)),
      kept_traces_(std::make_shared<Traces>(space, layer, layer + 1, expected, stride)),
      observer_(std::make_unique<Criteria>(settings, space, Criteria::List{kept_ranges_, kept_peaks_, kept_traces_})) {
  facts.stride = stride;
}

void Profile::learned(std::unique_ptr<CriteriaState> state) {
  state_ = std::move(state);
  facts.inputs = state_->samples;
  ranges_ = std::make_shared<std::vector<UnitRange>>(state_->own_tally(*kept_ranges_).ranges);
}

const PeakTally& Profile::peaks() const { return state_->own_tally(*kept_peaks_); }

const UnitBatch& Profile::traces() const { return state_->own_tally(*kept_traces_).kept; }

CriterionMaterials Profile::materials() const {
  CriterionMaterials materials{.space = space_};
  materials.ranges = ranges_;
  materials.traces = &traces();
  materials.layer = layer_;
  materials.importance = facts.importance;
  materials.of_class = facts.of_class;
  return materials;
}

double Profile::bytes(int64_t inputs) const {
  double bytes = 0;
  for (const auto& criterion : observer_->list()) bytes += criterion->bytes(inputs);
  return bytes;
}

std::string Profile::description() const {
  Json layers = Json::array();
  for (size_t l = 0; l < space_->layers().size(); ++l) layers.push_back({space_->layers()[l].name, space_->units(l)});
  return json_text(Json{{"profile", 2},
                        {"tap", space_->choice().before_activation ? "pre" : "post"},
                        {"unit", space_->choice().elements ? "element" : "channel"},
                        {"layers", layers},
                        {"traced", space_->layers()[layer_].name},
                        {"data", facts.data},
                        {"inputs", facts.inputs},
                        {"stride", facts.stride},
                        {"importance", facts.importance},
                        {"class", facts.of_class},
                        {"likelihood_low", number(facts.likelihood_low)},
                        {"mahalanobis_high", number(facts.mahalanobis_high)}});
}

void Profile::save(const std::string& path) {
  check(state_ != nullptr, "only what was learned can be saved");
  stream::StateFile file;
  file.description = description();
  file.subject = facts.model;
  file.chunks = 1;
  file.collected.pieces.push_back({0, 1, std::move(state_)});  // lent, not copied
  stream::write_state(path, file, *observer_);
  state_ = as_criteria(std::move(file.collected.pieces[0].state));
}

namespace {

/// Refuses what was made for another model or with other flags.
void require_same(const std::string& path, const stream::StateFile& file, const JsonView& made, const Json& asked,
                  const std::string& model) {
  if (file.subject != model) throw InputError(fmt::format("{} was made with another model", path), kAnother);
  for (const char* key : {"tap", "unit", "layers", "traced"})
    if (made.at(key).json() != asked.at(key)) {
      const std::string words = std::string(key) == "layers"
                                    ? "other layers"
                                    : fmt::format("{} {}", key, json_text(made.at(key).json()).substr(0, 80));
      throw InputError(fmt::format("{} was made with {}, which is not what is asked for now", path, printable(words)),
                       "Give the same flags as then, or name another file with --profile.");
    }
}

double number_or_unknown(const JsonView& value) { return value.is_null() ? NAN : value.number(); }

}  // namespace

Profile load_profile(const std::string& path, const PredictionSettings& settings, SpacePtr space, size_t layer,
                     const std::string& model, FileRole role) {
  const stream::StateFile header = stream::read_state_header(path, role);
  Profile shape(settings, space, layer, 0, 1);
  if (header.observer != shape.observer_->name())
    throw InputError(fmt::format("{} is not a profile that this netmend can read", path), kAnother);
  const JsonDocument document(header.description, path, {.bytes = 64 << 20, .depth = 8}, kAnother);
  const JsonView made = document.top();
  made.at("profile").whole(2, 2);
  require_same(path, header, made, JsonDocument(shape.description(), path).json(), model);
  const int64_t stride = made.at("stride").whole(1), inputs = made.at("inputs").whole(0, int64_t(1) << 40);
  Profile profile(settings, space, layer, inputs, stride);
  profile.facts.model = model;
  profile.facts.data = made.at("data").text();
  profile.facts.importance = made.at("importance").numbers();
  profile.facts.of_class = made.at("class").whole(-1, int64_t(settings.classes.size()) - 1);
  profile.facts.likelihood_low = number_or_unknown(made.at("likelihood_low"));
  profile.facts.mahalanobis_high = number_or_unknown(made.at("mahalanobis_high"));
  stream::StateFile file = stream::read_state(path, *profile.observer_, role);
  const bool whole =
      file.collected.pieces.size() == 1 &&
      (profile.facts.importance.empty() || int64_t(profile.facts.importance.size()) == space->units(layer));
  if (!whole) throw InputError(fmt::format("{}: the profile is damaged", path), kAnother);
  profile.learned(as_criteria(std::move(file.collected.pieces[0].state)));
  profile.require_consistent(path, inputs);
  return profile;
}

void Profile::require_consistent(const std::string& path, int64_t inputs) const {
  auto refuse = [&](const std::string& what) {
    throw InputError(fmt::format("{}: the profile is damaged: {}", path, what), kAnother);
  };
  if (facts.inputs != inputs) refuse(fmt::format("it is of {} inputs and holds {}", inputs, facts.inputs));
  if (int64_t(traces().rows.size()) > inputs) refuse("it has more traces than inputs");
  for (const SampleRow& row : traces().rows)
    if (row.sample < 0) refuse("a trace does not belong to an input");
}

}  // namespace netmend::observers
