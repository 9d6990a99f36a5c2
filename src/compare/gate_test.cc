#include "compare/gate.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "compare/regressions.h"
#include "onnx/writer.h"
#include "session/folder_for_test.h"
#include "session/split.h"
#include "zoo/zoo.h"

namespace netmend::compare {
namespace {

using session::FolderForTest;

std::vector<Criterion> criteria_of(const std::string& gate) {
  return read_gate(session::parse_config("gate = " + gate + "\n", "netmend.toml"));
}

std::string refusal(const std::string& gate) {
  try {
    criteria_of(gate);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(GateLimits, AreReadWithTheirSignsAndShares) {
  const auto all = criteria_of(
      "{ accuracy = \">= 90 %\", \"recall[truck]\" = \"> 0.5\", log_loss = \"<= 2.5\", overall_drop = \"< 0.5\" }");
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].kind, Criterion::kMetric);
  EXPECT_DOUBLE_EQ(all[0].bound.number, 0.9);
  EXPECT_EQ(all[1].of, "truck");
  EXPECT_EQ(all[1].bound.sign, Limit::kAbove);
  EXPECT_EQ(all[2].bound.sign, Limit::kAtMost);
  EXPECT_EQ(all[3].kind, Criterion::kOverallDrop);
  EXPECT_TRUE(all[0].bound.holds(0.9));
  EXPECT_FALSE(all[1].bound.holds(0.5));
  EXPECT_TRUE(all[2].bound.holds(2.5));
  EXPECT_FALSE(all[3].bound.holds(0.5));
  for (const char* limit : {"<= 20 ms", "<= 20", "<= 0.02 s"}) {
    const Criterion latency = criteria_of(fmt::format("{{ latency = \"{}\" }}", limit))[0];
    EXPECT_EQ(latency.kind, Criterion::kLatency);
    EXPECT_DOUBLE_EQ(latency.bound.number, 20) << limit;
  }
}

TEST(GateLimits, WhatCannotBeMeantNamesTheLine) {
  for (const auto& [gate, words] : std::vector<std::pair<std::string, std::string>>{
           {"{ accurcy = \">= 0.9\" }", "did you mean accuracy"},
           {"{ accuracy = \"0.9\" }", "should be a limit"},
           {"{ accuracy = \">= 90\" }", "should be a limit"},   // a share, or with %
           {"{ log_loss = \"<= 5 %\" }", "should be a limit"},  // no share
           {"{ recall = \">= 0.9\" }", "needs a class"},
           {"{ \"accuracy[truck]\" = \">= 0.9\" }", "not COLUMN=VALUE"},
           {"{ accuracy = \">= nan\" }", "should be a limit"},
           {"{ latency = \"<= 5 %\" }", "<= 5 ms"}}) {
    EXPECT_NE(refusal(gate).find(words), std::string::npos) << gate << ": " << refusal(gate);
    EXPECT_NE(refusal(gate).find("netmend.toml, line 1"), std::string::npos) << refusal(gate);
  }
}

TEST(GateLimits, TheValueDecidesAndStrictTheWorseEnd) {
  const Criterion least = criteria_of("{ accuracy = \">= 0.90\" }")[0], most = criteria_of("{ mae = \"<= 2\" }")[0];
  const stats::Estimate near{0.91, 0.89, 0.93}, far{0.97, 0.96, 0.98}, error{2.1, 1.9, 2.3};
  EXPECT_TRUE(decide(least, near, 1000, false).pass);
  EXPECT_FALSE(decide(least, near, 1000, true).pass);
  EXPECT_TRUE(decide(least, near, 1000, false).unclear);
  EXPECT_FALSE(decide(least, far, 1000, true).unclear);
  EXPECT_TRUE(decide(least, far, 1000, true).pass);
  EXPECT_FALSE(decide(most, error, 1000, false).pass);
  EXPECT_TRUE(decide(most, {1.9, 1.7, 2.1}, 1000, false).pass);
  EXPECT_FALSE(decide(most, {1.9, 1.7, 2.1}, 1000, true).pass);
  // Twice as near as the interval is wide takes four times the inputs: three times as many more.
  EXPECT_EQ(decide(least, near, 1000, false).more, 3000);
  EXPECT_EQ(decide(least, {0.9, 0.88, 0.92}, 1000, false).more, 0);
  EXPECT_EQ(doubt_words(decide(least, near, 1000, false)), "unclear: about 3,000 more inputs would decide it");
}

/// Whatever limit and interval: the twin that looks at every number of inputs in turn agrees.
TEST(GateLimits, TheInputsThatWouldDecideAreThoseWhoseIntervalClearsTheLimit) {
  for (const char* sign : {">=", ">", "<=", "<"})
    for (const double value : {0.3, 0.45, 0.55, 0.7})
      for (const double reach : {0.02, 0.1, 0.25}) {
        const Criterion one = criteria_of(fmt::format("{{ accuracy = \"{} 0.5\" }}", sign))[0];
        const stats::Estimate figure{value, value - reach, value + reach};
        const Ruling ruling = decide(one, figure, 100, false);
        EXPECT_EQ(ruling.unclear, value - reach < 0.5 && value + reach > 0.5);
        EXPECT_EQ(ruling.pass, (value > 0.5) == (sign[0] == '>'));
        if (!ruling.unclear) {
          EXPECT_EQ(ruling.more, 0);
          EXPECT_EQ(decide(one, figure, 100, true).pass, ruling.pass);  // strict only changes what is unclear
          continue;
        }
        EXPECT_FALSE(decide(one, figure, 100, true).pass);
        auto narrowed = [&](int64_t more) { return reach * std::sqrt(100.0 / double(100 + more)); };
        EXPECT_LE(narrowed(ruling.more), std::abs(value - 0.5) + 1e-9);
        EXPECT_GT(narrowed(ruling.more - 1), std::abs(value - 0.5) - 1e-4);
      }
}

TEST(GateLimits, AFigureThatIsNoNumberNeverPasses) {
  for (const char* limit : {">= 0", "> 0", "<= 1", "< 1"})
    for (const bool strict : {false, true}) {
      const Ruling ruling =
          decide(criteria_of(fmt::format("{{ accuracy = \"{}\" }}", limit))[0], {NAN, NAN, NAN}, 0, strict);
      EXPECT_FALSE(ruling.pass) << limit;
      EXPECT_EQ(ruling.more, 0);
      EXPECT_EQ(doubt_words(ruling), "");
    }
}

TEST(GateLimits, NamesInBracketsMayHoldAnything) {
  for (const std::string name : {"truck", "a:b", "a]b", "[x]", "a=b", "ü", "two words", "a,b"}) {
    session::Config config;
    config.gate = {{"recall[" + name + "]", ">= 0.5"}};
    EXPECT_EQ(read_gate(config).at(0).of, name);
  }
  for (const char* limit : {">=", "", ">= ", "= 0.5", "=> 0.5", ">= 0.5 0.6", ">= 0,5", ">= 1e400", ">= %", ">= -0.1",
                            ">= 101 %", ">>= 0.5", "≥ 0.5"}) {
    EXPECT_NE(refusal(fmt::format("{{ accuracy = \"{}\" }}", limit)), "") << limit;
  }
  for (const char* name : {"overall_drop[x]", "must_pass[x]", "latency[x]", "recall[]", "recall[x", "", "]", "["}) {
    EXPECT_NE(refusal(fmt::format("{{ \"{}\" = \"<= 0.5\" }}", name)), "") << name;
  }
}

TEST(GateDocuments, NamesThatWouldBreakADocumentAreEscaped) {
  GateReport report;
  report.title = "m|<b>.onnx", report.inputs = 3;
  Ruling ruling;
  ruling.criterion.name = "recall[a|b<c>&\"d\"]", ruling.criterion.limit = ">= 0.5";
  ruling.criterion.kind = Criterion::kRecall;
  ruling.figure = {0.25, 0.1, 0.4}, ruling.about = "line\nbreak `code`";
  report.rulings = {ruling};
  const std::string xml = gate_junit(report), markdown = gate_markdown(report);
  EXPECT_NE(xml.find("name=\"recall[a|b&lt;c&gt;&amp;&quot;d&quot;] &gt;= 0.5\""), std::string::npos) << xml;
  EXPECT_EQ(xml.find("line\nbreak"), std::string::npos);
  EXPECT_NE(markdown.find("a\\|b\\<c\\>"), std::string::npos) << markdown;
  // One line per row, and five cells in each.
  const std::string row = markdown.substr(markdown.find("| **fail**"));
  EXPECT_EQ(std::count(row.begin(), row.end(), '\n'), 1);
  EXPECT_FALSE(report.pass());
  const auto json = gate_json(report);
  EXPECT_EQ(nlohmann::json::parse(json.dump())["criteria"][0]["criterion"], ruling.criterion.name);
  EXPECT_EQ(json["criteria"][0]["verdict"], "fail");
  report.rulings.clear();
  EXPECT_TRUE(report.pass());
}

/// Drawn digits and a network that was not trained: some predictions are right by chance.
class GateRun : public ::testing::Test {
 protected:
  FolderForTest folder;
  static constexpr int64_t kInputs = 400;

  void SetUp() override { onnx::write_model(zoo::make("mlp:784-16-10", {.seed = 5}), "m.onnx"); }

  session::Session open(const std::string& gate, const std::string& more = "") {
    folder.write("netmend.toml",
                 "model = { file = \"m.onnx\" }\ndata = { test = \"glyphs:test\" }\ngate = " + gate + "\n" + more);
    session::Request request;
    request.limit = kInputs, request.quiet = true, request.out = "run";
    return session::Session(request);
  }

  /// Labels and predictions, computed without the pass.
  static std::pair<at::Tensor, at::Tensor> slowly(session::Session& session) {
    const session::Split& tests = session.test();
    const dataset::Batch batch = tests.data->read(stream::spread(kInputs, kInputs));
    return {batch.labels, stream::run_few(tests.subject, {session.head().output}, batch)[0].argmax(1)};
  }
};

TEST_F(GateRun, FiguresAreThoseOfCounting) {
  session::Session session =
      open("{ accuracy = \">= 0.99\", \"recall[3]\" = \">= 0\", \"precision[4]\" = \">= 0\", auc = \"> 0\" }");
  const auto [labels, predicted] = slowly(session);
  const GateRequest request;
  const GateReport report = run_gate(session, gate_criteria(session, request), request);
  ASSERT_EQ(report.rulings.size(), 4u);
  auto share = [](const at::Tensor& hits, const at::Tensor& of) {
    return (hits & of).sum().item<double>() / std::max(1.0, of.sum().item<double>());
  };
  const at::Tensor right = labels == predicted, all = at::ones_like(right);
  EXPECT_DOUBLE_EQ(report.rulings[0].figure.value, share(right, all));
  EXPECT_DOUBLE_EQ(report.rulings[1].figure.value, share(right, labels == 3));
  EXPECT_EQ(report.rulings[1].inputs, (labels == 3).sum().item<int64_t>());
  EXPECT_DOUBLE_EQ(report.rulings[2].figure.value, share(right, predicted == 4));
  EXPECT_FALSE(report.pass());
  EXPECT_EQ(report.failed(), 1);
  EXPECT_EQ(report.next, "netmend failures");
  EXPECT_EQ(gate_json(report)["pass"], false);
  EXPECT_EQ(session.traversals().size(), 1u);
}

TEST_F(GateRun, AcceptedInputsAreCountedApartAndSaid) {
  session::Session first = open("{ must_pass = \"golden.csv\" }");
  const auto [labels, predicted] = slowly(first);
  std::vector<std::string> right, wrong;
  for (int64_t i = 0; i < kInputs; ++i)
    (labels[i].item<int64_t>() == predicted[i].item<int64_t>() ? right : wrong).push_back(first.test().data->id(i));
  ASSERT_GT(right.size(), 1u);
  ASSERT_GT(wrong.size(), 2u);
  folder.write("golden.csv", "id\n" + right[0] + "\n" + wrong[0] + "\n" + wrong[1] + "\n");
  const GateRequest request;
  const GateReport strict = run_gate(first, gate_criteria(first, request), request);
  EXPECT_FALSE(strict.pass());
  EXPECT_EQ(strict.rulings[0].figure.value, 2);
  EXPECT_EQ(strict.next, "netmend failures --on inputs=golden.csv");

  folder.write("known.csv", "id\n" + wrong[0] + "\n" + wrong[1] + "\n");
  session::Session second = open("{ must_pass = \"golden.csv\", accuracy = \">= 0\" }",
                                 "accept.\"inputs:known.csv\" = { reason = \"nobody can tell\" }\n");
  const GateReport report = run_gate(second, gate_criteria(second, request), request);
  EXPECT_TRUE(report.pass());
  EXPECT_EQ(report.rulings[0].accepted, 2);
  EXPECT_NE(gate_markdown(report).find("2 more are wrong and accepted as known"), std::string::npos);
  EXPECT_EQ(report.rulings[1].accepted, 2);  // and they are in the accuracy all the same
  EXPECT_DOUBLE_EQ(report.rulings[1].figure.value, double(right.size()) / double(kInputs));
  EXPECT_EQ(report.accepted, 2);
  EXPECT_EQ(gate_json(report)["criteria"][0]["accepted"], 2);

  session::Session ended = open("{ must_pass = \"golden.csv\" }",
                                "accept.\"inputs:known.csv\" = { reason = \"x\", until = \"2020-01-01\" }\n");
  EXPECT_FALSE(run_gate(ended, gate_criteria(ended, request), request).pass());
}

TEST_F(GateRun, ABlockerIsAFailureInEveryDocument) {
  session::Session session = open("{ accuracy = \">= 0\" }");
  const preflight::Blocker blocker{"preprocessing", "scale", "Inputs are <not> scaled.", "98 % against 10 %", "", ""};
  const GateReport report = blocked_gate(session, {}, blocker);
  EXPECT_FALSE(report.pass());
  EXPECT_EQ(gate_json(report)["pass"], false);
  EXPECT_NE(gate_json(report)["reason"].get<std::string>().find("preprocessing:scale"), std::string::npos);
  EXPECT_NE(gate_markdown(report).find("not passed"), std::string::npos);
  const std::string xml = gate_junit(report);
  EXPECT_NE(xml.find("failures=\"1\""), std::string::npos);
  EXPECT_NE(xml.find("&lt;not&gt;"), std::string::npos);
}

TEST_F(GateRun, AnAcceptedBlockerDoesNotStopIt) {
  const preflight::Blocker blocker{"preprocessing", "scale", "Inputs are not scaled.", "98 % against 10 %", "", ""};
  session::Session strict = open("{ accuracy = \">= 0\" }");
  EXPECT_TRUE(stops_gate(strict, blocker));
  session::Session known =
      open("{ accuracy = \">= 0\" }", "accept.\"preprocessing:scale\" = { reason = \"trained so\" }\n");
  EXPECT_FALSE(stops_gate(known, blocker));
  session::Session ended =
      open("{ accuracy = \">= 0\" }", "accept.\"preprocessing:scale\" = { reason = \"x\", until = \"2020-01-01\" }\n");
  EXPECT_TRUE(stops_gate(ended, blocker));
}

TEST_F(GateRun, LatencyIsMeasuredOnlyWhenALimitAsksForIt) {
  session::Session session = open("{ latency = \"<= 100 s\", accuracy = \">= 0\" }");
  const GateReport report = run_gate(session, gate_criteria(session, {}), {});
  EXPECT_TRUE(report.rulings[0].pass);
  EXPECT_GT(report.rulings[0].figure.value, 0);
  EXPECT_LE(report.rulings[0].figure.low, report.rulings[0].figure.value);
  EXPECT_LE(report.rulings[0].figure.value, report.rulings[0].figure.high);
  EXPECT_EQ(report.rulings[0].inputs, 256);
  session.finish(0, 0);
  EXPECT_TRUE(nlohmann::json::parse(read_file("run/run.json")).contains("latency"));

  session::Session without = open("{ accuracy = \">= 0\" }");
  run_gate(without, gate_criteria(without, {}), {});
  without.folder("gate");
  without.finish(0, 0);
  EXPECT_FALSE(nlohmann::json::parse(read_file("run/run.json")).contains("latency"));
  session::Session fast = open("{ latency = \"<= 0.0000001 ms\" }");
  const GateReport failed = run_gate(fast, gate_criteria(fast, {}), {});
  EXPECT_FALSE(failed.pass());
  EXPECT_EQ(failed.next, "netmend check --latency");
}

TEST_F(GateRun, DropsNeedAReferenceAndAgreeWithCompare) {
  onnx::write_model(zoo::make("mlp:784-16-10", {.seed = 9}), "old.onnx");
  session::Session session = open("{ overall_drop = \"<= 100\", class_drop = \"<= 100\" }");
  EXPECT_THROW(gate_criteria(session, {}), InputError);
  const GateRequest request{"old.onnx"};
  const GateReport report = run_gate(session, gate_criteria(session, request), request);
  const Regressions found = find_regressions(session, {"old.onnx"});
  EXPECT_EQ(found.whole.samples, kInputs);
  EXPECT_NEAR(report.rulings[0].figure.value, -100 * found.whole.change().value, 1e-9);
  double worst = -INFINITY;
  for (const NamedFlips& one : found.classes) worst = std::max(worst, -100 * one.count.change().value);
  EXPECT_NEAR(report.rulings[1].figure.value, worst, 1e-9);
  EXPECT_DOUBLE_EQ(found.margin, 1);  // of the gate
  EXPECT_DOUBLE_EQ(margin_of(0.002, session.config()), 0.002);
}

TEST_F(GateRun, RegressionsAreThoseOfCounting) {
  onnx::write_model(zoo::make("mlp:784-16-10", {.seed = 9}), "old.onnx");
  session::Session session = open("{ accuracy = \">= 0\" }");
  const auto [labels, predicted] = slowly(session);
  session::Request other = session.request();
  other.model = "old.onnx", other.out = "other";
  session::Session older(other);
  const at::Tensor before = slowly(older).second == labels, after = predicted == labels;
  const Regressions found = find_regressions(session, {"old.onnx", false, -1, "baseline.json"});
  EXPECT_EQ(found.whole.fixed, (~before & after).sum().item<int64_t>());
  EXPECT_EQ(found.whole.broken, (before & ~after).sum().item<int64_t>());
  EXPECT_EQ(found.classes[7].count.samples, (labels == 7).sum().item<int64_t>());
  EXPECT_DOUBLE_EQ(found.margin, 0.005);
  const std::string flips = read_file("run/flips.csv", 1 << 20);
  EXPECT_EQ(std::count(flips.begin(), flips.end(), '\n'), found.whole.fixed + found.whole.broken + 1);
  // What was kept says the same as the model.
  const Regressions again = find_regressions(older, {"baseline.json"});
  EXPECT_EQ(again.whole.fixed, found.whole.broken);
  EXPECT_EQ(again.whole.broken, found.whole.fixed);
}

}  // namespace
}  // namespace netmend::compare
