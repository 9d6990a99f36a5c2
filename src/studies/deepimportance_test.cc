#include "studies/deepimportance.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "adequacy/assess.h"
#include "adequacy/learn.h"
#include "inputs/case_for_test.h"
#include "localise/candidates.h"
#include "stream/layers.h"
#include "studies/deepimportance_paper.h"
#include "studies/erase_relevant.h"

namespace netmend::studies {
namespace {

using Json = nlohmann::ordered_json;

TEST(RankCorrelation, FollowsRanksAndSharesThoseOfEqualValues) {
  EXPECT_DOUBLE_EQ(rank_correlation({1, 2, 3, 4}, {10, 20, 300, 4000}), 1);
  EXPECT_DOUBLE_EQ(rank_correlation({1, 2, 3, 4}, {4, 3, 2, 1}), -1);
  EXPECT_DOUBLE_EQ(rank_correlation({1, 2, 3}, {1, 3, 2}), 0.5);
  EXPECT_NEAR(rank_correlation({1, 2, 3}, {1, 1, 2}), std::sqrt(3) / 2, 1e-12);
  EXPECT_TRUE(std::isnan(rank_correlation({1, 2, 3}, {5, 5, 5})));
  EXPECT_TRUE(std::isnan(rank_correlation({}, {})));
}

TEST(Paper, GivesWhatItGives) {
  EXPECT_DOUBLE_EQ(paper::diversity("lenet4", "IDC10", "U_DI")->mean, 18.1);
  EXPECT_DOUBLE_EQ(paper::diversity("cifar", "KMNC", "U_O")->mean, 36.8);
  EXPECT_FALSE(paper::diversity("cifar", "LSC", "U_O"));  // it ran out of time
  EXPECT_DOUBLE_EQ(*paper::effectiveness("lenet5", "DSC", "+JSMA"), 85.7);
  EXPECT_FALSE(paper::effectiveness("lenet5", "DSC", "+noise"));
  EXPECT_DOUBLE_EQ(*paper::layer("lenet5", "fc2", "U_O+DI"), 43.4);
  EXPECT_DOUBLE_EQ(paper::reaction("lenet1", "important")->mean, 0.28);
}

/// A store as two finished runs leave it; `di` is the IDC that U_DI reaches.
Json report_of(const std::string& name, double di) {
  std::string path = testing::TempDir() + name;
  for (const char* end : {"", ".lock", "-wal", "-shm"}) std::filesystem::remove(path + end);
  Store store(path, "deepimportance", kDeepImportanceVersion);
  for (int run : {1, 2})
    for (const std::string& trial : deepimportance_trials()) {
      Json json = {{"accuracy", 0.9}, {"tests", 10}, {"training", 100}, {"inputs", 10}, {"confidence", 0.8}};
      for (const char* criterion : {"IDC6", "IDC8", "IDC10", "IDC12", "NC", "KMNC"})
        json["figures"][criterion] = trial == "U_DI" ? di : 0.2 + 0.02 * run;
      for (const char* kind : {"important", "random"}) json[kind] = {{"mean", kind[0] == 'i' ? 2.0 : 1.0}, {"sd", 0.5}};
      json["m"] = 4;
      json["layers"] = {{{"layer", "conv1"}, {"U_O", 0.5}, {"U_O+DI", 0.6}},
                        {{"layer", "conv2"}, {"U_O", 0.4}, {"U_O+DI", 0.6}}};
      store.put("p|lenet1|" + std::to_string(run) + "|" + trial, json.dump());
    }
  return report_deepimportance(store, "p", {"lenet1", "lenet5"}, 2);
}

std::string verdict(const Json& report, const std::string& id) {
  for (const Json& row : report["conclusions"])
    if (row["id"] == id) return row["verdict"];
  return "missing";
}

TEST(DeepImportanceReport, SaysPlainlyWhatHolds) {
  Json above = report_of("above.db", 0.3), below = report_of("below.db", 0.1), equal = report_of("equal.db", 0.23);
  EXPECT_EQ(above["networks"].size(), 1u);  // of lenet5 there is nothing
  EXPECT_EQ(verdict(above, "di-covers-more"), "holds");
  EXPECT_EQ(verdict(below, "di-covers-more"), "does not hold");
  EXPECT_EQ(verdict(equal, "di-covers-more"), "does not hold");
  EXPECT_EQ(verdict(above, "important-react"), "holds");
  EXPECT_EQ(verdict(above, "important-react-scaled"), "not tested");
  EXPECT_EQ(verdict(above, "deeper-layers"), "does not hold");
  EXPECT_EQ(verdict(above, "deeper-react"), "holds");
  EXPECT_EQ(verdict(above, "attacks-raise"), "does not hold");
  for (const Json& row : above["table3"])
    if (row["criterion"] == "IDC6" && row["set"] == "U_O") {
      EXPECT_NEAR(row["ours"]["mean"].get<double>(), 23, 1e-9);
      EXPECT_NEAR(row["ours"]["sd"].get<double>(), std::sqrt(2.0), 1e-9);
      EXPECT_DOUBLE_EQ(row["paper"]["mean"].get<double>(), 34.6);
    }
  EXPECT_NE(deepimportance_text(below).find("does not hold"), std::string::npos);
  EXPECT_NE(deepimportance_text(above).find("23.0 ±1.4 (34.6 ±2.2)"), std::string::npos);
  EXPECT_EQ(above.dump().find("nan"), std::string::npos);
}

/// Made-up pictures, labelled as a small network predicts them except for every seventh.
inputs::TestCase made_up_case(int64_t count, uint64_t seed, int64_t channels = 1, bool last = false) {
  at::Tensor raw = inputs::random_bytes({count, channels, 8, 8}, seed);
  dataset::Preprocess scaled;
  scaled.scale = 1.0 / 255;
  auto data = [&](const at::Tensor& labels) { return inputs::picture_data(raw, labels, 4, scaled, last); };
  inputs::TestCase first(inputs::small_network(5, channels, last), data(at::zeros({count}, at::kLong)));
  at::Tensor labels = at::tensor(first.chosen.predictions, at::kLong);
  for (int64_t i = 0; i < count; i += 7) labels[i] = (labels[i].item<int64_t>() + 1) % 4;
  return inputs::TestCase(inputs::small_network(5, channels, last), data(labels));
}

TEST(EraseRelevant, TurnsTheMostRelevantTenth) {
  for (bool last : {false, true}) {
    inputs::TestCase about = made_up_case(6, 9, 3, last);
    inputs::Originals originals = inputs::read_originals(*about.network, about.subject, about.chosen, 0, 6);
    at::Tensor relevance = (inputs::random_bytes(originals.units.sizes().vec(), 4) - 100) / 50;
    relevance[5].zero_();  // nothing is above any percentile
    inputs::Settings settings;
    settings.relevance = [&](const inputs::Originals&) { return relevance; };
    inputs::Changed changed = erase_relevant(*about.network, originals, settings);
    auto image = [&](const at::Tensor& t, int64_t row) { return last ? t[row].permute({2, 0, 1}) : t[row]; };
    for (int64_t row = 0; row < 6; ++row) {
      std::vector<double> sums;
      for (int64_t y = 0; y < 8; ++y)
        for (int64_t x = 0; x < 8; ++x) {
          double sum = 0;
          for (int64_t c = 0; c < 3; ++c) sum += image(relevance, row)[c][y][x].item<double>();
          sums.push_back(sum);
        }
      std::vector<double> sorted = sums;
      std::sort(sorted.begin(), sorted.end());
      int64_t turned = 0;
      for (int64_t place = 0; place < 64; ++place) {
        const bool chosen = sums[size_t(place)] > sorted[57] + 1e-6;  // 6 of 64 are above
        turned += chosen;
        for (int64_t c = 0; c < 3; ++c) {
          const float now = image(changed.units, row)[c][place / 8][place % 8].item<float>();
          const float was = image(originals.units, row)[c][place / 8][place % 8].item<float>();
          EXPECT_EQ(now, !chosen ? was : sums[size_t(place)] > sorted[63] / 2 ? 0.F : 1.F);
        }
      }
      EXPECT_LE(turned, 6);
      EXPECT_EQ(turned == 0, row == 5);
    }
  }
}

TEST(DeepImportance, GoesOnAndAgreesWithCoverage) {
  std::string path = testing::TempDir() + "small.db";
  for (const char* end : {"", ".lock", "-wal", "-shm"}) std::filesystem::remove(path + end);
  inputs::TestCase train = made_up_case(300, 1), test = made_up_case(70, 2);
  TrainedNetwork network{"lenet5", train.subject, test.subject, train.settings, test.settings};
  DeepImportanceOptions options;
  options.attacked = 10, options.carlini_steps = 5, options.jobs = 1;
  auto strip = [](const std::optional<std::string>& text) {
    Json json = Json::parse(text.value());
    json.erase("seconds");
    return json;
  };
  std::vector<std::string> progress;
  auto hear = [&](const std::string& line) { progress.push_back(line); };
  Store store(path, "deepimportance", kDeepImportanceVersion);
  store.put("a|layers", "{}");  // what is there is not done again
  run_deepimportance(store, "a", network, options, hear);
  EXPECT_EQ(progress.size(), deepimportance_trials().size() - 1);
  EXPECT_EQ(store.find("a|layers"), "{}");
  progress.clear();
  run_deepimportance(store, "a", network, options, hear);
  EXPECT_TRUE(progress.empty());
  options.jobs = 3;  // a trial depends on its key, not on workers
  run_deepimportance(store, "b", network, options, hear);
  for (const std::string& trial : deepimportance_trials())
    if (trial != "layers") {
      EXPECT_EQ(strip(store.find("a|" + trial)), strip(store.find("b|" + trial))) << trial;
    }

  // The same figures as `netmend coverage` would give.
  auto space = observers::make_unit_space(
      test.subject,
      localise::candidates(stream::find_layers(test.subject), test.subject.graph, test.head, test.settings.outputs),
      {});
  const size_t layer = space->layers().size() - 1;
  adequacy::LearnOptions how;
  how.pass.quiet = true;
  adequacy::LearnedProfile learned = adequacy::learn(train.subject, train.settings, space, layer, how);
  adequacy::AssessOptions all;
  all.criteria = adequacy::parse_criteria("IDC,NC,KMNC,NBC,SNAC,TKNC,NLC,LSC,DSC");
  all.pass.quiet = true;
  adequacy::Assessment found = adequacy::assess(test.subject, test.settings, space, &learned.profile, all);
  Json figures = strip(store.find("a|U_O"))["figures"];
  std::vector<std::string> names = {"IDC6", "IDC8", "IDC10", "IDC12"};
  size_t compared = 0, important = 0;
  for (const observers::Figure& figure : found.figures) {
    const std::string name = figure.name == "IDC" ? names.at(important++) : figure.name;
    EXPECT_NEAR(figures[name].get<double>(), figure.value, 1e-12) << name;
    ++compared;
  }
  EXPECT_EQ(compared, figures.size());
  for (const char* set : {"U_S", "U_DI", "+FGSM"})
    for (const auto& [name, value] : figures.items())
      if (name != "NLC") {
        EXPECT_GE(strip(store.find(std::string("a|") + set))["figures"][name].get<double>(), value.get<double>());
      }
}

}  // namespace
}  // namespace netmend::studies
