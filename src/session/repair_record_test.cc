#include "session/repair_record.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "dataset/memory_dataset.h"
#include "observers/predictions.h"
#include "onnx/reader.h"
#include "onnx/writer.h"
#include "session/fingerprint.h"
#include "session/folder_for_test.h"
#include "zoo/zoo.h"

namespace netmend::session {
namespace {

/// Inputs that differ from each other and, for another seed, from those of another data set.
dataset::MemoryDataset numbered_data(int64_t count, uint64_t seed = 1) {
  at::manual_seed(seed);
  return {dataset::table_feature({"a", "b"}), at::randn({count, 2}), at::zeros({count}, at::kLong), {"one"}};
}

RepairRecord record_of(const dataset::Dataset& data, int64_t first, int64_t last) {
  RepairRecord record;
  record.parent = "0123", record.method = "arachne", record.data = "memory", record.units = {"fc1/3"};
  for (int64_t i = first; i < last; ++i) record.inputs.push_back(content_hash(data, i));
  return record;
}

/// The number in "saw about N of these".
int64_t said(const std::string& sentence) {
  const size_t at = sentence.find("saw about ");
  if (at == std::string::npos) return -1;
  std::string digits;
  for (char c : sentence.substr(at + 10, sentence.find(" of these") - at - 10))
    if (c != ',') digits += c;
  return std::stoll(digits);
}

TEST(RepairRecord, SaysHowManyInputsTheSearchSaw) {
  const dataset::MemoryDataset data = numbered_data(400), other = numbered_data(400, 2);
  model::Graph graph = zoo::make("mlp:2-3-2", {.seed = 1});
  EXPECT_EQ(seen_in_search(graph, data), "");
  record_of(data, 0, 100).write_to(graph);
  EXPECT_EQ(said(seen_in_search(graph, data)), 100) << seen_in_search(graph, data);
  EXPECT_EQ(seen_in_search(graph, other), "");
  record_of(data, 0, 400).write_to(graph);
  EXPECT_EQ(said(seen_in_search(graph, data)), 400);
  record_of(data, 0, 0).write_to(graph);
  EXPECT_EQ(seen_in_search(graph, data), "");
}

TEST(RepairRecord, OfManyInputsTheSentenceStaysNearTheTruth) {
  const dataset::MemoryDataset data = numbered_data(20000);
  model::Graph graph = zoo::make("mlp:2-3-2", {.seed = 1});
  record_of(data, 0, 10000).write_to(graph);  // of which 2000 hashes are kept
  EXPECT_LT(graph.metadata.at("netmend.repair").size(), 17000u);
  EXPECT_NEAR(double(said(seen_in_search(graph, data))), 10000, 3000);
}

TEST(RepairRecord, InputsThatOccurTwiceDoNotMakeItMore) {
  const dataset::MemoryDataset one = numbered_data(100);
  const at::Tensor x = one.read(std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}).inputs[0];
  at::manual_seed(3);
  const at::Tensor fresh = at::randn({60, 2});
  const dataset::MemoryDataset data(dataset::table_feature({"a", "b"}), at::cat({x, x, fresh}),
                                    at::zeros({80}, at::kLong), {"one"});
  model::Graph graph = zoo::make("mlp:2-3-2", {.seed = 1});
  record_of(data, 0, 20).write_to(graph);
  EXPECT_EQ(said(seen_in_search(graph, data)), 20);
}

TEST(RepairRecord, GoesThroughAFileWhateverWordsItHolds) {
  const FolderForTest folder;
  const dataset::MemoryDataset data = numbered_data(50);
  model::Graph graph = zoo::make("mlp:2-3-2", {.seed = 1});
  RepairRecord record = record_of(data, 0, 50);
  record.data = "csv:\"a,b\xff.csv\"\n", record.units = {"ü/1", "a\"b/2"}, record.seed = ~uint64_t(0);
  record.write_to(graph);
  onnx::write_model(graph, "m.onnx");
  const model::Graph read = onnx::read_model("m.onnx");
  const auto json = nlohmann::json::parse(read.metadata.at("netmend.repair"));
  EXPECT_EQ(json["seed"], ~uint64_t(0));
  EXPECT_EQ(json["units"][1], "a\"b/2");
  EXPECT_EQ(said(seen_in_search(read, data)), 50);
}

TEST(RepairRecord, WhatCannotBeReadIsSaid) {
  const dataset::MemoryDataset data = numbered_data(10);
  model::Graph graph = zoo::make("mlp:2-3-2", {.seed = 1});
  for (const char* text : {"", "[", "3", "{}", R"({"hashes": 3, "inputs": 1})", R"({"hashes": "00", "inputs": -1})",
                           R"({"hashes": "00", "inputs": "many"})"}) {
    graph.metadata["netmend.repair"] = text;
    EXPECT_NE(seen_in_search(graph, data).find("cannot be read"), std::string::npos) << text;
  }
  for (const char* text : {R"({"hashes": "zzzzzzzzz", "inputs": 1})", R"({"hashes": "", "inputs": 0})"}) {
    graph.metadata["netmend.repair"] = text;
    EXPECT_EQ(seen_in_search(graph, data), "") << text;
  }
}

TEST(RepairRecord, AnInputIsKnownByWhatIsSeenOfIt) {
  dataset::MemoryDataset plain = numbered_data(4), scaled = numbered_data(4);
  EXPECT_EQ(content_hash(plain, 2), content_hash(scaled, 2));
  EXPECT_NE(content_hash(plain, 2), content_hash(plain, 3));
  plain.set_rows({"a", "b", "c", "d"}), scaled.set_rows({"a", "b", "x", "d"});
  EXPECT_EQ(content_hash(plain, 0), content_hash(scaled, 0));
  EXPECT_NE(content_hash(plain, 2), content_hash(scaled, 2));
  EXPECT_EQ(content_hash(plain, 1), uint32_t(hash64("b")));
}

std::string fingerprint_of(const dataset::Dataset& data, const std::vector<double>& labels) {
  std::vector<observers::SampleRow> rows(labels.size());
  for (size_t i = 0; i < rows.size(); ++i) rows[i].label = labels[i];
  Fingerprint fingerprint;
  fingerprint.add(rows);
  return fingerprint.finish(data);
}

TEST(FingerprintOfData, ChangesWithLabelsSizeAndContentNotWithPreprocessing) {
  const std::vector<double> labels{0, 1, 2, 0};
  const std::vector<std::string> shown{"a", "b", "c", "d"};
  auto data = [&](double scale, std::vector<std::string> words) {
    dataset::MemoryDataset made(dataset::table_feature({"a"}), scale * at::arange(int64_t(words.size())).view({-1, 1}),
                                at::Tensor());
    made.set_rows(std::move(words));
    return made;
  };
  const std::string own = fingerprint_of(data(1, shown), labels);
  EXPECT_EQ(own.size(), 16u);
  EXPECT_EQ(fingerprint_of(data(255, shown), labels), own);
  EXPECT_NE(fingerprint_of(data(1, {"a", "b", "C", "d"}), labels), own);
  EXPECT_NE(fingerprint_of(data(1, {"a", "b", "c", "d", "e"}), labels), own);
  EXPECT_NE(fingerprint_of(data(1, shown), {0, 1, 2, 1}), own);
  EXPECT_NE(fingerprint_of(data(1, shown), {0, 1, 2}), own);
  EXPECT_NE(fingerprint_of(data(1, shown), {0, 12, 0}), fingerprint_of(data(1, shown), {0, 1, 20}));
  EXPECT_NE(fingerprint_of(data(1, shown), {1e-7, 1, 2, 0}), own);
  EXPECT_EQ(fingerprint_of(data(1, shown), {NAN, 1}), fingerprint_of(data(1, shown), {NAN, 1}));
}

}  // namespace
}  // namespace netmend::session
