#include "session/evaluate.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "onnx/writer.h"
#include "session/fingerprint.h"
#include "session/folder_for_test.h"
#include "session/model_info.h"
#include "session/run_findings.h"
#include "session/split.h"
#include "zoo/zoo.h"

namespace netmend::session {
namespace {

class Evaluate : public ::testing::Test {
 protected:
  FolderForTest folder;
  static constexpr int64_t kInputs = 3000;
  void SetUp() override { onnx::write_model(zoo::make("mlp:784-12-10", {.seed = 3}), "m.onnx"); }
  static Session open() {
    Request request;
    request.model = "m.onnx", request.test = "glyphs:test", request.limit = kInputs;
    request.quiet = true, request.out = "run";
    return Session(request);
  }
};

TEST_F(Evaluate, AgreesWithCountingAndWritesARowPerInput) {
  Session session = open();
  const Split& tests = session.test();
  const dataset::Batch batch = tests.data->read(stream::spread(kInputs, kInputs));
  const at::Tensor outputs = stream::run_few(tests.subject, {session.head().logits}, batch)[0].to(at::kDouble);
  const Evaluation done = evaluate(session, {true, false});
  EXPECT_EQ(done.result.samples, kInputs);
  EXPECT_EQ(done.of, kInputs);
  EXPECT_EQ(done.result.correct, (outputs.argmax(1) == batch.labels).sum().item<int64_t>());
  const at::Tensor own = at::log_softmax(outputs, 1).gather(1, batch.labels.unsqueeze(1));
  EXPECT_NEAR(done.result.loss, -own.mean().item<double>(), 1e-5);
  const std::string rows = read_file("run/samples.csv", 1 << 24), units = read_file("run/units.csv", 1 << 24);
  EXPECT_EQ(std::count(rows.begin(), rows.end(), '\n'), kInputs + 1);
  EXPECT_EQ(std::count(units.begin(), units.end(), '\n'), 12 + 10 + 1);
  ASSERT_EQ(session.traversals().size(), 1u);
  EXPECT_TRUE(session.traversals()[0].whole);
  Session other = open();
  EXPECT_EQ(evaluate(other, {}).fingerprint, done.fingerprint);
  // However many rows come at once: a comparison has them all, an evaluation a chunk at a time.
  std::vector<observers::SampleRow> labels(100);
  for (size_t i = 0; i < labels.size(); ++i) labels[i].label = double(i % 7);
  Fingerprint whole, parts, swapped;
  whole.add(labels);
  parts.add({labels.begin(), labels.begin() + 37});
  parts.add({labels.begin() + 37, labels.end()});
  std::swap(labels[3], labels[4]);
  swapped.add(labels);
  EXPECT_EQ(whole.finish(*tests.data), parts.finish(*tests.data));
  EXPECT_NE(whole.finish(*tests.data), swapped.finish(*tests.data));
}

TEST_F(Evaluate, ShardsPutTogetherAreTheWholeBitForBit) {
  Session whole = open();
  const Evaluation all = evaluate(whole, {});
  std::vector<std::string> parts;
  int64_t samples = 0;
  for (int i = 1; i <= 3; ++i) {
    Session session = open();
    parts.push_back("part" + std::to_string(i));
    samples += evaluate_shard(session, std::to_string(i) + "/3", parts.back(), false).samples;
  }
  EXPECT_EQ(samples, kInputs);
  const MergedShards merged = merge_shards(parts);
  EXPECT_EQ(merged.result.loss, all.result.loss);
  EXPECT_EQ(merged.result.confusion, all.result.confusion);
  EXPECT_EQ(merged.model, "m.onnx");
  EXPECT_THROW(merge_shards({parts[0], parts[2]}), InputError);
  EXPECT_THROW(merge_shards({parts[0], parts[0], parts[1]}), InputError);
  folder.write("damaged", "netmend");
  EXPECT_THROW(merge_shards({"damaged"}), InputError);
  Session session = open();
  EXPECT_THROW(evaluate_shard(session, "4/3", "part", false), InputError);
}

TEST_F(Evaluate, ModelInfoCountsWhatTheGraphHolds) {
  const ModelInfo info = describe_model("m.onnx", "", {});
  EXPECT_EQ(info.parameters, 784 * 12 + 12 + 12 * 10 + 10);
  ASSERT_EQ(info.layers.size(), 2u);
  EXPECT_EQ(info.layers[0].units, 12);
  EXPECT_EQ(info.layers[1].output_shape.back(), 10);
  EXPECT_TRUE(info.error.empty());
  EXPECT_EQ(info.outputs[0].output_kind, "logits or scores");
  const std::string input = info.inputs[0].name;
  const ModelInfo wrong = describe_model("m.onnx", "", {input + "=1x7"});
  EXPECT_FALSE(wrong.error.empty());
  ASSERT_FALSE(wrong.chain.empty());
  EXPECT_EQ(wrong.chain.front().op, "input");
  EXPECT_TRUE(wrong.chain.back().shape.empty());  // the node that stopped it
  for (const std::string& shape : std::vector<std::string>{input, input + "=1xx", "nothing=1x2"})
    EXPECT_THROW(describe_model("m.onnx", "", {shape}), InputError) << shape;
  EXPECT_THROW(describe_model("m.onnx", "no-such-value", {}), InputError);
}

TEST_F(Evaluate, FindingsOfRunsAreFoundByNameAndNewestFirst) {
  EXPECT_FALSE(has_findings());
  EXPECT_THROW(read_findings(""), InputError);
  auto write = [&](const std::string& run, const std::string& kind) {
    findings::Finding finding;
    finding.kind = kind, finding.where = "fc1", finding.title = "t", finding.related = {"dead-units:fc2"};
    const findings::Json json = {{"findings", {findings::to_json(finding)}}, {"accepted", findings::Json::array()}};
    std::filesystem::create_directories("netmend-runs/" + run);
    folder.write("netmend-runs/" + run + "/findings.json", json.dump());
  };
  write("20260101-000000-check", "dead-units");
  write("20260202-000000-check", "saturated-units");
  EXPECT_EQ(read_findings("").ids(), std::vector<std::string>{"saturated-units:fc1"});
  const RunFindings named = read_findings("20260101-000000-check");
  EXPECT_NE(named.find("dead-units:fc1"), nullptr);
  EXPECT_EQ(named.find("dead-units:fc2"), named.find("dead-units:fc1"));  // merged into it
  EXPECT_EQ(named.find("dead-units:fc3"), nullptr);
  folder.write("netmend-runs/20260202-000000-check/findings.json", "[");
  EXPECT_THROW(read_findings(""), InputError);
}

}  // namespace
}  // namespace netmend::session
