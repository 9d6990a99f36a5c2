#include "compare/baseline.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "base/file.h"
#include "dataset/memory_dataset.h"
#include "session/folder_for_test.h"

namespace netmend::compare {
namespace {

using observers::SampleRow;

observers::PredictionSettings settings_of(observers::Task task) {
  observers::PredictionSettings settings;
  settings.task = task;
  return settings;
}

Baseline random_baseline(size_t count, uint32_t seed, observers::Task task = observers::Task::kClasses) {
  std::mt19937 random(seed);
  Baseline baseline;
  baseline.model = "a \"b\" ü.onnx", baseline.fingerprint = "0123456789abcdef", baseline.metric = "accuracy";
  const bool number = task == observers::Task::kNumber;  // of which some are neither right nor wrong
  for (size_t i = 0; i < count; ++i) {
    // Long runs and single ones: most predictions are right, some stretches are mixed.
    const int64_t right = (i / 50) % 2 ? SampleRow::kRight : int64_t(random() % (number ? 3 : 2));
    baseline.predictions.push_back({right, double(random() % 1000) / 8});
    baseline.ids.push_back(random());
  }
  double right = 0;
  for (const auto& one : baseline.predictions) right += one.right == SampleRow::kRight;
  baseline.value = {right / double(std::max<size_t>(1, count)), 0.25, 0.75};
  if (number) baseline.metric = "mae", baseline.value = {3.5, 3, 4};
  return baseline;
}

TEST(BaselineFile, ReadsBackWhatWasWritten) {
  const session::FolderForTest folder;
  for (const size_t count : {size_t(1), size_t(2), size_t(49), size_t(51), size_t(1000)}) {
    for (const auto task : {observers::Task::kClasses, observers::Task::kNumber}) {
      const Baseline made = random_baseline(count, uint32_t(count), task);
      write_baseline("b.json", made, settings_of(task));
      const Baseline read = read_baseline("b.json");
      EXPECT_EQ(read.source, "b.json");
      EXPECT_EQ(read.model, made.model);
      EXPECT_EQ(read.fingerprint, made.fingerprint);
      EXPECT_EQ(read.metric, made.metric);
      EXPECT_EQ(read.value.low, made.value.low);
      EXPECT_EQ(read.ids, made.ids);
      ASSERT_EQ(read.predictions.size(), count);
      for (size_t i = 0; i < count; ++i) {
        EXPECT_EQ(read.predictions[i].right, made.predictions[i].right) << i;
        EXPECT_EQ(read.predictions[i].error, task == observers::Task::kNumber ? made.predictions[i].error : 0) << i;
      }
    }
  }
}

TEST(BaselineFile, IsSmallWhereMostIsRight) {
  const session::FolderForTest folder;
  Baseline baseline = random_baseline(0, 1);
  baseline.predictions.assign(100000, {SampleRow::kRight, 0});
  baseline.predictions[77777].right = SampleRow::kWrong;
  baseline.value = {0.99999, 0.9999, 1};
  write_baseline("b.json", baseline, settings_of(observers::Task::kClasses));
  EXPECT_LT(read_file("b.json").size(), 500u);
  EXPECT_EQ(read_baseline("b.json").predictions[77777].right, SampleRow::kWrong);
  EXPECT_EQ(read_baseline("b.json").predictions[77778].right, SampleRow::kRight);
}

TEST(BaselineFile, APredictionThatIsNoNumberAndAMetricThatIsNoneComeBack) {
  const session::FolderForTest folder;
  Baseline baseline = random_baseline(3, 1, observers::Task::kNumber);
  baseline.predictions[1].error = INFINITY;  // what a NaN prediction is kept as
  baseline.value = {NAN, NAN, NAN};
  write_baseline("b.json", baseline, settings_of(observers::Task::kNumber));
  const Baseline read = read_baseline("b.json");
  EXPECT_EQ(read.predictions.at(1).error, INFINITY);
  EXPECT_EQ(read.predictions.at(2).error, baseline.predictions[2].error);
  EXPECT_TRUE(std::isnan(read.value.value));
}

TEST(BaselineFile, AModelOfAnyNameIsWritten) {
  const session::FolderForTest folder;
  Baseline baseline = random_baseline(3, 1);
  baseline.model = "caf\xe9.onnx";  // not UTF-8, as old file systems have it
  write_baseline("b.json", baseline, settings_of(observers::Task::kClasses));
  EXPECT_EQ(read_baseline("b.json").predictions.size(), 3u);
}

nlohmann::json whole_baseline() {
  return {{"format", "netmend-baseline"},
          {"version", 1},
          {"model", "m.onnx"},
          {"fingerprint", "f"},
          {"metric", "accuracy"},
          {"value", {{"value", 2.0 / 3}, {"low", 0.4}, {"high", 0.8}}},
          {"inputs", 3},
          {"answers", "2*1 0"},
          {"ids", {1, 2, 3}}};
}

TEST(BaselineFile, DamageIsRefusedAsSuch) {
  const session::FolderForTest folder;
  folder.write("b.json", whole_baseline().dump());
  EXPECT_EQ(read_baseline("b.json").predictions.size(), 3u);
  for (const char* answers : {"", "3", "2*", "*1", "0*1", "-2*1", "2*1  0", "2*11", "99999999999*1", "x*1",
                              "1 9223372036854775807*1", "9223372036854775808*1", "1.5*1"}) {
    auto json = whole_baseline();
    json.erase("ids");
    json["answers"] = answers;
    folder.write("b.json", json.dump());
    EXPECT_THROW(read_baseline("b.json"), InputError) << answers;
  }
  const nlohmann::json whole = whole_baseline();
  for (const auto& item : whole.items())
    for (const nlohmann::json& other : std::vector<nlohmann::json>{nullptr, 7, "x", nlohmann::json::array({-1, "a"})}) {
      if (other.is_string() && (item.key() == "model" || item.key() == "fingerprint")) continue;
      auto json = whole_baseline();
      json[item.key()] = other;
      folder.write("b.json", json.dump());
      EXPECT_THROW(read_baseline("b.json"), InputError) << json.dump();
    }
  auto neither = whole_baseline();  // neither right nor wrong: only numbers are, and these have errors
  neither["answers"] = "1*1 1*2 0", neither["value"]["value"] = 1.0 / 3;
  folder.write("b.json", neither.dump());
  EXPECT_THROW(read_baseline("b.json"), InputError);
  auto untrue = whole_baseline();
  untrue["value"]["value"] = 0.9;
  folder.write("b.json", untrue.dump());
  EXPECT_THROW(read_baseline("b.json"), InputError);
  auto few = whole_baseline();
  few["ids"] = {1, 2};
  folder.write("b.json", few.dump());
  EXPECT_THROW(read_baseline("b.json"), InputError);
  auto errors = whole_baseline();
  errors["errors"] = {1, 2};
  folder.write("b.json", errors.dump());
  EXPECT_THROW(read_baseline("b.json"), InputError);
  auto many = whole_baseline();  // a few bytes that claim a billion inputs
  many["inputs"] = 1 << 30, many["answers"] = "1073741824*1", many.erase("ids");
  folder.write("b.json", many.dump());
  EXPECT_THROW(read_baseline("b.json"), InputError);
  const std::string deep = "{\"format\": " + std::string(200000, '[') + std::string(200000, ']') + "}";
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string("{"), std::string("null"), std::string("{}"), deep}) {
    folder.write("b.json", text);
    EXPECT_THROW(read_baseline("b.json"), InputError) << text.substr(0, 20);
  }
  EXPECT_THROW(read_baseline("gone.json"), InputError);
}

TEST(BaselineFolder, IsReadFromAnEvaluationAndRefusedWhenDamaged) {
  const session::FolderForTest folder;
  std::filesystem::create_directories("run");
  EXPECT_THROW(read_baseline("run"), InputError);
  folder.write("run/run.json", "{}");
  folder.write("run/samples.csv", "sample,id,correct,loss\n0,a,1,4\n1,\"b,c\",0,\n2,d,,nan\n");
  folder.write("run/eval.json",
               R"({"model": "m", "fingerprint": "f", "metric": "mae", "metrics": {"mae": {"value": 2, "low": 1}}})");
  const Baseline read = read_baseline("run");
  ASSERT_EQ(read.predictions.size(), 3u);
  EXPECT_EQ(read.predictions[0].right, SampleRow::kRight);
  EXPECT_EQ(read.predictions[0].error, 2);  // the loss of a number is its squared error
  EXPECT_EQ(read.predictions[1].right, SampleRow::kWrong);
  EXPECT_EQ(read.predictions[2].right, SampleRow::kNotJudged);
  EXPECT_EQ(read.predictions[2].error, INFINITY);  // as a prediction that is no number is kept elsewhere
  EXPECT_EQ(read.ids[1], id_hash("b,c"));
  EXPECT_EQ(read.value.value, 2);
  EXPECT_TRUE(std::isnan(read.value.high));
  for (const char* eval :
       {"[]", R"({"model": 3})", R"({"fingerprint": []})", "{", R"({"metrics": [1], "partial": true})",
        R"({"metric": "mae", "metrics": {"mae": {"value": "x"}}})"}) {
    folder.write("run/eval.json", eval);
    EXPECT_THROW(read_baseline("run"), InputError) << eval;
  }
  folder.write("run/eval.json", R"({"metric": "accuracy"})");  // without figures it can still be compared with
  EXPECT_EQ(read_baseline("run").predictions.size(), 3u);
  folder.write("run/eval.json", R"({"a": "x"})");
  EXPECT_THROW(read_baseline("run"), InputError);
  folder.write("run/samples.csv", "sample,correct,loss\n0,1,0\n");
  EXPECT_THROW(read_baseline("run"), InputError);
  folder.write("run/samples.csv", "sample,id,correct,loss\n");
  EXPECT_THROW(read_baseline("run"), InputError);
}

/// Names that are given, in any order.
class NamedData : public dataset::MemoryDataset {
 public:
  explicit NamedData(std::vector<std::string> names)
      : MemoryDataset(dataset::table_feature({"a"}), at::zeros({int64_t(names.size()), 1}), at::Tensor()),
        names_(std::move(names)) {}
  std::string id(int64_t sample) const override { return names_[size_t(sample)]; }

 private:
  std::vector<std::string> names_;
};

TEST(EarlierPredictions, AreFoundByPlaceOrByName) {
  Baseline baseline = random_baseline(3, 2);
  baseline.ids = {id_hash("a"), id_hash("b"), id_hash("c")};
  const NamedData same({"x", "y", "z"}), other({"c", "new", "a"}), more({"a", "b", "c", "d"});
  const EarlierPredictions by_place(baseline, same, false), by_name(baseline, other, true);
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(by_place.find(i), &baseline.predictions[size_t(i)]);
  EXPECT_EQ(by_name.find(0), &baseline.predictions[2]);
  EXPECT_EQ(by_name.find(1), nullptr);
  EXPECT_EQ(by_name.find(2), &baseline.predictions[0]);
  EXPECT_THROW(EarlierPredictions(baseline, more, false), InputError);
  EXPECT_NO_THROW(EarlierPredictions(baseline, more, true));
  baseline.ids.clear();
  EXPECT_THROW(EarlierPredictions(baseline, more, true), InputError);
}

}  // namespace
}  // namespace netmend::compare
