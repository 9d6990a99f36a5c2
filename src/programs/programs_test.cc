#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "programs/analysis.h"
#include "programs/metric.h"
#include "programs/outcome.h"
#include "programs/report.h"

namespace netmend::programs {
namespace {

sandbox::Outcome ended(int status, const std::string& output, const std::string& errors,
                       sandbox::Ending ending = sandbox::Ending::kExited) {
  sandbox::Outcome run;
  run.ending = ending, run.status = status, run.output = output, run.errors = errors, run.seconds = 1;
  return run;
}

TEST(Outcome, TheLastLineThatFitsGivesTheMetric) {
  EXPECT_EQ(find_metric("accuracy 0.5\nloss 3\naccuracy 0.75\nbye\n", "accuracy ([0-9.]+)"), 0.75);
  EXPECT_EQ(find_metric("12.5\n", "[0-9.]+"), 12.5);
  EXPECT_FALSE(find_metric("accuracy nan", "accuracy (\\S+)"));
  EXPECT_FALSE(find_metric("nothing", "accuracy ([0-9.]+)"));
  EXPECT_THROW(parse_metric("accuracy ([0-9"), InputError);
}

TEST(Metric, StandsInAFileOrARecordToo) {
  const MetricSource json = parse_metric("json:out/m.json:test.accuracy");
  EXPECT_EQ(json.kind, MetricSource::kJson);
  EXPECT_EQ(json.file, "out/m.json");
  EXPECT_EQ(json_metric(R"({"test": {"accuracy": 0.25}})", json.key), 0.25);
  EXPECT_FALSE(json_metric(R"({"test": {"accuracy": "high"}})", json.key));
  EXPECT_FALSE(json_metric("nothing", json.key));
  EXPECT_EQ(parse_metric("record:val_accuracy").key, "val_accuracy");
  for (const char* bad : {"json:", "json:file", "json:file:", "record:"}) EXPECT_THROW(parse_metric(bad), InputError);
}

TEST(Outcome, EveryEndingHasItsName) {
  using sandbox::Ending;
  const double metric = 0.5;
  const std::string good = "accuracy 0.5\n";
  EXPECT_EQ(classify(ended(0, good, ""), metric, false).outcome, "normal");
  EXPECT_EQ(classify(ended(0, "", ""), {}, false).outcome, "no-metric");
  EXPECT_EQ(classify(ended(0, good, "", Ending::kTimeout), metric, false).outcome, "hang");
  EXPECT_EQ(classify(ended(0, good, "", Ending::kMemory), metric, false).outcome, "out-of-memory");
  EXPECT_EQ(classify(ended(0, good, "", Ending::kOutput), metric, false).outcome, "killed");
  EXPECT_EQ(classify(ended(11, "", "", Ending::kSignal), metric, false).outcome, "killed");
  EXPECT_EQ(classify(ended(1, "", "Traceback\nMemoryError\n"), metric, false).outcome, "out-of-memory");
}

TEST(Outcome, CrashesHaveTheirCauseWhereItCanBeTold) {
  auto cause = [](const std::string& statement, const std::string& error, bool condition = false) {
    const RunOutcome run =
        classify(ended(1, "",
                       "Traceback (most recent call last):\n  File \"p.py\", line 3, in <module>\n    " + statement +
                           "\n" + error + "\n"),
                 {}, condition);
    EXPECT_EQ(run.outcome, "crash");
    return run.exception + "|" + run.cause;
  };
  EXPECT_EQ(cause("raise ValueError('no')", "ValueError: no"), "ValueError|raise-or-assert");
  EXPECT_EQ(cause("assert x", "AssertionError"), "AssertionError|raise-or-assert");
  EXPECT_EQ(cause("y = a - b", "TypeError: unsupported operand type(s) for -: 'str' and 'str'"),
            "TypeError|type-error");
  EXPECT_EQ(cause("net(x)", "RuntimeError: mat1 and mat2 shapes cannot be multiplied (3x4 and 5x6)"),
            "RuntimeError|dimension-mismatch");
  EXPECT_EQ(cause("x[3]", "IndexError: list index out of range"), "IndexError|dimension-mismatch");
  EXPECT_EQ(cause("f(y)", "NameError: name 'y' is not defined"), "NameError|assignment");
  EXPECT_EQ(cause("f(y)", "NameError: name 'y' is not defined", true), "NameError|assignment-in-if");
  EXPECT_EQ(cause("f(y)", "torch.cuda.OddError: something"), "OddError|");
}

TEST(Expected, CountsAllRunsOnTheWorkersThereAre) {
  EXPECT_EQ(expected_seconds({10, true, 100, 50}, 2, 1), 2 * (10 + 3 + 100 + 51));
  EXPECT_EQ(expected_seconds({10, true, 100, 50}, 2, 4), 2 * (3 + 3 + 25 + 13 + 1));
  EXPECT_EQ(expected_seconds({0, false, 1, 0}, 2, 8), 2);
}

InjectedBug bug(const std::string& op, const std::string& outcome, double metric = NAN, double seconds = 2,
                std::vector<std::string> phases = {"learning"}) {
  InjectedBug one;
  one.id = "p.py:1:1:" + op + ":0", one.op = op, one.phases = std::move(phases), one.diff = "--- a\n+++ b\n-x\n+y\n";
  one.run.outcome = outcome, one.run.seconds = seconds;
  if (!std::isnan(metric)) one.run.metric = metric;
  return one;
}

InjectResult study() {
  InjectResult result;
  for (int i = 0; i < 10; ++i) {
    RunOutcome run;
    run.outcome = "normal", run.metric = 0.8 + 0.001 * (i % 3), run.seconds = 2 + 0.01 * i;
    result.clean.push_back(run);
  }
  for (int i = 0; i < 30; ++i) result.bugs.push_back(bug("NVR", "normal", 0.8 + 0.001 * (i % 3)));
  for (int i = 0; i < 12; ++i) result.bugs.push_back(bug("ComOR", "crash"));
  result.bugs.push_back(bug("zero-grad-removed", "normal", 0.5));
  result.bugs.push_back(bug("label-noise", "normal", 0.801, 2.02));
  result.bugs.push_back(bug("LogOR", "hang"));
  return result;
}

TEST(Analysis, CountsComparesAndRanks) {
  const InjectResult result = study();
  const Analysis found = analyse(result);
  EXPECT_EQ(found.all.of("normal"), 32);
  EXPECT_EQ(found.all.of("crash"), 12);
  EXPECT_FALSE(found.clean.deterministic);
  EXPECT_GT(found.clean.runs_needed, 0);
  // Only the one whose metric fell is noticed; of the others the bug of deep learning comes first.
  EXPECT_EQ(found.survivors.size(), 31u);
  EXPECT_EQ(result.bugs[found.survivors[0].bug].op, "label-noise");
  EXPECT_NE(found.survivors[0].check.find("over-fit one batch"), std::string::npos);
}

TEST(Analysis, FindingsOfThePaperGetAVerdictEach) {
  const Analysis found = analyse(study());
  ASSERT_EQ(found.findings.size(), 9u);
  EXPECT_EQ(found.findings[0].verdict, "holds here");  // 32 of 45 normal
  EXPECT_EQ(found.findings[4].verdict, "holds here");  // ComOR crashes, others do not
  EXPECT_EQ(found.findings[5].verdict, "not enough data");
  for (const RestatedFinding& one : found.findings) EXPECT_FALSE(one.test.empty());
}

TEST(Analysis, TimesAreProcessorTimesWhereAllAreKnown) {
  InjectResult result = study();
  EXPECT_FALSE(compares_processor_time(result));
  for (RunOutcome& run : result.clean) run.processor = 1.5, run.seconds = 100;
  EXPECT_TRUE(compares_processor_time(result));
  EXPECT_EQ(analyse(result).clean.time, 1.5);
  EXPECT_EQ(time_of(result.bugs[0].run, true), result.bugs[0].run.seconds);  // it has none of its own
}

TEST(Analysis, PairsOfOperatorsAndPhasesAreCompared) {
  InjectResult result = study();
  for (int i = 0; i < 20; ++i) {
    result.bugs.push_back(bug("BVR", "normal", 0.5 + 0.001 * (i % 3), 2, {"construction"}));
    result.bugs.push_back(bug("ArOR", "normal", 0.8 + 0.001 * (i % 3), 2, {"preprocessing"}));
  }
  const Analysis found = analyse(result);
  ASSERT_EQ(found.pairs.size(), 3u);  // of NVR, BVR and ArOR; the others have one normal bug or none
  for (const PairTest& pair : found.pairs) EXPECT_EQ(pair.metric_p < 0.05, pair.a == "BVR" || pair.b == "BVR");
  EXPECT_EQ(found.phase_pairs.size(), 3u);
  EXPECT_LT(found.phases_metric.p, 0.05);
  EXPECT_EQ(found.findings[6].verdict, "holds here");
}

TEST(Analysis, TheDoctorIsScoredOnSurvivors) {
  InjectResult result = study();
  result.repeats = true;
  for (InjectedBug& one : result.bugs) one.doctor = DoctorSaid{true, {}};
  result.bugs[0].doctor->kinds = {"gradients-accumulate"};  // metric 0.8, that of the clean run with the same seed
  result.bugs[1].doctor->kinds = {"learning-rate"};         // metric 0.801
  const Analysis found = analyse(result);
  EXPECT_EQ(found.doctor.asked, int64_t(found.survivors.size()));
  EXPECT_EQ(found.doctor.caught, 2);
  EXPECT_EQ(found.doctor.changed_caught, 1);
  EXPECT_EQ(found.unchanged, 10);
  for (const Survivor& one : found.survivors) {
    EXPECT_EQ(one.check == "netmend watch: gradients-accumulate", one.bug == 0);
    EXPECT_EQ(one.unchanged, result.bugs[one.bug].run.metric == 0.8);
  }
}

TEST(Analysis, ChildProcessesAreSaid) {
  InjectResult result = study();
  EXPECT_EQ(children_words(result), "");
  result.children = 2, result.untraced = 1;
  const std::string words = children_words(result);
  EXPECT_NE(words.find("2 child processes of the program: lines that they execute count too; 1 Python program that it "
                       "starts was not seen"),
            std::string::npos);
  EXPECT_NE(report_text(result, analyse(result)).find(words), std::string::npos);
}

TEST(Analysis, TheReportSaysHowPhasesOverlap) {
  InjectResult result = study();
  result.bugs.push_back(bug("BVR", "normal", 0.8, 2, {"construction", "learning"}));
  const std::string text = report_text(result, analyse(result));
  EXPECT_NE(text.find("1 of 46 run in more than one, and the totals of the phases add up to 47"), std::string::npos);
}

TEST(Analysis, TheReportHasAllTablesAndFigures) {
  const InjectResult result = study();
  const Analysis found = analyse(result);
  const std::string text = report_text(result, found);
  for (const char* part : {"Table IV", "Table V", "Table VI", "Survivors", "holds here", "```diff"})
    EXPECT_NE(text.find(part), std::string::npos) << part;
  EXPECT_EQ(figures(result, found).size(), 12u);
  for (const auto& [name, svg] : figures(result, found))
    EXPECT_NE(text.find("(" + name + ")"), std::string::npos) << name;
  EXPECT_NE(text.find("The JSON file beside this one has all 31 under `survivors`"), std::string::npos);
  const auto json = to_json(result, found);
  EXPECT_EQ(json["mutants"].size(), result.bugs.size());
  EXPECT_EQ(json["clean"]["runs"], 10);
}

}  // namespace
}  // namespace netmend::programs
