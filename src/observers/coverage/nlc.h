// NLC, NeuraL Coverage: how widely the units of a layer spread together, as the mean absolute entry of their
// covariance, added up over layers. It has no settings and no upper end. Yuan et al.: Revisiting Neuron Coverage for
// DNN Testing, ICSE 2023.
//
// This is the value of all inputs together. A program that decides batch by batch whether to fold it in (as the
// authors' does while it makes inputs) gives another value, which depends on the order. Units of recurrent layers are
// means over time; where units are elements, each time step is a layer of its own, as in the authors' program, which
// also looks before the activation and at the output layer.
#pragma once

#include <vector>

#include "observers/coverage/criterion.h"
#include "observers/coverage/row.h"

namespace netmend::observers {

class Nlc : public Criterion {
 public:
  explicit Nlc(SpacePtr space) : space_(std::move(space)) {}
  std::string name() const override { return "NLC"; }
  std::unique_ptr<Tally> fresh() const override;
  Figure figure(const Tally& tally) const override;
  bool merges_exactly() const override { return false; }
  double bytes(int64_t inputs) const override;

 private:
  SpacePtr space_;
};

/// Units that spread together: a layer's, or those of one time step.
struct NlcGroup {
  std::string name;
  int64_t first = 0, stride = 1, units = 0;  ///< of the space: first, first + stride …
};
std::vector<NlcGroup> nlc_groups(const UnitSpace& space);
bool is_recurrent(const model::Layer& layer);

/// Inputs with a value that is not a number are left out of that layer.
class NlcTally : public Tally {
 public:
  explicit NlcTally(SpacePtr space);
  void add(const UnitBatch& batch) override;
  void merge(const Tally& later) override;
  void save(std::ostream& out) const override;
  void load(std::istream& in) override;

  struct Moments {
    double count = 0;
    at::Tensor mean;      ///< double units
    at::Tensor products;  ///< double units × units: sums of products of distances from the mean
    void merge(const Moments& later);
  };
  std::vector<Moments> layers;  ///< by group

 private:
  std::vector<NlcGroup> groups_;
};

CriterionRow nlc_row();

}  // namespace netmend::observers
