#include "inputs/stress.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/error.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/pool.h"
#include "base/text.h"
#include "cluster/ranks.h"
#include "dataset/image_file.h"
#include "executor/runtime.h"
#include "inputs/criteria_choice.h"
#include "inputs/fuzz.h"
#include "inputs/product.h"
#include "inputs/sheet.h"
#include "localise/candidates.h"
#include "observers/input_relevance.h"
#include "observers/sample_table.h"
#include "session/split.h"
#include "session/target.h"

namespace netmend::inputs {
namespace {

using observers::SampleRow;

constexpr int64_t kLargestFile = (int64_t(1) << 32) - (int64_t(1) << 24);  // an NPZ without 64-bit sizes
constexpr int64_t kPool = 512;                                             // rows to borrow values from
constexpr size_t kShown = 24;
constexpr int64_t kImportant = 6;  // units that IDC combines

/// What --method names; nullptr stands for fuzz, which is no row of the table since it needs the whole queue.
std::vector<const Method*> methods_of(const std::string& names) {
  std::vector<const Method*> chosen;
  auto add = [&](const Method* method) {
    if (std::find(chosen.begin(), chosen.end(), method) == chosen.end()) chosen.push_back(method);
  };
  for (const std::string& part : split(names, ',')) {
    const std::string name(trim(part));
    if (lower(name) == "all")
      for (const Method& method : methods()) add(&method);
    else
      add(lower(name) == "fuzz" ? nullptr : &find_method(name));
  }
  return chosen;
}

Settings settings_of(const StressRequest& request, uint64_t seed) {
  Settings settings;
  settings.seed = seed;
  if (!request.eps.empty()) settings.eps = parse_share("--eps", request.eps);
  if (!request.step_size.empty()) settings.step_size = parse_share("--step-size", request.step_size);
  settings.steps = request.steps;
  settings.confidence = request.confidence;
  settings.as_published = request.as_published;
  return settings;
}

/// The criteria that fuzz is guided by unless told otherwise.
std::string criteria_text(const StressRequest& request, bool fuzzes) {
  if (!request.criteria.empty() || !fuzzes) return request.criteria;
  return request.profile.empty() ? "NC,TKNC" : "KMNC,NBC";
}

void require_classes(const observers::PredictionSettings& task) {
  using observers::Task;
  if (task.by_class() || (task.task == Task::kNone && task.outputs > 1)) return;
  throw InputError(fmt::format("the task is {}: stress needs one predicted class per input, to see whether it changes",
                               observers::task_name(task.task)),
                   "Use a model that predicts one class per input.");
}

std::string counted(int64_t count, const std::string& what) {
  return fmt::format("{} {}{}", with_commas(count), what, count == 1 ? "" : "s");
}

/// One method at work; what becomes of it is in the report.
struct Working {
  const Method* method = nullptr;  ///< null for fuzz
  Settings settings;
  CampaignResult result;
};

class Stressing {
 public:
  Stressing(session::Session& session, const StressRequest& request)
      : session_(session),
        request_(request),
        task_(session.task()),
        subject_(session.test().subject),
        data_(*subject_.data),
        changed_(find_subject(data_.info())),
        methods_(methods_of(request.method)) {
    for (int64_t size : changed_.about.shape)
      if (size < 0)
        throw InputError(fmt::format("the inputs of {} differ in length", data_.info().spec),
                         "Add length=N to the data spec: longer inputs are truncated, shorter ones padded.");
    if (changed_.kind != Kind::kTokens) range_.emplace(data_, changed_.feature, request.range);
    std::vector<UnitPlace> units;
    for (const std::string& name : request.units) {
      const session::UnitPlace place = session.unit(name);
      const model::Layer& layer = session.layers()[place.layer];
      if (layer.merged != model::Merged::kNo)
        throw InputError(fmt::format("--unit {}: the values of {} mix inputs and positions", name, layer.name),
                         "Name a unit of another layer.");
      units.push_back({layer, place.unit});
    }
    network_ = std::make_unique<Network>(subject_, task_, changed_, range_ ? &*range_ : nullptr, units);
    asked_ = settings_of(request, session.request().seed);
    if (changed_.kind == Kind::kTokens || changed_.kind == Kind::kTable) asked_.pool = borrowed_rows();
    whole_ = request.round && range_ && range_->bytes();
    prepare_criteria();
  }

  StressReport run() {
    const auto start = std::chrono::steady_clock::now();
    report_.data = data_.info().spec;
    report_.range = range_ ? range_->words() : "";
    report_.unit = !range_                         ? "tokens"
                   : changed_.kind == Kind::kTable ? "parts of each column's range"
                                                   : "parts of the valid range";
    choose(session::parse_target(request_.on, task_, data_));
    if (!report_.interrupted) attack();
    report_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    save();
    if (!criteria_.empty() && !report_.made_data.empty()) measure_coverage();
    const RunFolder& folder = session_.folder("stress");
    write_changes(folder.file("changes.csv"));
    draw(folder.file("changed.png"));
    if (!report_.made_data.empty()) {
      Shell next = Shell::of("netmend eval {} --data {} --anyway", session_.model_name(), report_.made_data);
      if (!session_.request().output.empty()) next += Shell::of(" --output {}", session_.request().output);
      report_.next = next;
    }
    return std::move(report_);
  }

 private:
  /// Rows of the data in the units that methods work in.
  at::Tensor borrowed_rows() const {
    at::Tensor fed = data_.read(stream::spread(data_.size(), kPool)).inputs[changed_.feature];
    return (range_ ? range_->units(fed) : fed).contiguous();
  }

  /// Criteria that measure the coverage of what is made. Before any work: names and profiles may be wrong.
  void prepare_criteria() {
    const bool fuzzes = std::find(methods_.begin(), methods_.end(), nullptr) != methods_.end();
    criteria_words_ = criteria_text(request_, fuzzes);
    if (criteria_words_.empty()) return;
    const std::vector<adequacy::Wanted> wanted = adequacy::parse_criteria(criteria_words_);
    space_ = observers::make_unit_space(
        subject_, localise::candidates(session_.layers(), subject_.graph, task_.head, task_.outputs, request_.layers),
        {});
    if (!request_.profile.empty())
      profile_ = observers::load_profile(request_.profile, task_, space_, space_->layers().size() - 1,
                                         file_checksum(session_.model_name()));
    criteria_ = make_criteria(wanted, space_, profile_ ? &*profile_ : nullptr, kImportant);
  }

  bool takes_everything() const { return session_.request().all || session_.request().limit > 0; }

  /// By default inputs whose predictions are right; all of them where nothing says what is right.
  void choose(const session::NamedTarget& target) {
    const observers::Predictions predictions(task_, true);
    const bool judged = task_.task != observers::Task::kNone;
    std::vector<SampleRow> rows;
    stream::Pass pass(subject_);
    auto seen = pass.watch(predictions);
    pass.each_chunk<observers::Predictions>(seen, [&](observers::PredictionState& chunk) {
      for (const SampleRow& row : chunk.rows) {
        ++report_.of;
        report_.right += row.right == SampleRow::kRight;
        const bool meant = (target.target.label < 0 || row.label == double(target.target.label)) &&
                           (!target.target.may_fail || target.target.may_fail(row.sample));
        const bool wanted = request_.from == "all" || !judged || row.right == SampleRow::kRight;
        if (meant && wanted && std::isfinite(row.predicted)) rows.push_back(row);
      }
      chunk.rows.clear();
    });
    session_.run(pass, session_.test(), "predictions for the originals");
    report_.interrupted = pass.interrupted();
    if (rows.empty() && !report_.interrupted)
      throw InputError(
          fmt::format("no prediction is correct (inputs{1}: {0}), so there is none to change", with_commas(report_.of),
                      target.text.empty() ? "" : " of --on " + target.text),
          report_.right > 0
              ? "Other predictions are correct: leave out --on, or add --from all."
              : "netmend check shows whether model and data belong together; --from all takes every input.");
    // Where the budget may end it, what is done by then should speak for all.
    const std::vector<size_t> order = spread_order(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      const SampleRow& row = rows[takes_everything() ? i : order[i]];
      chosen_.samples.push_back(row.sample), chosen_.predictions.push_back(int64_t(row.predicted));
    }
  }

  void require_room(int64_t methods) const {
    const int64_t bytes = product_bytes(data_, *network_, methods * chosen_.count(), whole_);
    const int64_t memory = methods * made_bytes(*network_, chosen_.count());
    if (bytes > kLargestFile || memory > executor::memory_budget() / 2)
      throw InputError(
          fmt::format("{} inputs with {} would make {} of data, but a file may hold {}, and half of the memory limit "
                      "is {}",
                      with_commas(chosen_.count()), counted(methods, "method"),
                      bytes_text(double(std::max(bytes, memory))), bytes_text(double(kLargestFile)),
                      bytes_text(double(executor::memory_budget() / 2))),
          "Take fewer inputs with --limit N, or fewer methods at a time.");
  }

  /// Why a method cannot be done; "" when it can.
  std::string obstacle(Working& one) {
    if (!one.method)
      return changed_.kind == Kind::kImage
                 ? ""
                 : fmt::format("it changes images, but these are {}", kind_words(changed_.kind));
    if (one.method->make == relevant_noise) explain();
    one.settings = settle(*one.method, changed_, asked_);
    std::string reason = unsuited(*one.method, *network_, one.settings);
    if (reason.empty() && one.method->gradients) reason = gradients_missing();
    if (!reason.empty() && one.method->make == relevant_noise && !unexplained_.empty()) reason = unexplained_;
    return reason;
  }

  void attack() {
    int64_t suited = 0;
    for (const Method* method : methods_) {
      Working one{method, {}, {}};
      MethodResult shown;
      shown.name = method ? method->name : "fuzz";
      shown.skipped = obstacle(one);
      shown.eps = std::max(0.0, one.settings.eps), shown.steps = one.settings.steps;
      suited += shown.skipped.empty();
      work_.push_back(std::move(one));
      report_.methods.push_back(std::move(shown));
    }
    if (suited == 0 && methods_.size() == 1)
      throw InputError(fmt::format("--method {} does not suit {}: {}", report_.methods[0].name, data_.info().spec,
                                   report_.methods[0].skipped),
                       "--method all uses the methods that suit the data.");
    require_room(suited);
    if (request_.round && !whole_) session_.note("--round has no effect: the raw values are not bytes");
    const Budget share = takes_everything() ? Budget::unlimited() : session_.budget().part(1.0 / double(suited));
    for (size_t m = 0; m < work_.size() && !report_.interrupted; ++m)
      if (report_.methods[m].skipped.empty()) run_method(work_[m], report_.methods[m], share);
    // What was never begun is not told as done.
    for (size_t m = work_.size(); m-- > 0;)
      if (report_.methods[m].skipped.empty() && work_[m].result.attempts.empty() && !report_.methods[m].fuzz)
        work_.erase(work_.begin() + std::ptrdiff_t(m)),
            report_.methods.erase(report_.methods.begin() + std::ptrdiff_t(m));
  }

  void run_method(Working& one, MethodResult& shown, const Budget& share) {
    CampaignOptions how;
    how.jobs = session_.request().jobs, how.quiet = session_.request().quiet;
    how.attempts = request_.tries, how.round = whole_;
    how.budget = share.timed() ? session_.budget().part(share_of_rest()) : share;
    ++begun_;
    if (one.method) {
      announce(one, how);
      one.result = run_campaign(*network_, subject_, chosen_, *one.method, one.settings, how);
      session_.budget().spend(double(one.result.attempts.size()) *
                              work_per_input(*one.method, one.settings, *network_, subject_.cost, how.attempts));
      if (one.result.cut)
        session_.note(
            fmt::format("{}: --budget {} allows {} of {} inputs, evenly spread; --all takes all, --budget deep more, "
                        "--limit N the first N",
                        shown.name, session_.budget().name(), with_commas(int64_t(one.result.attempts.size())),
                        with_commas(chosen_.count())));
    } else {
      run_fuzz(one, shown, how);
    }
    shown.cut = one.result.cut, shown.seconds = one.result.seconds;
    report_.interrupted = report_.interrupted || one.result.interrupted;
    session_.record(session_.test(), shown.name, int64_t(one.result.attempts.size()), one.result.seconds);
  }

  /// What will take long says so before it begins. Whether that may be so follows from the work and the speed of the
  /// pass that predicted the inputs; how long it takes is measured on a few inputs, since a method may end early and a
  /// pass over small networks is mostly overhead. Ranks would not measure the same.
  void announce(const Working& one, const CampaignOptions& how) const {
    constexpr double kLong = 20, kSeveral = 5;
    if (session_.traversals().empty() || how.budget.timed() || cluster::size() > 1) return;
    const session::Traversal& pass = session_.traversals().back();
    if (!(pass.seconds > 0) || pass.inputs == 0 || !(subject_.cost > 0)) return;
    const double each = work_per_input(*one.method, one.settings, *network_, subject_.cost, how.attempts);
    const double work = std::min(double(chosen_.count()) * each, how.budget.left());
    if (work * pass.seconds / (double(pass.inputs) * subject_.cost) <= kLong) return;
    const double inputs = work / each, first = seconds_for(one, how, 1);
    double seconds = first * inputs;
    if (first < kSeveral && inputs > kSeveral) {  // what an input more costs, and what a batch costs whatever is in it
      const double more = std::max(0.0, (seconds_for(one, how, int64_t(kSeveral)) - first) / (kSeveral - 1));
      seconds = more * inputs + std::max(0.0, first - more) * std::ceil(inputs / double(campaign_batch(subject_)));
    }
    seconds /=
        std::min(double(how.jobs > 0 ? how.jobs : cores()), std::ceil(inputs / double(campaign_batch(subject_))));
    if (seconds > kLong)
      session_.note(fmt::format(
          "{} may take {} or more, as measured on a few inputs; --limit N takes fewer inputs", one.method->name,
          seconds < 120 ? fmt::format("{:.0f} s", seconds) : fmt::format("{:.0f} min", seconds / 60)));
  }

  double seconds_for(const Working& one, CampaignOptions how, int64_t count) const {
    Chosen few = chosen_;
    few.samples.resize(size_t(count)), few.predictions.resize(size_t(count));
    how.quiet = true, how.budget = Budget::unlimited();
    return run_campaign(*network_, subject_, few, *one.method, one.settings, how).seconds;
  }

  /// A time is shared by the methods that are still to come.
  double share_of_rest() const {
    const auto suited = std::count_if(report_.methods.begin(), report_.methods.end(),
                                      [](const MethodResult& one) { return one.skipped.empty(); });
    return 1.0 / double(std::max<int64_t>(1, suited - begun_));
  }

  /// Where relevance can reach the inputs, noise can go where it is largest.
  void explain() {
    if (asked_.relevance || !range_) return;
    try {
      explainer_.emplace(subject_, task_);
      dataset::Batch first = data_.read(std::span(chosen_.samples.data(), 1));
      if (!explainer_->run(first).features[changed_.feature].defined())
        unexplained_ = "no relevance reaches these inputs";
    } catch (const InputError& error) {
      unexplained_ = error.what();
    }
    if (!unexplained_.empty()) return;
    asked_.relevance = [this](const Originals& originals) {
      return explainer_->run(originals.batch, originals.predictions).features[changed_.feature].to(at::kFloat);
    };
  }

  /// Why attacks would have no gradient to follow, "" when they have; a few inputs tell.
  const std::string& gradients_missing() {
    if (gradients_looked_at_) return no_gradients_;
    gradients_looked_at_ = true;
    try {
      if (!network_->has_gradients(
              read_originals(*network_, subject_, chosen_, 0, std::min<int64_t>(8, chosen_.count()))))
        no_gradients_ = "no gradient reaches the inputs: an operator of the model rounds values or looks them up";
    } catch (const InputError& error) {
      no_gradients_ = error.what();
    }
    return no_gradients_;
  }

  void run_fuzz(Working& one, MethodResult& shown, const CampaignOptions& how) {
    Novelty novelty(criteria_);
    FuzzOptions options;
    options.jobs = how.jobs, options.quiet = how.quiet, options.budget = how.budget;
    options.seed = session_.request().seed;
    if (request_.steps > 0) options.rounds = request_.steps;
    options.as_published = request_.as_published == "deephunter";
    options.queue =
        request_.queue.empty() ? request_.product.substr(0, request_.product.size() - 4) + ".queue" : request_.queue;
    std::string inputs_key;
    for (size_t i = 0; i < chosen_.samples.size(); ++i)
      inputs_key += fmt::format("{}:{} ", chosen_.samples[i], chosen_.predictions[i]);
    options.about =
        fmt::format("{} {} {} {} {} {}", file_checksum(session_.model_name()), data_.info().spec, checksum(inputs_key),
                    criteria_words_, request_.profile.empty() ? "-" : file_checksum(request_.profile), options.seed);
    if (options.as_published) options.about += " deephunter";
    FuzzResult done = fuzz(*network_, subject_, task_, chosen_, space_, novelty, options);
    session_.budget().spend(double(done.tried) * subject_.cost);
    shown.fuzz =
        FuzzCounts{done.rounds, done.resumed, done.tried, done.failing, done.kept, done.covered_before, done.covered};
    one.result = std::move(done.made);
  }

  /// Writes the product and judges what is read back from it.
  void save() {
    std::vector<MadeBy> made;
    int64_t count = 0;
    for (size_t m = 0; m < work_.size(); ++m) {
      for (const Attempt& attempt : work_[m].result.attempts) count += attempt.made;
      if (!work_[m].result.attempts.empty()) made.push_back({report_.methods[m].name, &work_[m].result});
    }
    if (count > 0) {
      report_.file = report_.interrupted ? partial_name(request_.product) : request_.product;
      report_.made_data = write_product(report_.file, data_, subject_.graph, *network_, made, whole_);
      judge_again();
    }
    std::vector<Attempt> all;
    for (size_t m = 0; m < work_.size(); ++m) {
      const std::vector<Attempt>& own = work_[m].result.attempts;
      report_.methods[m].summary = summarise(own, !range_);
      all.insert(all.end(), own.begin(), own.end());
    }
    report_.all = summarise(all, !range_);
  }

  session::Split made_split() const {
    stream::Subject subject(session_.model_name(), subject_.graph, dataset::open(report_.made_data),
                            {task_.head.output, task_.head.logits}, subject_.device);
    std::shared_ptr<const dataset::Dataset> data = subject.data;
    return {"made", dataset::parse_spec(report_.made_data), std::move(data), std::move(subject)};
  }

  /// What counts is what a user of the file will get.
  void judge_again() {
    const session::Split made = made_split();
    const observers::Predictions predictions(task_, true);
    stream::Pass pass(made.subject);
    auto seen = pass.watch(predictions);
    session_.run(pass, made, "predictions for what was made");
    if (pass.interrupted()) return;  // then what was seen while making them counts
    const std::vector<SampleRow>& rows = pass.state(seen).rows;
    size_t next = 0;
    for (Working& one : work_)
      for (Attempt& attempt : one.result.attempts) {
        if (!attempt.made) continue;
        const double predicted = rows.at(next++).predicted;
        const int64_t after = std::isfinite(predicted) ? int64_t(predicted) : -1;
        report_.changed_by_saving += after != attempt.after;
        attempt.after = after;
      }
  }

  /// What the originals cover, and what they cover together with what was made.
  void measure_coverage() {
    using observers::Criteria;
    session::Split originals = session_.test();
    std::vector<int64_t> samples = chosen_.samples;
    std::sort(samples.begin(), samples.end());
    originals.subject.data = dataset::subset(subject_.data, samples);
    originals.name = "originals";
    const Criteria own(task_, space_, criteria_);
    stream::Pass before(originals.subject);
    auto covered = before.watch(own);
    session_.run(before, originals, "coverage of the originals");
    if (before.interrupted()) return;
    const session::Split made = made_split();
    std::vector<std::unique_ptr<Criteria>> parts;
    std::vector<stream::Watched<Criteria>> handles;
    stream::Pass after(made.subject);
    int64_t first = 0;
    for (const MethodResult& one : report_.methods) {
      if (one.summary.made == 0) continue;
      const int64_t end = first + one.summary.made;
      parts.push_back(std::make_unique<Criteria>(task_, space_, criteria_, [first, end](const SampleRow& row) {
        return row.sample >= first && row.sample < end;
      }));
      handles.push_back(after.watch(*parts.back()));
      first = end;
    }
    session_.run(after, made, "coverage of what was made");
    if (after.interrupted()) return;
    auto figures = [&](const observers::CriteriaState& state, size_t c) {
      const observers::Figure figure = criteria_[c]->figure(*state.tallies[c]);
      return Covered{figure.value, figure.covered, figure.total};
    };
    const observers::CriteriaState& alone = before.state(covered);
    for (size_t c = 0; c < criteria_.size(); ++c)
      report_.coverage.push_back({criteria_[c]->figure(*alone.tallies[c]).name, figures(alone, c), {}, {}});
    observers::CriteriaState together(own);
    together.merge(alone);
    for (const stream::Watched<Criteria>& handle : handles) {
      observers::CriteriaState with(own);
      with.merge(alone);
      with.merge(after.state(handle));
      together.merge(after.state(handle));
      for (size_t c = 0; c < criteria_.size(); ++c) report_.coverage[c].by_method.push_back(figures(with, c));
    }
    for (size_t c = 0; c < criteria_.size(); ++c) report_.coverage[c].after = figures(together, c);
  }

  /// One row per input and method.
  void write_changes(const std::string& path) const {
    write_csv(path, "method,sample,id,label,before,after,made,success,l0,l2,linf", [&](CsvWriter& out) {
      auto name = [&](int64_t number) { return class_words(task_, number); };
      for (size_t m = 0; m < work_.size(); ++m)
        for (const Attempt& a : work_[m].result.attempts)
          out.row(report_.methods[m].name, a.sample, data_.id(a.sample), a.label < 0 ? "" : name(a.label),
                  name(a.before), name(a.after), a.made, a.success(), Digits{a.distance.l0, 9},
                  Digits{a.distance.l2, 9}, Digits{a.distance.linf, 9});
    });
  }

  void draw(const std::string& path) {
    if (changed_.kind != Kind::kImage) return;
    size_t done = 0;
    for (const Working& one : work_) done += !one.result.attempts.empty();
    std::vector<Shown> shown;
    for (size_t m = 0; m < work_.size(); ++m)
      show_some(work_[m].result, report_.methods[m].name, std::max<size_t>(2, kShown / std::max<size_t>(1, done)),
                shown);
    if (shown.empty()) return;
    const dataset::Image sheet = change_sheet(shown, changed_, data_.info().preprocess.color == "BGR");
    dataset::write_png(path, sheet.height, sheet.width, sheet.channels, sheet.pixels);
    report_.sheet = path;
  }

  void show_some(const CampaignResult& result, const std::string& name, size_t most, std::vector<Shown>& shown) const {
    std::vector<size_t> good, rest;
    for (size_t i = 0; i < result.attempts.size(); ++i)
      if (result.attempts[i].made) (result.attempts[i].success() ? good : rest).push_back(i);
    const std::vector<size_t>& from = good.empty() ? rest : good;
    for (int64_t i : stream::spread(int64_t(from.size()), int64_t(most), 0.5)) {
      const size_t row = from[size_t(i)];
      const Attempt& attempt = result.attempts[row];
      at::Tensor before = range_->units(data_.read(std::span(&attempt.sample, 1)).inputs[changed_.feature])[0];
      at::Tensor after = range_->units(range_->fed(result.raw.narrow(0, int64_t(row), 1)))[0];
      shown.push_back(
          {before, after,
           fmt::format("{} {}>{}", name, class_words(task_, attempt.before), class_words(task_, attempt.after))});
    }
  }

  session::Session& session_;
  const StressRequest& request_;
  const observers::PredictionSettings& task_;
  const stream::Subject& subject_;
  const dataset::Dataset& data_;
  Subject changed_;
  std::vector<const Method*> methods_;
  std::optional<stream::RawRange> range_;
  std::unique_ptr<Network> network_;
  observers::SpacePtr space_;
  std::optional<observers::Profile> profile_;
  observers::Criteria::List criteria_;
  std::string criteria_words_, unexplained_, no_gradients_;
  bool gradients_looked_at_ = false, whole_ = false;
  std::optional<observers::InputExplainer> explainer_;
  Settings asked_;
  Chosen chosen_;
  std::vector<Working> work_;  ///< one per method of the report
  int64_t begun_ = 0;
  StressReport report_;
};

}  // namespace

std::vector<size_t> spread_order(size_t count) {
  size_t stride = std::max<size_t>(1, size_t(double(count) * 0.6180339887));
  auto divisor = [](size_t a, size_t b) {
    while (b) std::swap(a %= b, b);
    return a;
  };
  while (stride > 1 && divisor(count, stride) != 1) --stride;
  std::vector<size_t> order;
  for (size_t i = 0, at = 0; i < count; ++i, at = (at + stride) % count) order.push_back(at);
  return order;
}

std::string class_words(const observers::PredictionSettings& task, int64_t number) {
  if (number < 0) return "NaN";
  return number < int64_t(task.classes.size()) ? task.classes[size_t(number)] : std::to_string(number);
}

void check_request(const StressRequest& request) {
  methods_of(request.method);
  settings_of(request, 0);
  if (!request.product.ends_with(".npz"))
    throw InputError(fmt::format("-o {}: inputs are written as an NPZ file", request.product),
                     "For example -o adv.npz.");
  claim_product(request.product, "-o");
}

StressReport stress(session::Session& session, const StressRequest& request) {
  check_request(request);
  require_classes(session.task());
  session.sample(session.test());
  return Stressing(session, request).run();
}

}  // namespace netmend::inputs
