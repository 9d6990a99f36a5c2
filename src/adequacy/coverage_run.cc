#include "adequacy/coverage_run.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "adequacy/coverage_findings.h"
#include "adequacy/learn.h"
#include "base/error.h"
#include "base/file.h"
#include "base/pool.h"
#include "base/text.h"
#include "executor/runtime.h"
#include "localise/candidates.h"
#include "observers/coverage/nlc.h"
#include "session/session.h"
#include "session/split.h"
#include "session/target.h"

namespace netmend::adequacy {
namespace {

using observers::Published;

/// Tests that count, as --on says: unlike where failures are located, right ones are as good as wrong ones.
observers::Criteria::Filter filter_of(const session::NamedTarget& named) {
  if (named.text.empty()) return {};
  return [target = named.target](const observers::SampleRow& row) {
    if (target.label >= 0 && row.label != double(target.label)) return false;
    if (target.predicted >= 0 && row.predicted != double(target.predicted)) return false;
    return !target.may_fail || target.may_fail(row.sample);
  };
}

/// The class whose important units count: those of all, unless tests of one class are asked for.
int64_t class_of(const session::NamedTarget& named) {
  const observers::Target& target = named.target;
  return target.predicted < 0 && !target.may_fail ? target.label : -1;
}

/// Before it is taken; what nobody would notice is not worth a line.
void tell_memory(const session::Session& session, const std::string& what, double bytes) {
  if (bytes > 100e6) session.note(fmt::format("memory: {} takes up to {}", what, bytes_text(bytes)));
}

/// The profile of the training data: learned in one pass, or read from the file where it was kept.
class ProfileSource {
 public:
  ProfileSource(session::Session& session, const CoverageRequest& request, observers::SpacePtr space, int64_t of_class)
      : session_(session),
        file_(request.profile),
        of_class_(of_class),
        space_(std::move(space)),
        layer_(space_->layers().size() - 1),
        model_(std::filesystem::exists(session.model_name()) ? file_checksum(session.model_name()) : "") {}

  /// Null without training data, or when no criterion wants any.
  observers::Profile* open(const std::vector<Wanted>& wanted) {
    if (!file_.empty() && std::filesystem::exists(file_)) {
      profile_ = observers::load_profile(file_, session_.task(), space_, layer_, model_, FileRole::kOwn);
      before_ = bounds();
      if (profile_->facts.of_class != of_class_ && !profile_->facts.importance.empty())
        throw InputError(fmt::format("{} has the units that are important for {}, which is not what --on asks for now",
                                     file_, profile_->facts.of_class < 0 ? "all classes" : "another class"),
                         "Name another file with --profile: if it does not exist, it is written.");
      if (profile_->facts.importance.empty()) no_importance = "the profile was made without the importance of units";
      return &*profile_;
    }
    const bool wants = std::any_of(wanted.begin(), wanted.end(),
                                   [](const Wanted& one) { return criterion_row(one.name).needs.training; });
    session::Split* train = wants ? session_.train() : nullptr;
    if (!train) return nullptr;
    if (!file_.empty()) claim_product(file_, "--profile");
    const bool important = !file_.empty() || std::any_of(wanted.begin(), wanted.end(), [](const Wanted& one) {
      return criterion_row(one.name).needs.importance;
    });
    learn_from(*train, important);
    return &*profile_;
  }

  /// Writes what is new.
  void keep() {
    if (!profile_ || file_.empty() || (!learned && before_ == bounds())) return;
    profile_->save(file_);
  }

  std::shared_ptr<const dataset::Dataset> train;
  std::string no_importance;
  double seconds = 0;
  bool learned = false;

 private:
  std::string bounds() const { return fmt::format("{}", profile_->facts.likelihood_low); }

  void learn_from(session::Split& split, bool important) {
    session_.sample(split);
    train = split.subject.data;
    const observers::PredictionSettings task = session_.task_of(split);
    LearnOptions how;
    how.pass = session_.pass_options();
    how.importance = important, how.of_class = of_class_;
    const double room = double(executor::memory_budget()) / 4;
    how.stride = stride_for(*space_, layer_, train->size(), room);
    if (how.stride > 1)
      session_.note(
          fmt::format("activation traces of {} training inputs would take more than {} of memory: one in {} is kept "
                      "(--memory allows more)",
                      with_commas(train->size()), bytes_text(room), how.stride));
    tell_memory(session_, "the profile of the training data",
                observers::Profile(task, space_, layer_, train->size(), how.stride).bytes(train->size()));
    LearnedProfile found = adequacy::learn(split.subject, task, space_, layer_, how);
    session_.record(split, "profile", train->size(), found.seconds);
    no_importance = found.no_importance;
    seconds = found.seconds;
    learned = true;
    profile_ = std::move(found.profile);
    profile_->facts.model = model_;
  }

  session::Session& session_;
  std::string file_;
  int64_t of_class_;
  observers::SpacePtr space_;
  size_t layer_;
  std::string model_, before_;
  std::optional<observers::Profile> profile_;
};

AssessOptions options_of(const CoverageRequest& request) {
  AssessOptions how;
  how.criteria = parse_criteria(request.criteria);
  how.important = parse_counts(request.important, "--m");
  how.published = observers::parse_published(request.published);
  how.zero_cluster = request.zero_cluster;
  how.no_training = "give --train to add";
  return how;
}

/// Learned once is enough; else one layer further down.
Shell next_step(const session::Session& session, const CoverageRequest& request, const CoverageFindings& findings) {
  if (!findings.profile) {
    const dataset::Spec spec = dataset::parse_spec(findings.tests->info().spec);
    if (!spec.is_name() || spec.rest == "train") return {};
    return session.command("coverage", {"--train", spec.head + ":train"});
  }
  if (request.profile.empty()) {
    const std::string stem = std::filesystem::path(session.model_name()).stem().string();
    return session.command("coverage", {"--profile", stem + ".profile"});
  }
  const auto& layers = findings.space->layers();
  return session.command(
      "coverage", {"--profile", request.profile, "--layer", layers[layers.size() > 1 ? layers.size() - 2 : 0].name});
}

}  // namespace

void check_request(const CoverageRequest& request) { options_of(request); }

struct CoverageRun::Impl {
  session::Session& session;
  CoverageRequest request;
  CoverageFindings findings;
  std::unique_ptr<ProfileSource> source;
  int64_t of = 0;

  Impl(session::Session& s, CoverageRequest asked) : session(s), request(std::move(asked)) {
    AssessOptions how = options_of(request);
    session::Split& test = session.test();
    const observers::PredictionSettings& task = session.task();
    std::vector<std::string> names = request.layers;
    if (how.published == Published::kNlc && names.empty())
      for (const model::Layer& layer : session.layers())
        if (layer.units > 0) names.push_back(layer.name);
    std::vector<model::Layer> layers =
        localise::candidates(session.layers(), test.subject.graph, task.head, task.outputs, names);
    if (request.tap.empty()) request.tap = how.published == Published::kNlc ? "pre" : "post";
    const session::NamedTarget on = session::parse_target(request.on, task, *test.data);  // slips show before the work
    // NLC's program takes each time step of a recurrent layer for a layer of its own, and maps by their means.
    const bool steps = how.published == Published::kNlc &&
                       std::any_of(layers.begin(), layers.end(), observers::is_recurrent) &&
                       std::none_of(layers.begin(), layers.end(), [](const auto& layer) { return layer.op == "Conv"; });
    const std::string unit = !request.unit.empty()                          ? request.unit
                             : how.published == Published::kDnnTip || steps ? "element"
                                                                            : "channel";
    findings.space =
        observers::make_unit_space(test.subject, std::move(layers), {request.tap == "pre", unit == "element"});
    findings.layer = findings.space->layers().back().name;
    source = std::make_unique<ProfileSource>(session, request, findings.space, class_of(on));
    observers::Profile* profile = source->open(how.criteria);
    session.sample(test);
    of = test.inputs();
    how.counts = filter_of(session::parse_target(request.on, task, *test.subject.data));
    how.pass = session.pass_options();
    how.most_bytes = double(executor::memory_budget()) / 2;
    how.no_importance = source->no_importance;
    how.before_pass = [&](double bytes) { tell_memory(session, "what is kept of the tests", bytes); };
    findings.found = assess(test, profile, how);
    source->keep();
    findings.profile = profile, findings.tests = test.subject.data, findings.train = source->train;
    findings.learned = source->learned, findings.learning_seconds = source->seconds;
    if (findings.found.inputs == 0)
      throw InputError(fmt::format("--on {}: no test matches", request.on), "netmend eval shows what there is.");
    if (profile && class_of(on) >= 0 && !profile->facts.importance.empty())
      findings.found.notes.push_back(fmt::format(
          "IDC looks at the units that are important for {}, and at their activations on training inputs of that class "
          "that are predicted correctly",
          request.on));
    if (profile && !request.on.empty())
      findings.found.notes.push_back(
          "only the tests that --on selects are compared with the training data, and with "
          "all of it");
    if (profile && profile->facts.data == test.data->info().spec)
      findings.found.notes.push_back(
          "tests and training data are the same, so the tests reach everything that training data reaches");
    findings.next = next_step(session, request, findings);
  }

  Assessment assess(session::Split& test, observers::Profile* profile, const AssessOptions& how) {
    Assessor assessor(test.subject, session.task(), findings.space, profile, how);
    stream::Pass pass(test.subject);
    auto handle = pass.watch(assessor.observer());
    session.run(pass, test, "coverage criteria");
    if (pass.samples() == 0) throw Interrupted{};
    return assessor.finish(pass.state(handle), pass.seconds(), pass.interrupted());
  }
};

CoverageRun::CoverageRun(session::Session& session, CoverageRequest request)
    : impl_(std::make_unique<Impl>(session, std::move(request))) {}
CoverageRun::~CoverageRun() = default;

nlohmann::ordered_json CoverageRun::document() const {
  nlohmann::ordered_json json = coverage_json(impl_->request, impl_->findings);
  json["model"] = impl_->session.model_name();
  json["of"] = impl_->of;
  return json;
}

int64_t CoverageRun::inputs() const { return impl_->findings.found.inputs; }
bool CoverageRun::interrupted() const { return impl_->findings.found.interrupted; }

double CoverageRun::seconds() const {
  const Assessment& found = impl_->findings.found;
  return impl_->findings.learning_seconds + found.seconds + found.scoring_seconds;
}

void CoverageRun::write_tables(const std::string& folder) {
  impl_->findings.run = folder;
  if (impl_->findings.subset_file.empty()) impl_->findings.subset_file = folder + "/subset.txt";
  write_coverage_tables(folder, impl_->findings);
}

void CoverageRun::write_subset(const std::string& path) {
  adequacy::write_subset(path, impl_->findings, impl_->findings.found.subset);
  impl_->findings.subset_file = path;
}

}  // namespace netmend::adequacy
