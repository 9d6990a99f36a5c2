#include "observers/target.h"

namespace netmend::observers {

Side Target::side(const SampleRow& row) const {
  if (row.right == SampleRow::kNotJudged || (label >= 0 && row.label != double(label))) return Side::kNeither;
  if (row.right == SampleRow::kRight) return !may_pass || may_pass(row.sample) ? Side::kPassing : Side::kNeither;
  if (predicted >= 0 && row.predicted != double(predicted)) return Side::kNeither;
  return !may_fail || may_fail(row.sample) ? Side::kFailing : Side::kNeither;
}

}  // namespace netmend::observers
