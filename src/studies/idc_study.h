// Importance-driven coverage in any of its forms, from values of units that are already there.
#pragma once

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "observers/coverage/idc.h"
#include "studies/layer_chain.h"
#include "studies/protocol.h"

namespace netmend::studies {

/// Relevance of the units of a layer for the predictions of each class, added up over training inputs: classes × units.
using Relevance = at::Tensor;

class IdcStudy {
 public:
  /// All outlive it. `training`: values of the chain's space on training data.
  IdcStudy(const LayerChain& chain, const observers::UnitBatch& training, int64_t classes);

  /// The m most important units with their clusters, in the order that values are read in. `of_class` −1: of all.
  std::vector<observers::QuantisedUnit> units(size_t layer, const Relevance& relevance, int64_t of_class, int64_t m,
                                              const IdcForm& form);
  /// Where values are read. False: that layer has fewer units than their numbers ask for.
  bool readable(size_t layer, const std::vector<observers::QuantisedUnit>& units, const IdcForm& form) const;
  size_t read_at(size_t layer, const IdcForm& form) const { return form.layer_before ? layer - 1 : layer; }

 private:
  const observers::QuantisedUnit& quantised(size_t layer, int64_t unit, int64_t of_class, const IdcForm& form);
  const LayerChain& chain_;
  const observers::UnitBatch& training_;
  std::vector<std::vector<int64_t>> right_, all_;  ///< training inputs by class; the last: of all classes
  std::map<std::string, observers::QuantisedUnit> known_;
};

/// Combinations that were seen, of how many.
class Combinations {
 public:
  Combinations(const LayerChain& chain, std::vector<observers::QuantisedUnit> units);
  /// Rows of float inputs × units of the layer that is read.
  void add(const at::Tensor& values);
  double share() const { return double(seen_.size()) / all_; }
  double all() const { return all_; }

 private:
  observers::Idc criterion_;
  double all_;
  std::set<std::string> seen_;
};

/// Units by relevance, the most relevant first, equal ones by number. `of_class` −1: of all classes together.
std::vector<int64_t> by_relevance(const Relevance& relevance, int64_t of_class);

}  // namespace netmend::studies
