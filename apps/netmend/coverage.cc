// netmend coverage: what the tests never try, and which tests add nothing.
#include "netmend/coverage.h"

#include <algorithm>
#include <filesystem>

#include "adequacy/learn.h"
#include "base/error.h"
#include "base/file.h"
#include "base/pool.h"
#include "base/run_folder.h"
#include "base/text.h"
#include "executor/runtime.h"
#include "localise/candidates.h"
#include "netmend/show.h"
#include "netmend/target.h"
#include "stream/layers.h"

namespace netmend::app {
namespace {

using observers::Published;

/// Tests that count, as --on says: unlike where failures are located, right ones are as good as wrong ones.
observers::Criteria::Filter counted(const NamedTarget& named) {
  if (named.text.empty()) return {};
  return [target = named.target](const observers::SampleRow& row) {
    if (target.label >= 0 && row.label != double(target.label)) return false;
    if (target.predicted >= 0 && row.predicted != double(target.predicted)) return false;
    return !target.may_fail || target.may_fail(row.sample);
  };
}

int refuse(const Common& common, const checkup::Preflight& preflight, const std::string& model) {
  if (common.json)
    print_json({{"preflight", preflight_json(preflight)},
                {"findings", Json::array({blocker_json(*preflight.blocker, "netmend coverage " + model)})}});
  return 1;
}

/// Before it is taken; what nobody would notice is not worth a line.
void tell_memory(const Common& common, const std::string& what, double bytes) {
  if (bytes > 100e6) say(common, fmt::format("memory: {} takes up to {}", what, bytes_text(bytes)));
}

/// Learned once is enough; else one layer further down.
std::string next_step(const CoverageOptions& options, const std::string& model, const CoverageFindings& findings) {
  std::string command = next_command("coverage", model, options);
  if (!options.train.empty()) command += " --train " + options.train;
  if (!findings.profile) {
    dataset::Spec spec = dataset::parse_spec(findings.tests->info().spec);
    if (!spec.is_name() || spec.rest == "train") return "";
    return command + " --train " + spec.head + ":train";
  }
  if (options.profile.empty())
    return command + " --profile " + std::filesystem::path(model).stem().string() + ".profile";
  const auto& layers = findings.space->layers();
  return command + " --layer " + layers[layers.size() > 1 ? layers.size() - 2 : 0].name;
}

/// Learns from training data, or reads what was learned before.
class ProfileSource {
 public:
  ProfileSource(const Common& common, const CoverageOptions& options, const Case& about, observers::SpacePtr space)
      : common_(common),
        options_(options),
        about_(about),
        space_(std::move(space)),
        layer_(space_->layers().size() - 1),
        model_(file_checksum(about.judged.subject.model_name)) {}

  /// Nothing without training data.
  observers::Profile* run(const std::vector<adequacy::Wanted>& wanted) {
    const bool wants = std::any_of(wanted.begin(), wanted.end(), [](const adequacy::Wanted& w) {
      return adequacy::criterion_row(w.name).needs_training;
    });
    if (!options_.profile.empty() && std::filesystem::exists(options_.profile)) {
      profile_ = observers::load_profile(options_.profile, about_.judged.settings, space_, layer_, model_);
      before_ = bounds();
      if (profile_->facts.importance.empty()) no_importance = "the profile was made without the importance of units";
      return &*profile_;
    }
    std::optional<dataset::Spec> spec = train_spec(options_, options_.train, about_.config);
    if (!spec || !wants) return nullptr;
    if (!options_.profile.empty()) require_writable(options_.profile);
    const bool important = !options_.profile.empty() ||
                           std::any_of(wanted.begin(), wanted.end(), [](const auto& w) { return w.name == "IDC"; });
    learn(*spec, important);
    return &*profile_;
  }

  /// Writes what is new.
  void keep() {
    if (!profile_ || options_.profile.empty() || (!learned && before_ == bounds())) return;
    profile_->save(options_.profile);
  }

  std::shared_ptr<const dataset::Dataset> train;
  std::string no_importance;
  double seconds = 0;
  bool learned = false;

 private:
  std::string bounds() const { return fmt::format("{}", profile_->facts.likelihood_low); }

  void learn(const dataset::Spec& spec, bool important) {
    train = open_data(common_, spec, about_.judged.subject.graph, about_.config);
    Common silent = common_;
    silent.quiet = true;  // what the model is fed with was told already
    observers::TaskOverrides overrides = about_.config.overrides;
    Judged judged = make_judged(silent, about_.judged.subject.model_name, about_.judged.subject.graph, train,
                                options_.output.empty() ? about_.config.output : options_.output, overrides);
    CaseOptions all = options_;
    all.limit = 0;  // --limit is about tests
    Case training{about_.config, spec, train, std::move(judged)};
    training.judged.subject.data = train = plan_pass(common_, all, training).data;
    adequacy::LearnOptions how;
    how.pass = pass_options(common_);
    how.importance = important;
    const double room = double(executor::memory_budget()) / 4;
    how.stride = adequacy::stride_for(*space_, layer_, train->size(), room);
    if (how.stride > 1)
      say(common_,
          fmt::format("traces of {} training inputs would take more than {}: every {}th is kept (--memory allows more)",
                      with_commas(train->size()), bytes_text(room), how.stride));
    tell_memory(
        common_, "what is learned from training data",
        observers::Profile(training.judged.settings, space_, layer_, train->size(), how.stride).bytes(train->size()));
    adequacy::LearnedProfile learned = adequacy::learn(training.judged.subject, training.judged.settings, space_, layer_, how);
    no_importance = learned.no_importance;
    seconds = learned.seconds;
    learned = true;
    profile_ = std::move(learned.profile);
    profile_->facts.model = model_;
  }

  const Common& common_;
  const CoverageOptions& options_;
  const Case& about_;
  observers::SpacePtr space_;
  size_t layer_;
  std::string model_, before_;
  std::optional<observers::Profile> profile_;
};

}  // namespace

int coverage(const Common& common, const CoverageOptions& asked) {
  CoverageOptions options = asked;
  encode_alike(options, options.train);
  adequacy::AssessOptions how;
  how.criteria = adequacy::parse_criteria(options.criteria);  // a slip of the finger shows before the work
  how.important = adequacy::parse_counts(options.important, "--m");
  how.published = observers::parse_published(options.published);
  how.zero_cluster = options.zero_cluster;
  if (!options.product.empty()) require_writable(options.product);
  Case about = open_case(common, options);
  Judged& judged = about.judged;
  std::vector<model::Layer> layers =
      localise::candidates(stream::find_layers(judged.subject), judged.subject.graph, judged.settings.head,
                           judged.settings.outputs, options.layers);
  NamedTarget target = parse_target(options.on, judged.settings, *about.data);
  checkup::Preflight preflight = examine(common, options, about);
  if (!common.json) print_preflight(preflight, judged.settings.metric);
  if (preflight.blocker && !options.anyway) return refuse(common, preflight, judged.subject.model_name);
  const std::string unit = !options.unit.empty()                 ? options.unit
                           : how.published == Published::kDnnTip ? "element"
                                                                 : "channel";
  CoverageFindings findings;
  findings.space =
      observers::make_unit_space(judged.subject, std::move(layers), {options.tap == "pre", unit == "element"});
  findings.layer = findings.space->layers().back().name;
  ProfileSource source(common, options, about, findings.space);
  observers::Profile* profile = source.run(how.criteria);
  Plan plan = plan_pass(common, options, about);
  judged.subject.data = plan.data;
  if (plan.data != about.data) target = parse_target(options.on, judged.settings, *plan.data);
  how.counts = counted(target);
  how.pass = pass_options(common);
  how.most_bytes = double(executor::memory_budget()) / 2;
  how.no_training = "give --train to add";
  how.no_importance = source.no_importance;
  how.before_pass = [&](double bytes) { tell_memory(common, "what is kept of the tests", bytes); };
  findings.found = adequacy::assess(judged.subject, judged.settings, findings.space, profile, how);
  source.keep();
  if (findings.found.inputs == 0)
    throw InputError(fmt::format("--on {}: no test is of that kind", options.on), "netmend eval shows what there is.");
  findings.profile = profile;
  findings.tests = plan.data;
  findings.train = source.train;
  findings.learned = source.learned;
  if (profile && !options.on.empty())
    findings.found.notes.push_back("tests of one kind are held against all of the training data");
  if (profile && profile->facts.data == plan.data->info().spec)
    findings.found.notes.push_back("tests and training are the same data: of course tests show what training shows");
  findings.learning_seconds = source.seconds;

  RunFolder folder(common.out, "coverage", common.arguments);
  findings.run = folder.path();
  findings.next = next_step(options, judged.subject.model_name, findings);
  findings.subset_file = options.product.empty() ? folder.file("subset.txt") : options.product;
  write_coverage_tables(folder.path(), findings);
  if (!options.product.empty()) write_subset(options.product, findings, findings.found.subset);
  folder.note_file(judged.subject.model_name);
  for (const std::string& file : plan.data->info().files) folder.note_file(file);
  folder.note("data", plan.data->info().spec);
  if (profile) folder.note("train", profile->facts.data);
  Json json = coverage_json(options, findings);
  json["model"] = judged.subject.model_name;
  json["of"] = plan.whole;
  json["preflight"] = preflight_json(preflight);
  write_file(folder.file("coverage.json"), json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  const adequacy::Assessment& found = findings.found;
  folder.finish(common.seed, findings.learning_seconds + found.seconds + found.scoring_seconds,
                found.interrupted ? 130 : 0);
  common.json ? print_json(json) : print_coverage(options, findings);
  if (found.interrupted)
    say(common, fmt::format("stopped: this is about the first {} tests", with_commas(found.inputs)));
  return found.interrupted ? 130 : 0;
}

}  // namespace netmend::app
