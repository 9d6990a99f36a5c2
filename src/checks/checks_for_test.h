// What tests of checks share: sessions in memory, rows of the table by name, what was said.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "checks/check.h"
#include "checks/checkup.h"
#include "checks/observed.h"
#include "checks/results.h"
#include "checks/simple_models.h"
#include "executor/layers.h"
#include "zoo/zoo.h"

namespace netmend::checks {

inline session::Request typed_request() {
  session::Request request;
  request.model = "model.onnx", request.data = "memory", request.quiet = true;
  return request;
}

/// As if a linear model of that accuracy had been fitted.
inline std::shared_ptr<const SimpleModels> linear_model_of(double accuracy) {
  auto models = std::make_shared<SimpleModels>();
  models->linear = stats::rate(std::llround(1000 * accuracy), 1000);
  return models;
}

/// For rows that do not run the network: one is there because a session names it.
inline session::Session& any_session() {
  static session::Session session = [] {
    std::shared_ptr<const dataset::Dataset> whole = dataset::open("glyphs:test");
    return session::Session(typed_request(), "model.onnx", zoo::make("mlp:784-4-10", {.seed = 1}),
                            dataset::subset(whole, {0, 1, 2, 3}));
  }();
  return session;
}

/// A network of two columns whose logits are those columns: it predicts class 0 where the first is the larger. Its
/// hidden units are the positive and negative parts of the columns.
inline model::Graph passing_columns() {
  model::Graph graph = zoo::make("mlp:2-4-2", {.seed = 5});
  const std::vector<model::Layer> layers = executor::find_layers(graph);
  at::Tensor parts = at::tensor({1.f, 0.f, -1.f, 0.f, 0.f, 1.f, 0.f, -1.f}).view({4, 2});
  at::Tensor sums = at::tensor({1.f, -1.f, 0.f, 0.f, 0.f, 0.f, 1.f, -1.f}).view({2, 4});
  auto put = [&](const model::Layer& layer, const at::Tensor& weight) {
    const bool units_first = graph.constant(layer.weight).size(0) == weight.size(0);
    graph.replace(layer.weight, units_first ? weight : weight.t().contiguous());
  };
  put(layers[0], parts), put(layers[1], sums);
  return graph;
}

/// Runs the named rows as the check-up does.
inline void run_rows(Observed& seen, Results& found, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const Check& row = find_check(name);
    if ((row.needs & findings::kTrain) && !seen.train) continue;
    if ((row.needs & findings::kGroups) && seen.test->data->info().groups.empty()) continue;
    if ((row.needs & findings::kClasses) && !seen.settings.by_class()) continue;
    if ((row.needs & findings::kNumbers) && seen.settings.task != observers::Task::kNumber) continue;
    if (!row.unless.empty() && found.has(row.unless)) continue;
    row.run(seen, found);
  }
}

inline const findings::Finding* find(const std::vector<findings::Finding>& found, const std::string& id_or_kind) {
  for (const findings::Finding& one : found)
    if (one.id() == id_or_kind || one.kind == id_or_kind) return &one;
  return nullptr;
}
inline bool raises(const Results& found, const std::string& id_or_kind) {
  return find(found.findings, id_or_kind) != nullptr;
}
inline std::string said(const std::vector<findings::Finding>& found) {
  std::string all;
  for (const findings::Finding& one : found)
    all += findings::level_name(one.level) + " " + one.id() + " " + one.brief + "\n";
  return all;
}

/// It is there, told in full, and its commands are filled.
inline findings::Finding raised(const Results& found, const std::string& id,
                                findings::Level least = findings::Level::kNote) {
  const findings::Finding* finding = find(found.findings, id);
  EXPECT_TRUE(finding) << id << " is not among\n" << said(found.findings);
  if (!finding) return {};
  EXPECT_GE(int(finding->level), int(least)) << said(found.findings);
  EXPECT_FALSE(finding->brief.empty() || finding->evidence.empty() || finding->title.empty());
  for (const Shell& next : finding->next) {
    const std::string& command = next.text();
    EXPECT_EQ(command.find('{'), std::string::npos) << command;
    EXPECT_EQ(command.rfind("netmend ", 0), 0u);
  }
  EXPECT_TRUE(std::isfinite(finding->value) && std::isfinite(finding->effect.gain) &&
              std::isfinite(finding->effect.local));
  return *finding;
}

}  // namespace netmend::checks
