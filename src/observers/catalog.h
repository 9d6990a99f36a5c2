// All observers, in one table: the contract tests come from its rows. Coverage criteria are rows of their own table
// (coverage/table.h), each of which is an observer here.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/layer.h"
#include "observers/predictions.h"
#include "stream/observer.h"
#include "stream/pass.h"

namespace netmend::observers {

/// What an observer may be built from.
struct Materials {
  PredictionSettings predictions;
  std::vector<model::Layer> layers;
  const stream::Subject* subject = nullptr;  ///< for observers that run the network themselves
};

/// What a state has found, in the form that tests for all observers compare.
struct Found {
  int64_t inputs = 0;           ///< that were seen, NaN or not
  int64_t not_finite = 0;       ///< NaN and Inf that were counted; 0 for observers without such a count
  std::vector<double> numbers;  ///< all else
};

struct CatalogRow {
  std::string name;
  std::string about;       ///< one line for help and docs
  std::string state_size;  ///< constant, per unit, per input
  std::function<std::unique_ptr<stream::Observer>(const Materials&)> make;
  std::function<Found(const stream::State&)> found;
  bool counts_not_finite = false;
};

std::span<const CatalogRow> catalog();

}  // namespace netmend::observers
