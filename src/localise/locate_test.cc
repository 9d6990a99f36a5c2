#include "localise/locate.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "edits/edit.h"
#include "executor/layers.h"
#include "faults/plant.h"
#include "training/network_for_test.h"

namespace netmend::localise {
namespace {

using training::digits;
using training::digits_session;
using training::TestFolder;

model::Graph damaged(const std::string& kind, uint64_t seed, std::string& unit) {
  model::Graph graph = digits().graph;
  faults::Fault fault = faults::plant(graph, executor::find_layers(graph), faults::find_kind(kind),
                                      {.strength = 2, .layer = "fc2", .seed = seed});
  edits::apply(graph, fault.edits);
  unit = fault.units.at(0);
  return graph;
}

TEST(Measures, NamesComeFromTheTableAndTheOldNameStillStands) {
  const std::string names = measure_names();
  for (const Measure& measure : measures()) EXPECT_NE(names.find(measure.name), std::string::npos);
  EXPECT_EQ(find_measure("counterfactual").measure, find_measure("ablation").measure);
  EXPECT_EQ(find_measure("D*2").name(), "dstar2");
  try {
    find_measure("tarantola");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean tarantula"), std::string::npos);
    EXPECT_NE(error.hint().find("ochiai"), std::string::npos);
  }
}

TEST(Measures, AllIsLedByAutoAndOthersAreComparedByCounts) {
  const std::vector<Choice> all = choices_of("all"), one = choices_of("gradient");
  EXPECT_EQ(all[0].name(), "auto");
  EXPECT_EQ(all.size(), measures().size());
  EXPECT_EQ(one[0].name(), "gradient");
  for (size_t i = 1; i < one.size(); ++i) EXPECT_EQ(one[i].measure->of, Measure::kCounts);
  for (const Choice& choice : one) EXPECT_NE(choice.name(), "random");
}

TEST(Locate, CountsAddUpAndScoresFollowTheFormula) {
  TestFolder folder;
  session::Session session = digits_session(digits().graph);
  LocateRequest request;
  request.measure = "ochiai", request.top = 5;
  const LocateResult found = locate(session, request);
  EXPECT_EQ(found.inputs, 1500);
  EXPECT_EQ(found.units, 40);
  ASSERT_EQ(found.rankings.at(0).units.size(), 40u);
  for (const ScoredUnit& unit : found.rankings[0].units) {
    EXPECT_EQ(unit.counts.as + unit.counts.ns, double(found.passing));
    EXPECT_EQ(unit.counts.af + unit.counts.nf, double(found.failing));
    const double below = std::sqrt(double(found.failing) * (unit.counts.af + unit.counts.as));
    EXPECT_NEAR(unit.score, below > 0 ? unit.counts.af / below : 0, 1e-12);
    EXPECT_TRUE(unit.saved.empty());
  }
  EXPECT_EQ(found.failing + found.passing, 1500);
  EXPECT_EQ(found.rankings[0].top, 5);
  EXPECT_DOUBLE_EQ(found.rankings[0].random_rank, 20.5);
  EXPECT_EQ(session.traversals().size(), 1u);
}

TEST(Locate, AblationAndGradientFindAPlantedUnit) {
  TestFolder folder;
  for (const char* kind : {"random-weights", "sign-flipped"}) {
    std::string unit;
    model::Graph graph = damaged(kind, 3, unit);
    session::Session session = digits_session(graph);
    const LocateResult found = locate(session, {});
    EXPECT_LE(found.rankings.at(0).rank_of(unit), 5) << kind << " " << unit;  // of 40
    const ScoredUnit& first = found.rankings[0].units[0];
    ASSERT_EQ(first.saved.size(), 4u);
    EXPECT_EQ(first.saved[0].first, "zero");
    EXPECT_EQ(first.saved[2].first, "sign-flip");
    if (std::string(kind) == "sign-flipped") {
      const ScoredUnit& planted = found.rankings[0].units[size_t(found.rankings[0].rank_of(unit)) - 1];
      EXPECT_GT(planted.saved[2].second, 0);
    }
  }
}

TEST(Locate, WorkersChangeNothing) {
  TestFolder folder;
  std::string unit, text[2];
  model::Graph graph = damaged("zeroed", 5, unit);
  for (int jobs : {1, 3}) {
    session::Request how;
    how.jobs = jobs;
    session::Session session = digits_session(graph, how);
    LocateResult found = locate(session, {});
    found.seconds = found.scoring_seconds = 0;
    text[jobs == 3] = to_json({}, found).dump();
  }
  EXPECT_EQ(text[0], text[1]);
}

TEST(Locate, ATargetNarrowsTheFailuresAndTheNextCommand) {
  TestFolder folder;
  const model::Graph& graph = digits().graph;
  session::Session session = digits_session(graph);
  LocateRequest request;
  request.measure = "wong2", request.on = "class=3";
  const LocateResult found = locate(session, request);
  session::Session whole = digits_session(graph);
  request.on = "";
  const LocateResult all = locate(whole, request);
  EXPECT_LT(found.failing, all.failing);
  EXPECT_LT(found.passing, 200);
  EXPECT_NE(all.next.at(0).text().find("--on confusion="), std::string::npos);
  EXPECT_NE(found.next.at(0).text().find("--on class=3"), std::string::npos);
  EXPECT_FALSE(found.target.empty());
}

TEST(Locate, JsonAndTableSayTheSame) {
  TestFolder folder;
  session::Session session = digits_session(digits().graph);
  LocateRequest request;
  request.measure = "all", request.top = 3, request.resamples = 20;
  const LocateResult found = locate(session, request);
  const nlohmann::ordered_json json = to_json(request, found);
  EXPECT_EQ(json["ranking"].size(), 3u);
  EXPECT_EQ(json["measures"].size(), measures().size());
  EXPECT_EQ(json["ranked_by"], "auto");
  EXPECT_EQ(json["ranking"][0]["unit"], found.rankings[0].units[0].unit);
  EXPECT_TRUE(json["ranking"][0]["saved"].contains("refit"));
  write_ranking("ranking.csv", found.rankings[0]);
  std::ifstream file("ranking.csv");
  std::string line;
  int64_t lines = 0;
  while (std::getline(file, line)) ++lines;
  EXPECT_EQ(lines, 41);
}

TEST(Locate, SaysWhatCannotBeLocated) {
  TestFolder folder;
  session::Session session = digits_session(digits().graph);
  LocateRequest request;
  request.layers = {"fc7"};
  EXPECT_THROW(locate(session, request), InputError);
  request = {}, request.on = "class=none";
  EXPECT_THROW(locate(session, request), InputError);
}

TEST(LocateWeights, NamesTheUnitThatOwnsEachWeight) {
  TestFolder folder;
  std::string unit;
  model::Graph graph = damaged("random-weights", 3, unit);
  session::Session session = digits_session(graph);
  LocateRequest request;
  request.layers = {"fc2"};
  const WeightResult found = locate_weights(session, request);
  ASSERT_FALSE(found.weights.empty());
  for (const LocatedWeight& one : found.weights) {
    EXPECT_EQ(one.layer, "fc2");
    const session::UnitPlace place = session.unit(one.unit);
    EXPECT_EQ(session.layers()[place.layer].name, "fc2");
    EXPECT_NE(one.index.find(','), std::string::npos);
    EXPECT_TRUE(std::isfinite(one.impact) && std::isfinite(one.gradient));
  }
  // No weight of the front is beaten in both.
  for (const LocatedWeight& a : found.weights)
    for (const LocatedWeight& b : found.weights) EXPECT_FALSE(b.impact > a.impact && b.gradient > a.gradient);
  EXPECT_EQ(to_json(found)["weights"].size(), found.weights.size());
  request.layers = {"fc9"};
  EXPECT_THROW(locate_weights(session, request), InputError);
}

}  // namespace
}  // namespace netmend::localise
