// The kinds of MC/DC that look at values: a pair of units in connected layers is covered when two inputs exist between
// which no sign of the lower layer changes but, where its kind is a sign, that of the one unit; where the kind is a
// value, the lower unit's size changes by the factor at least; and the upper unit's sign flips, or, keeping its sign,
// its size changes by the factor. Sun, Huang, Kroening: Testing Deep Neural Networks, 2018, for single units. A sign is
// + where the value is above 0. Sign and sign is MCDC (mcdc.h).
//
// Exact: inputs are kept, and looked at in groups of equal signs of the lower layer. Inputs with a value that is not a
// number in either layer are left out there.
#pragma once

#include "observers/coverage/criterion.h"
#include "observers/coverage/row.h"
#include "observers/coverage/traces.h"

namespace netmend::observers {

enum class McdcKind { kValueSign, kSignValue, kValueValue };  ///< of the lower unit, of the upper one

class ValueMcdc : public Criterion {
 public:
  using OwnTally = TraceTally;
  ValueMcdc(SpacePtr space, McdcKind kind, double factor);
  std::string name() const override;
  std::unique_ptr<Tally> fresh() const override { return traces_.fresh(); }
  Figure figure(const Tally& tally) const override;
  double bytes(int64_t inputs) const override { return traces_.bytes(inputs); }

 private:
  SpacePtr space_;
  McdcKind kind_;
  double factor_;
  Traces traces_;  ///< all layers
};

CriterionRow vsc_row();
CriterionRow svc_row();
CriterionRow vvc_row();

}  // namespace netmend::observers
