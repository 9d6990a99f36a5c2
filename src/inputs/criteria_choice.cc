#include "inputs/criteria_choice.h"

#include "base/error.h"

namespace netmend::inputs {
namespace {

using adequacy::CriterionRow;
using observers::Criterion;
using observers::Profile;
using observers::SpacePtr;

/// Throws InputError for what is missing, with what to do about it.
void require(const CriterionRow& row, const Profile* profile) {
  if (!row.make)
    throw InputError(fmt::format("--criteria {}: surprise is not measured while inputs are generated", row.name),
                     "netmend coverage measures it on the file afterwards.");
  if (row.needs.training && !profile)
    throw InputError(
        fmt::format("--criteria {} compares with training data", row.name),
        "Make a profile of it first: netmend coverage MODEL --data DATA --profile model.profile, then add --profile "
        "model.profile here.");
  if (row.needs.importance && profile->facts.importance.empty())
    fail("{}: the profile was made without the importance of units", row.name);
}

std::shared_ptr<const Criterion> make_one(const adequacy::Wanted& wanted, const SpacePtr& space, const Profile* profile,
                                          int64_t important) {
  const CriterionRow& row = adequacy::criterion_row(wanted.name);
  require(row, profile);
  observers::CriterionMaterials materials;
  if (profile) materials = profile->materials();
  materials.space = space;
  materials.parameter = wanted.parameter;
  materials.important = {important};
  observers::MadeCriteria made = row.make(materials);
  if (!made.skipped.empty()) fail("{}: {}", row.name, made.skipped);
  return made.list.at(0);
}

}  // namespace

observers::Criteria::List make_criteria(const std::vector<adequacy::Wanted>& wanted, const SpacePtr& space,
                                        const Profile* profile, int64_t important) {
  observers::Criteria::List list;
  for (const adequacy::Wanted& one : wanted) list.push_back(make_one(one, space, profile, important));
  return list;
}

}  // namespace netmend::inputs
