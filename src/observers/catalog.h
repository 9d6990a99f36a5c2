// All observers, in one table: help, docs and the contract tests come from its rows.
#pragma once

#include <memory>
#include <span>
#include <string_view>

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

struct CatalogRow {
  std::string_view name;
  std::string_view about;       ///< one line for help and docs
  std::string_view state_size;  ///< constant, per unit, per input
  std::unique_ptr<stream::Observer> (*make)(const Materials&);
};

std::span<const CatalogRow> catalog();

}  // namespace netmend::observers
