#include "programs/analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "stats/distributions.h"
#include "stats/moments.h"

namespace netmend::programs {
namespace {

constexpr double kLevel = 0.05;
const std::vector<std::string> kPhases = {"preprocessing", "construction", "learning"};
constexpr const char* kHolds = "holds here";
constexpr const char* kFails = "does not hold here";
constexpr const char* kUnclear = "not enough data";

struct Values {
  std::vector<double> metric, time;
};

Values clean_values(const InjectResult& result) {
  Values values;
  for (const RunOutcome& run : result.clean)
    if (run.metric)
      values.metric.push_back(*run.metric), values.time.push_back(time_of(run, compares_processor_time(result)));
  return values;
}

CleanSummary summarise(const InjectResult& result) {
  const Values values = clean_values(result);
  stats::Moments metric, time, seconds;
  for (double x : values.metric) metric.add(x);
  for (double x : values.time) time.add(x);
  for (const RunOutcome& run : result.clean) seconds.add(run.seconds);
  CleanSummary out{metric.count(), metric.mean(), std::sqrt(metric.sample_variance()), metric.low(), metric.high(),
                   seconds.mean(), time.mean(),   std::sqrt(time.sample_variance())};
  out.deterministic = metric.low() == metric.high();
  const double change = 0.01 * std::abs(out.mean);
  if (!out.deterministic && change > 0)
    out.runs_needed = int64_t(std::ceil(2 * std::pow((1.96 + 0.84) * out.deviation / change, 2)));
  return out;
}

void count(OutcomeCounts& into, const InjectedBug& bug) { ++into.counts[bug.run.outcome], ++into.total; }

OutcomeCounts& named(std::vector<OutcomeCounts>& list, const std::string& name) {
  for (OutcomeCounts& one : list)
    if (one.name == name) return one;
  return list.emplace_back(OutcomeCounts{name, {}, 0});
}

/// Values beyond one and a half box lengths from the quartiles.
struct Fences {
  double low = -INFINITY, high = INFINITY;
  explicit Fences(std::vector<double> values) {
    if (values.size() < 4) return;
    std::sort(values.begin(), values.end());
    auto quantile = [&](double share) {
      const double place = share * double(values.size() - 1);
      const auto below = size_t(place);
      const size_t above = std::min(below + 1, values.size() - 1);
      return values[below] + (place - double(below)) * (values[above] - values[below]);
    };
    const double box = quantile(0.75) - quantile(0.25);
    low = quantile(0.25) - 1.5 * box, high = quantile(0.75) + 1.5 * box;
  }
  bool outlier(double x) const { return x < low || x > high; }
};

class Analysing {
 public:
  explicit Analysing(const InjectResult& result)
      : result_(result), processor_(compares_processor_time(result)), clean_(clean_values(result)) {}

  Analysis run() {
    out_.clean = summarise(result_);
    out_.all.name = "all";
    for (const std::string& phase : kPhases) out_.phases.push_back({phase, {}, 0});
    for (const InjectedBug& bug : result_.bugs) {
      count(out_.all, bug), count(named(out_.operators, bug.op), bug);
      for (const std::string& phase : bug.phases) count(named(out_.phases, phase), bug);
      if (bug.run.outcome == "crash") ++out_.causes[bug.run.cause];
    }
    compare_bugs();
    compare_groups(
        out_.operators, [](const InjectedBug& bug, const std::string& name) { return bug.op == name; }, out_.tests,
        out_.pairs, out_.anova_metric, out_.anova_time);
    compare_groups(
        out_.phases,
        [](const InjectedBug& bug, const std::string& name) {
          return std::find(bug.phases.begin(), bug.phases.end(), name) != bug.phases.end();
        },
        out_.phase_tests, out_.phase_pairs, out_.phases_metric, out_.phases_time);
    find_survivors();
    restate();
    return std::move(out_);
  }

 private:
  std::vector<size_t> normal(const std::function<bool(const InjectedBug&)>& takes) const {
    std::vector<size_t> list;
    for (size_t i = 0; i < result_.bugs.size(); ++i)
      if (result_.bugs[i].run.metric && takes(result_.bugs[i])) list.push_back(i);
    return list;
  }
  Values values_of(const std::vector<size_t>& bugs) const {
    Values values;
    for (size_t i : bugs) values.metric.push_back(*result_.bugs[i].run.metric), values.time.push_back(time(i));
    return values;
  }
  Values values_where(const std::function<bool(const InjectedBug&)>& takes) const { return values_of(normal(takes)); }

  double time(size_t bug) const { return time_of(result_.bugs[bug].run, processor_); }
  bool unchanged(size_t bug) const {
    const InjectedBug& one = result_.bugs[bug];
    return result_.repeats && one.run.metric && size_t(one.twin) < result_.clean.size() &&
           one.run.metric == result_.clean[size_t(one.twin)].metric;
  }

  void compare_bugs() {
    std::vector<double> metric, time;
    for (size_t i : normal([](const InjectedBug&) { return true; })) {
      const RunOutcome& run = result_.bugs[i].run;
      Against one{i, stats::one_against(*run.metric, clean_.metric), stats::one_against(this->time(i), clean_.time)};
      out_.unchanged += unchanged(i);
      metric.push_back(one.metric.p), time.push_back(one.time.p);
      out_.normal.push_back(one);
    }
    metric = stats::holm(metric), time = stats::holm(time);
    for (size_t i = 0; i < out_.normal.size(); ++i)
      out_.normal[i].metric_p = metric[i], out_.normal[i].time_p = time[i];
  }

  /// Each group against clean runs, all pairs, and all together.
  void compare_groups(const std::vector<OutcomeCounts>& groups,
                      const std::function<bool(const InjectedBug&, const std::string&)>& belongs,
                      std::vector<GroupTest>& tests, std::vector<PairTest>& pairs, stats::Anova& anova_metric,
                      stats::Anova& anova_time) {
    std::vector<std::vector<double>> metrics, times;
    for (const OutcomeCounts& one : groups) {
      const Values values = values_where([&](const InjectedBug& bug) { return belongs(bug, one.name); });
      metrics.push_back(values.metric), times.push_back(values.time);
      tests.push_back({one.name, int64_t(values.metric.size()), stats::t_test(values.metric, clean_.metric),
                       stats::t_test(values.time, clean_.time)});
    }
    for (size_t a = 0; a < groups.size(); ++a)
      for (size_t b = a + 1; b < groups.size(); ++b)
        if (metrics[a].size() >= 2 && metrics[b].size() >= 2)
          pairs.push_back({groups[a].name, groups[b].name, stats::t_test(metrics[a], metrics[b]),
                           stats::t_test(times[a], times[b])});
    correct(tests), correct(pairs);
    anova_metric = stats::one_way_anova(metrics), anova_time = stats::one_way_anova(times);
  }
  template <typename Row>
  static void correct(std::vector<Row>& rows) {
    std::vector<double> metric, time;
    for (const Row& row : rows) metric.push_back(row.metric.p), time.push_back(row.time.p);
    metric = stats::holm(metric), time = stats::holm(time);
    for (size_t i = 0; i < rows.size(); ++i) rows[i].metric_p = metric[i], rows[i].time_p = time[i];
  }

  /// Nothing noticed: neither metric nor time tells. Those come first that are bugs of deep learning, run in the
  /// learning phase, and cost some of the metric all the same.
  void find_survivors() {
    for (const Against& one : out_.normal) {
      if (one.noticed()) continue;
      const InjectedBug& bug = result_.bugs[one.bug];
      double danger = bug.op.find('-') != std::string::npos ? 2 : 0;
      for (const std::string& phase : bug.phases)
        danger += phase == "learning" ? 1 : phase == "construction" ? 0.5 : 0.25;
      const bool same = unchanged(one.bug);
      const double usual =
          result_.seeded && size_t(bug.twin) < clean_.metric.size() ? clean_.metric[size_t(bug.twin)] : out_.clean.mean;
      if (usual != 0) danger += std::clamp(std::abs((usual - *bug.run.metric) / usual) * 20, 0.0, 2.0);
      out_.survivors.push_back({one.bug, same ? danger / 4 : danger, same, check_for(bug)});
      if (bug.doctor) score_doctor(*bug.doctor, same);
    }
    std::stable_sort(out_.survivors.begin(), out_.survivors.end(),
                     [](const Survivor& a, const Survivor& b) { return a.danger > b.danger; });
  }

  static std::string check_for(const InjectedBug& bug) {
    if (!bug.doctor || bug.doctor->kinds.empty()) return cheap_check(bug.op);
    return "netmend watch: " + bug.doctor->kinds.front();
  }

  void score_doctor(const DoctorSaid& said, bool same) {
    DoctorScore& score = out_.doctor;
    const bool caught = !said.kinds.empty();
    ++score.asked, score.recorded += said.recorded, score.caught += caught;
    if (!same) ++score.changed, score.changed_caught += caught;
    for (const std::string& kind : said.kinds) ++score.kinds[kind];
  }

  // ---- the nine findings

  void add(int number, const std::string& claim, const std::string& verdict, const std::string& test) {
    out_.findings.push_back({number, claim, verdict, test});
  }

  static bool is_one_of(const std::string& op, const std::set<std::string>& names) { return names.count(op) > 0; }

  void restate() {
    first();
    outliers(2, "outliers of the metric lie below, not above", clean_.metric, true);
    outliers(3, "outliers of the time lie above, not below", clean_.time, false);
    fourth();
    fifth();
    sixth();
    seventh();
    eighth();
    ninth();
  }

  void first() {
    const stats::Estimate share = out_.all.share("normal");
    add(1, "more than half of the buggy versions show no error",
        out_.all.total < 10 || (share.low <= 0.5 && share.high >= 0.5) ? kUnclear
        : share.value > 0.5                                            ? kHolds
                                                                       : kFails,
        fmt::format("{} of {} normal: {:.1f} % (95 %: {:.1f}–{:.1f})", out_.all.of("normal"), out_.all.total,
                    100 * share.value, 100 * share.low, 100 * share.high));
  }

  void outliers(int number, const std::string& claim, const std::vector<double>&, bool metric) {
    const Values all = values_where([](const InjectedBug&) { return true; });
    const std::vector<double>& values = metric ? all.metric : all.time;
    const Fences fences(values);
    int64_t below = 0, above = 0;
    for (double x : values) below += x<fences.low, above += x> fences.high;
    const double p = stats::sign_test(below, above);
    const bool right = metric ? below > above : above > below;
    add(number, claim,
        p >= kLevel ? kUnclear
        : right     ? kHolds
                    : kFails,
        fmt::format("{} outliers below, {} above the fences (sign test p = {:.3g})", below, above, p));
  }

  /// The median with its interval by ranks, against what clean runs spread over: two deviations, a hundredth at least.
  void fourth() {
    std::vector<double> all = values_where([](const InjectedBug&) { return true; }).metric;
    std::sort(all.begin(), all.end());
    const size_t n = all.size();
    const double near = std::max(2 * out_.clean.deviation, 0.01 * std::abs(out_.clean.mean));
    const double reach = 0.98 * std::sqrt(double(n));
    const double low = n ? all[size_t(std::max(0.0, std::floor(double(n) / 2 - reach)))] : NAN,
                 high = n ? all[size_t(std::min(double(n - 1), std::ceil(double(n) / 2 + reach)))] : NAN;
    const double from = out_.clean.mean - near, to = out_.clean.mean + near;
    const stats::Comparison test = stats::t_test(all, clean_.metric);
    add(4, "versions that neither crash nor hang have a median metric close to that of clean ones",
        n < 10                      ? kUnclear
        : low >= from && high <= to ? kHolds
        : high < from || low > to   ? kFails
                                    : kUnclear,
        fmt::format("median {:.4g} (95 %: {:.4g}–{:.4g}), clean {:.4g} ± {:.2g}; Welch's test of all {}: p = {:.3g}, "
                    "d = {:.2f}",
                    n ? all[n / 2] : NAN, low, high, out_.clean.mean, near, n, test.p, test.effect));
  }

  /// A share of two groups by Fisher's exact test, one side.
  void shares(int number, const std::string& claim, int64_t hits, int64_t count, int64_t other_hits,
              int64_t other_count, const std::string& what) {
    const double more = stats::fisher_tail(hits, count, hits + other_hits, count + other_count),
                 less = stats::fisher_tail(other_hits, other_count, hits + other_hits, count + other_count);
    const bool empty = count == 0 || other_count == 0;
    add(number, claim,
        empty || (more >= kLevel && less >= kLevel) ? kUnclear
        : more < kLevel                             ? kHolds
                                                    : kFails,
        fmt::format("{}: {} of {} against {} of {} (Fisher's exact test p = {:.3g})", what, hits, count, other_hits,
                    other_count, more));
  }

  void fifth() {
    int64_t hits = 0, count = 0, other_hits = 0, other_count = 0;
    for (const OutcomeCounts& one : out_.operators) {
      const bool own = is_one_of(one.name, {"ComOR", "MemOR", "LogOR"});
      (own ? hits : other_hits) += one.of("crash"), (own ? count : other_count) += one.total;
    }
    shares(5, "ComOR, MemOR and LogOR crash more often than other operators", hits, count, other_hits, other_count,
           "crashes");
  }

  void sixth() {
    const std::set<std::string> low = {"NVR", "LogOR", "ComOR"};
    const Values own = values_where([&](const InjectedBug&bug) { return is_one_of(bug.op, low); }),
                 others = values_where([&](const InjectedBug&bug) { return !is_one_of(bug.op, low); }),
                 comparisons = values_where([](const InjectedBug&bug) { return bug.op == "ComOR"; }),
                 rest = values_where([](const InjectedBug&bug) { return bug.op != "ComOR"; });
    const stats::Comparison metric = stats::t_test(own.metric, others.metric),
                            time = stats::t_test(comparisons.time, rest.time);
    const bool unclear = std::isnan(metric.p) || std::isnan(time.p) || metric.p >= kLevel || time.p >= kLevel;
    add(6, "NVR, LogOR and ComOR lower the metric most, and ComOR takes the most time",
        unclear                                ? kUnclear
        : metric.effect < 0 && time.effect > 0 ? kHolds
                                               : kFails,
        fmt::format("metric: p = {:.3g}, d = {:.2f}; time of ComOR: p = {:.3g}, d = {:.2f}", metric.p, metric.effect,
                    time.p, time.effect));
  }

  void seventh() {
    const stats::Anova& anova = out_.anova_metric;
    add(7, "operators differ in the metric that their versions reach",
        std::isnan(anova.p)   ? kUnclear
        : anova.p < kLevel    ? kHolds
        : anova.degrees2 < 30 ? kUnclear
                              : kFails,
        fmt::format(
            "one-way ANOVA F({:.0f}, {:.0f}) = {:.3g}, p = {:.3g}; {} of {} pairs differ after Holm's correction",
            anova.degrees1, anova.degrees2, anova.f, anova.p,
            std::count_if(out_.pairs.begin(), out_.pairs.end(),
                          [](const PairTest& pair) { return pair.metric_p < kLevel; }),
            out_.pairs.size()));
  }

  void eighth() {
    const Values all = values_where([](const InjectedBug&) { return true; });
    const Fences metric(all.metric), time(all.time);
    int64_t hits = 0, count = 0, other_hits = 0, other_count = 0;
    for (size_t i : normal([](const InjectedBug&) { return true; })) {
      const InjectedBug& bug = result_.bugs[i];
      const bool odd = metric.outlier(*bug.run.metric) || time.outlier(this->time(i));
      const bool first_alone = bug.phases == std::vector<std::string>{"preprocessing"};
      (first_alone ? other_hits : hits) += odd, ++(first_alone ? other_count : count);
    }
    shares(8, "bugs of construction and learning show more than those of preprocessing", hits, count, other_hits,
           other_count, "outliers of metric or time");
  }

  void ninth() {
    double statistic = 0;
    int64_t crashes = 0, total = 0, used = 0;
    for (const OutcomeCounts& one : out_.phases) crashes += one.of("crash"), total += one.total, used += one.total > 0;
    const double share = total > 0 ? double(crashes) / double(total) : 0;
    std::string figures;
    for (const OutcomeCounts& one : out_.phases) {
      figures += fmt::format("{}{} {} of {}", figures.empty() ? "" : ", ", one.name, one.of("crash"), one.total);
      if (one.total == 0 || share <= 0 || share >= 1) continue;
      const double expected = share * double(one.total), apart = double(one.of("crash")) - expected;
      statistic += apart * apart / expected + apart * apart / (double(one.total) - expected);
    }
    const double p = used > 1 && share > 0 && share < 1 ? stats::chi_squared_tail(statistic, double(used - 1)) : NAN;
    add(9, "phases have about the same share of crashes",
        std::isnan(p) || total < 30 ? kUnclear
        : p >= kLevel               ? kHolds
                                    : kFails,
        fmt::format("crashes: {} (χ² p = {:.3g})", figures, p));
  }

  const InjectResult& result_;
  bool processor_;
  Values clean_;
  Analysis out_;
};

}  // namespace

bool compares_processor_time(const InjectResult& result) {
  return std::all_of(result.clean.begin(), result.clean.end(),
                     [](const RunOutcome& run) { return std::isfinite(run.processor); });
}

double time_of(const RunOutcome& run, bool processor) {
  return processor && std::isfinite(run.processor) ? run.processor : run.seconds;
}

Analysis analyse(const InjectResult& result) { return Analysing(result).run(); }

std::string cheap_check(const std::string& op) {
  static const std::map<std::string, std::string> kChecks = {
      {"zero-grad-removed", "netmend diagnose on a record of the training: gradients that are never cleared grow"},
      {"eval-removed", "the same input twice in evaluation must give the same output"},
      {"label-noise", "over-fit one batch: the loss must reach zero; netmend failures --on labels"},
      {"scaling-wrong", "range check: netmend data shows ranges; the first layer's inputs should be around 0 to 1"},
      {"normalisation-removed", "range check on the inputs of the first layer: mean near 0, deviation near 1"},
      {"shuffle-removed", "batches of the first epoch should hold all classes"},
      {"activation-removed", "netmend lint: no nonlinearity between two linear layers"},
      {"activation-replaced", "netmend diagnose: saturated units, gradients that vanish"},
      {"activation-added", "netmend lint: an activation function before a loss that takes logits"},
      {"loss-replaced", "loss at the start: the logarithm of the number of classes for cross-entropy"},
      {"optimiser-replaced", "compare the loss curve with that of a reference run"},
      {"rate-changed", "compare the loss curve with that of a reference run; netmend diagnose on the record"},
      {"batch-changed", "assert the shape of the first batch"},
      {"epochs-changed", "assert the number of steps that were taken"},
      {"initialiser-replaced", "netmend check: units that are equal to others"},
      {"wrong-axis", "assert the shape after every reduction"},
      {"wrong-dtype", "assert the element type of inputs and labels"},
      {"slice-off-by-one", "assert that the batches together hold every input once"},
      {"ArOR", "a test of the changed function with a number worked out by hand"},
      {"NVR", "assert shapes and counts of data, layers and steps"},
      {"ComOR", "a test at the border value of the comparison"},
      {"BVR", "assert the configuration that the run ends up with"},
  };
  auto hit = kChecks.find(op);
  return hit != kChecks.end() ? hit->second : "a test of the changed line with a known result";
}

}  // namespace netmend::programs
