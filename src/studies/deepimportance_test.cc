#include "studies/deepimportance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "studies/deepimportance_paper.h"

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

}  // namespace
}  // namespace netmend::studies
