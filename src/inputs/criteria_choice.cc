#include "inputs/criteria_choice.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "observers/coverage/combinations.h"
#include "observers/coverage/layer_spread.h"
#include "observers/coverage/neuron_coverage.h"
#include "observers/coverage/sections.h"
#include "observers/coverage/sign_pairs.h"
#include "observers/coverage/top_units.h"

namespace netmend::inputs {
namespace {

using observers::Criterion;
using observers::Profile;
using observers::SpacePtr;

std::shared_ptr<const Criterion> importance_coverage(const SpacePtr& space, const Profile& profile, int64_t important) {
  const std::vector<double>& importance = profile.facts.importance;
  if (importance.empty()) fail("IDC: the profile was made without the importance of units");
  std::vector<int64_t> order(importance.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return importance[size_t(a)] > importance[size_t(b)]; });
  order.resize(std::min(order.size(), size_t(important)));
  std::vector<observers::QuantisedUnit> units;
  for (int64_t unit : order) {
    std::vector<float> values;
    for (int64_t row = 0; row < profile.traces().count(); ++row) values.push_back(profile.traces().input(row)[unit]);
    units.push_back(observers::quantise(unit, values));
  }
  return std::make_shared<observers::ImportanceCoverage>(space, profile.layer(), units);
}

std::shared_ptr<const Criterion> make_one(const adequacy::Wanted& wanted, const SpacePtr& space, const Profile* profile,
                                          int64_t important) {
  const auto whole = int64_t(wanted.parameter);
  const std::string& name = wanted.name;
  if (name == "NC") return std::make_shared<observers::NeuronCoverage>(space, wanted.parameter);
  if (name == "TKNC") return std::make_shared<observers::TopUnits>(space, whole);
  if (name == "TKNP") return std::make_shared<observers::TopPatterns>(space, whole);
  if (name == "MCDC") return std::make_shared<observers::SignPairs>(space);
  if (name == "NLC") return std::make_shared<observers::LayerSpread>(space);
  if (name == "LSC" || name == "DSC" || name == "MDSC")
    throw InputError(fmt::format("--criteria {}: surprise is not counted while inputs are made", name),
                     "netmend coverage measures it on the file afterwards.");
  if (!profile)
    throw InputError(
        fmt::format("--criteria {} compares inputs with training data", name),
        "Make a profile of it first: netmend coverage MODEL --data DATA --profile model.profile, then add --profile "
        "model.profile here.");
  if (name == "KMNC") return std::make_shared<observers::SectionCoverage>(space, profile->ranges(), whole);
  if (name == "NBC" || name == "SNAC")
    return std::make_shared<observers::CornerCoverage>(space, profile->ranges(), name == "NBC", wanted.parameter);
  check(name == "IDC", "a criterion of an unknown name");
  return importance_coverage(space, *profile, important);
}

}  // namespace

observers::Criteria::List make_criteria(const std::vector<adequacy::Wanted>& wanted, const SpacePtr& space,
                                        const Profile* profile, int64_t important) {
  observers::Criteria::List list;
  for (const adequacy::Wanted& one : wanted) list.push_back(make_one(one, space, profile, important));
  return list;
}

}  // namespace netmend::inputs
