#include "checkup/checkup.h"

#include <fmt/format.h>

#include <chrono>

#include "base/pool.h"
#include "base/text.h"
#include "checkup/answer_checks.h"
#include "checkup/data_checks.h"
#include "checkup/gather.h"
#include "checkup/symptoms.h"
#include "checkup/model_checks.h"
#include "checkup/slice_checks.h"
#include "checkup/unit_checks.h"
#include "findings/merge.h"
#include "stream/layers.h"

namespace netmend::checkup {
namespace {

using findings::Finding;
using findings::Level;

class Examination {
 public:
  Examination(const observers::PredictionSettings& settings, const CheckupOptions& options)
      : settings_(settings), options_(options) {}

  Checkup run(const Given& test, const Given& train) {
    prepare(test);
    pass(test, train);
    if (!result_.interrupted) look();
    if (!result_.interrupted) attempt();
    explain_symptoms(result_);
    result_.found.findings = findings::rank(findings::merge_related(std::move(result_.found.findings)));
    return std::move(result_);
  }

 private:
  double left() const {
    return options_.seconds - std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

  /// Does a part of the work, and notes how long it took.
  template <typename Work>
  void step(const std::string& what, const Work& work) {
    if (options_.heard) options_.heard(what);
    const auto begin = std::chrono::steady_clock::now();
    try {
      work();
    } catch (const Interrupted&) {
      result_.interrupted = true;
    }
    result_.times.emplace_back(what, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }

  void prepare(const Given& test) {
    result_.context.reset(new Context{.subject = *test.subject, .settings = settings_});
    Context& context = *result_.context;
    context.layers = stream::find_layers(*test.subject);
    context.space = hidden_space(*test.subject, settings_, context.layers);
    context.words = options_.words, context.model_words = options_.model_words;
    context.data_words = options_.data_words, context.train_words = options_.train_words;
    context.seed = options_.seed, context.jobs = options_.pass.jobs, context.seconds = options_.seconds;
  }

  void pass(const Given& test, const Given& train) {
    Context& context = *result_.context;
    auto part = [&](const char* name, const Given& given) {
      result_.censuses.push_back(std::make_unique<census::Census>(*given.subject->data));
      Gathered gathered = gather(name, *given.subject, settings_, context.space, given.whole,
                                 {result_.censuses.back().get()}, options_.pass);
      result_.interrupted |= gathered.interrupted;
      result_.counted.push_back(std::move(gathered.states[0]));
      return std::move(gathered.part);
    };
    step("tests", [&] { context.test = part("test", test); });
    if (train.subject && !result_.interrupted) step("training data", [&] { context.train = part("train", train); });
  }

  void look() {
    const Context& context = *result_.context;
    Found& found = result_.found;
    step("graph and weights", [&] {
      check_graph(context.subject.graph, settings_.head, words_of(context), found);
      check_weights(context.subject.graph, settings_.head, words_of(context), found);
    });
    step("units", [&] { check_units(context, found); });
    step("answers", [&] { check_answers(context, found); });
    step("labels", [&] { result_.label_issues = check_labels(context, found); });
    step("data", [&] { check_data(context, result_.census(0), context.train ? &result_.census(1) : nullptr, found); });
    step("slices", [&] { result_.slices = check_slices(context, result_.census(0), found); });
    step("clusters of failures", [&] { result_.clusters = check_clusters(context, found); });
    step("what tests reach", [&] { result_.tests = check_tests(context, options_.pass, found); });
  }

  void attempt() {
    step("small changes of inputs",
         [&] { check_robustness(*result_.context, std::max(1.0, 0.3 * left()), result_.found); });
    if (!result_.interrupted)
      step("units to blame",
           [&] { result_.tried = check_blame(*result_.context, std::max(3.0, left()), result_.found); });
  }

  const observers::PredictionSettings& settings_;
  const CheckupOptions& options_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  Checkup result_;
};

std::string lower_first(std::string text) {
  if (text.size() > 1 && std::islower(static_cast<unsigned char>(text[1])))
    text[0] = char(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}
std::string without_dot(std::string text) {
  if (!text.empty() && text.back() == '.') text.pop_back();
  return text;
}

}  // namespace

Checkup check_up(const Given& test, const Given& train, const observers::PredictionSettings& settings,
                 const CheckupOptions& options) {
  return Examination(settings, options).run(test, train);
}

Found check_data_alone(const Given& test, const Given& train, const observers::PredictionSettings& settings,
                       const CheckupOptions& options) {
  Context context{.subject = *test.subject, .settings = settings};
  context.words = options.words, context.model_words = options.model_words;
  context.data_words = options.data_words, context.train_words = options.train_words;
  context.seed = options.seed, context.jobs = options.pass.jobs;
  auto part = [](const char* name, const Given& given) {
    Part out;
    out.name = name, out.data = given.subject->data, out.whole = given.whole;
    return out;
  };
  context.test = part("test", test);
  if (train.subject) context.train = part("train", train);
  Found found;
  check_data(context, found);
  found.findings = findings::rank(findings::merge_related(std::move(found.findings)));
  return found;
}

Found check_model(const model::Graph& graph, const executor::Head& head, const findings::Words& words) {
  Found found;
  check_graph(graph, head, words, found);
  check_weights(graph, head, words, found);
  found.findings = findings::rank(findings::merge_related(std::move(found.findings)));
  return found;
}

std::string verdict(const std::vector<Finding>& findings, bool judged) {
  auto count = [&](Level level) {
    return std::count_if(findings.begin(), findings.end(), [&](const Finding& one) { return one.level == level; });
  };
  const auto serious = count(Level::kSerious), minor = count(Level::kMinor);
  if (!findings.empty() && findings[0].level == Level::kBlocker) return findings[0].title;
  const bool repairable = std::any_of(findings.begin(), findings.end(), [](const Finding& one) {
    return one.level == Level::kSerious &&
           (one.kind == "suspicious-unit" || one.kind == "damaged-layer" || one.kind == "shifted-answers");
  });
  const std::string ending = repairable ? "; a small repair looks worthwhile." : ".";
  if (serious == 1) return "One thing matters: " + lower_first(without_dot(findings[0].title)) + ending;
  if (serious > 1)
    return fmt::format("{} things matter; above all, {}{}", serious, lower_first(without_dot(findings[0].title)),
                       ending);
  const std::string start =
      judged ? "Nothing serious was found" : "Nothing serious was found, without labels to judge by";
  if (minor > 0)
    return fmt::format("{}; {} to look at when there is time.", start,
                       minor == 1 ? "one thing" : fmt::format("{} things", minor));
  return start + ".";
}

}  // namespace netmend::checkup
