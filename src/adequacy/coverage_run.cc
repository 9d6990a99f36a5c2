#include "adequacy/coverage_run.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "adequacy/coverage_findings.h"
#include "adequacy/learn.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/pool.h"
#include "base/text.h"
#include "executor/runtime.h"
#include "localise/candidates.h"
#include "observers/coverage/nlc.h"
#include "session/session.h"
#include "session/split.h"
#include "session/target.h"
#include "stream/state_file.h"

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
  /// With `shares` nothing is learned, because each part would learn it again.
  ProfileSource(session::Session& session, const CoverageRequest& request, observers::SpacePtr space, int64_t of_class,
                bool shares)
      : session_(session),
        file_(request.profile),
        shares_(shares),
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
    if (shares_)
      throw InputError("parts of a pass need a profile of the training data that is there already",
                       "Run netmend coverage once with --profile FILE and without --shard; or give no training data.");
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
  bool shares_;
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

namespace {

/// What is known before the pass over the tests: layers, what was learned, what counts.
struct Prepared {
  session::Session& session;
  CoverageRequest request;
  AssessOptions how;
  session::NamedTarget on;
  observers::SpacePtr space;
  std::unique_ptr<ProfileSource> source;
  observers::Profile* profile = nullptr;
  int64_t of = 0;  ///< tests that there are

  Prepared(session::Session& s, CoverageRequest asked, bool shares)
      : session(s), request(std::move(asked)), how(options_of(request)) {
    session::Split& test = session.test();
    const observers::PredictionSettings& task = session.task();
    on = session::parse_target(request.on, task, *test.data);  // slips show before the work
    space = make_space(test);
    source = std::make_unique<ProfileSource>(session, request, space, class_of(on), shares);
    profile = source->open(how.criteria);
    session.sample(test);
    of = test.inputs();
    how.counts = filter_of(session::parse_target(request.on, task, *test.subject.data));
    how.pass = session.pass_options();
    how.most_bytes = double(executor::memory_budget()) / 2;
    how.no_importance = source->no_importance;
    how.before_pass = [this](double bytes) { tell_memory(session, "what is kept of the tests", bytes); };
  }

  Assessor assessor() { return Assessor(session.test().subject, session.task(), space, profile, how); }

  /// Parts of which fit together: of one model, data, profile and request.
  std::string subject() {
    const stream::Subject& tests = session.test().subject;
    std::string all =
        fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", file_checksum(session.model_name()), tests.data->info().spec,
                    session.test().used(), tests.batch_size(), request.criteria, request.important, request.on,
                    request.unit, request.published, request.tap, request.zero_cluster);
    for (const std::string& layer : request.layers) all += "|" + layer;
    return checksum(profile ? all + "|" + file_checksum(request.profile, FileRole::kOwn) : all);
  }

 private:
  observers::SpacePtr make_space(const session::Split& test) {
    const observers::PredictionSettings& task = session.task();
    std::vector<std::string> names = request.layers;
    if (how.published == Published::kNlc && names.empty())
      for (const model::Layer& layer : session.layers())
        if (layer.units > 0) names.push_back(layer.name);
    std::vector<model::Layer> layers =
        localise::candidates(session.layers(), test.subject.graph, task.head, task.outputs, names);
    if (request.tap.empty()) request.tap = how.published == Published::kNlc ? "pre" : "post";
    // NLC's program takes each time step of a recurrent layer for a layer of its own, and maps by their means.
    const bool steps = how.published == Published::kNlc &&
                       std::any_of(layers.begin(), layers.end(), observers::is_recurrent) &&
                       std::none_of(layers.begin(), layers.end(), [](const auto& layer) { return layer.op == "Conv"; });
    const std::string unit = !request.unit.empty()                          ? request.unit
                             : how.published == Published::kDnnTip || steps ? "element"
                                                                            : "channel";
    return observers::make_unit_space(test.subject, std::move(layers), {request.tap == "pre", unit == "element"});
  }
};

}  // namespace

struct CoverageRun::Impl {
  Prepared prepared;
  CoverageFindings findings;

  Impl(session::Session& session, CoverageRequest asked) : prepared(session, std::move(asked), !asked.parts.empty()) {
    const CoverageRequest& request = prepared.request;
    observers::Profile* profile = prepared.profile;
    findings.space = prepared.space;
    findings.layer = findings.space->layers().back().name;
    findings.found = request.parts.empty() ? assess() : assess_parts();
    prepared.source->keep();
    findings.profile = profile, findings.tests = session.test().subject.data, findings.train = prepared.source->train;
    findings.learned = prepared.source->learned, findings.learning_seconds = prepared.source->seconds;
    if (findings.found.inputs == 0)
      throw InputError(fmt::format("--on {}: no test matches", request.on), "netmend eval shows what there is.");
    add_notes();
    findings.next = next_step(session, request, findings);
  }

  Assessment assess() {
    session::Session& session = prepared.session;
    session::Split& test = session.test();
    Assessor assessor = prepared.assessor();
    stream::Pass pass(test.subject);
    auto handle = pass.watch(assessor.observer());
    session.run(pass, test, "coverage criteria");
    if (pass.samples() == 0) throw Interrupted{};
    return assessor.finish(pass.state(handle), pass.seconds(), pass.interrupted());
  }

  /// The same from files of cover_shard().
  Assessment assess_parts() {
    const std::vector<std::string>& paths = prepared.request.parts;
    Assessor assessor = prepared.assessor();
    const std::string subject = prepared.subject();
    const auto started = std::chrono::steady_clock::now();
    std::vector<stream::StateFile> files;
    double seconds = 0, bytes = 0;
    for (const std::string& path : paths) {
      files.push_back(stream::read_state(path, assessor.observer()));
      bytes += double(files.back().bytes);
      if (files.back().subject != subject)
        throw InputError(fmt::format("{} is part of another pass: model, data, profile or options differ", path),
                         "Give --merge the model, data and options that the parts were made with.");
      const JsonDocument about(files.back().description, path);
      seconds += about.top().at("seconds").number();
    }
    const auto state = stream::join_states(std::move(files), paths).fold(assessor.observer());
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
    prepared.session.note(
        fmt::format("parts: {}, {}, merged in {:.2f} s", paths.size(), bytes_text(bytes), took.count()));
    return assessor.finish(static_cast<observers::CriteriaState&>(*state), seconds, false);
  }

  void add_notes() {
    const observers::Profile* profile = prepared.profile;
    const std::string& on = prepared.request.on;
    if (profile && class_of(prepared.on) >= 0 && !profile->facts.importance.empty())
      findings.found.notes.push_back(fmt::format(
          "IDC looks at the units that are important for {}, and at their activations on training inputs of that class "
          "that are predicted correctly",
          on));
    if (profile && !on.empty())
      findings.found.notes.push_back(
          "only the tests that --on selects are compared with the training data, and with "
          "all of it");
    if (profile && profile->facts.data == prepared.session.test().data->info().spec)
      findings.found.notes.push_back(
          "tests and training data are the same, so the tests reach everything that training data reaches");
  }
};

session::Shard cover_shard(session::Session& session, CoverageRequest request, const std::string& shard,
                           const std::string& path) {
  claim_product(path, "-o");
  Prepared prepared(session, std::move(request), true);
  prepared.how.pass.shard = stream::parse_shard(shard);
  const session::Split& test = session.test();
  Assessor assessor = prepared.assessor();
  stream::PassResult pass = stream::run_pass(test.subject, {&assessor.observer()}, prepared.how.pass);
  if (pass.interrupted) fail("stopped before the shard was complete; nothing was written");
  session.record(test, "shard " + shard, pass.samples, pass.seconds);
  stream::StateFile file;
  file.description = json_text(nlohmann::json{{"model", session.model_name()}, {"seconds", pass.seconds}});
  file.subject = prepared.subject();
  file.chunks = pass.chunks;
  file.collected = std::move(pass.collected[0]);
  stream::write_state(path, file, assessor.observer());
  return {pass.samples, pass.seconds};
}

CoverageRun::CoverageRun(session::Session& session, CoverageRequest request)
    : impl_(std::make_unique<Impl>(session, std::move(request))) {}
CoverageRun::~CoverageRun() = default;

nlohmann::ordered_json CoverageRun::document() const {
  nlohmann::ordered_json json = coverage_json(impl_->prepared.request, impl_->findings);
  json["model"] = impl_->prepared.session.model_name();
  json["of"] = impl_->prepared.of;
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
