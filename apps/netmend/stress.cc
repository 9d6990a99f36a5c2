// netmend stress: new inputs from old ones, and what the network says to them.
#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/shell.h"
#include "base/error.h"
#include "base/file.h"
#include "base/pool.h"
#include "base/run_folder.h"
#include "base/text.h"
#include "dataset/image_file.h"
#include "executor/runtime.h"
#include "inputs/criteria_choice.h"
#include "inputs/product.h"
#include "inputs/sheet.h"
#include "localise/candidates.h"
#include "netmend/show.h"
#include "netmend/stress_report.h"
#include "netmend/target.h"
#include "observers/input_relevance.h"
#include "stream/layers.h"

namespace netmend::app {
namespace {

using inputs::Attempt;
using inputs::Chosen;
using inputs::Method;
using inputs::Network;
using observers::PredictionState;
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
  for (const std::string& name : split(names, ','))
    if (lower(trim(name)) == "all")
      for (const Method& method : inputs::methods()) add(&method);
    else
      add(lower(trim(name)) == "fuzz" ? nullptr : &inputs::find_method(std::string(trim(name))));
  return chosen;
}

/// The criteria that fuzz is guided by unless told otherwise.
std::string criteria_text(const StressOptions& options, bool fuzzes) {
  if (!options.criteria.empty() || !fuzzes) return options.criteria;
  return options.profile.empty() ? "NC,TKNC" : "KMNC,NBC";
}

inputs::Settings settings_of(const Common& common, const StressOptions& options) {
  inputs::Settings settings;
  settings.seed = common.seed;
  if (!options.eps.empty()) settings.eps = inputs::parse_share("--eps", options.eps);
  if (!options.step_size.empty()) settings.step_size = inputs::parse_share("--step-size", options.step_size);
  settings.steps = options.steps;
  settings.confidence = options.confidence;
  settings.as_published = options.as_published;
  return settings;
}

void require_answers(const observers::PredictionSettings& settings) {
  using observers::Task;
  const bool classes = settings.by_class() || (settings.task == Task::kNone && settings.outputs > 1);
  if (!classes)
    throw InputError(fmt::format("the model gives {}: stress looks for another class than before",
                                 settings.task == Task::kLabels ? "several labels at once" : "numbers"),
                     "Use a model that answers with one class.");
}

/// Every input once, and the first ones of any number spread over all.
std::vector<size_t> spread_order(size_t count) {
  size_t stride = std::max<size_t>(1, size_t(double(count) * 0.6180339887));
  auto divides = [](size_t a, size_t b) {
    while (b) std::swap(a %= b, b);
    return a;
  };
  while (stride > 1 && divides(count, stride) != 1) --stride;
  std::vector<size_t> order;
  for (size_t i = 0, at = 0; i < count; ++i, at = (at + stride) % count) order.push_back(at);
  return order;
}

class Stressing {
 public:
  Stressing(const Common& common, const StressOptions& options, const Judged& judged)
      : common_(common),
        options_(options),
        judged_(judged),
        data_(*judged.subject.data),
        changed_(inputs::find_subject(data_.info())) {
    for (int64_t size : changed_.about.shape)
      if (size < 0)
        throw InputError(fmt::format("the inputs of {} differ in length", data_.info().spec),
                         "Add length=N to the data: longer ones are cut, shorter ones filled up.");
    if (changed_.kind != inputs::Kind::kTokens) range_.emplace(data_, changed_.feature, options.range);
    std::vector<inputs::UnitPlace> units;
    if (!options.units.empty()) {
      std::vector<model::Layer> layers = stream::find_layers(judged.subject);
      std::erase_if(layers, [](const model::Layer& layer) { return layer.merged != model::Merged::kNo; });
      for (const std::string& name : options.units) units.push_back(inputs::find_unit(layers, name));
    }
    network_ = std::make_unique<Network>(judged.subject, judged.settings, changed_, range_ ? &*range_ : nullptr, units);
    if (changed_.kind == inputs::Kind::kTokens || changed_.kind == inputs::Kind::kTable) borrow();
  }

  /// Criteria to hold what is made against. Before any work: names and profiles may be wrong.
  void hold_against(const std::string& criteria) {
    if (criteria.empty()) return;
    std::vector<adequacy::Wanted> wanted = adequacy::parse_criteria(criteria);
    std::vector<model::Layer> layers =
        localise::candidates(stream::find_layers(judged_.subject), judged_.subject.graph, judged_.settings.head,
                             judged_.settings.outputs, options_.layers);
    space_ = observers::make_unit_space(judged_.subject, std::move(layers), {});
    if (!options_.profile.empty())
      profile_ = observers::load_profile(options_.profile, judged_.settings, space_, space_->layers().size() - 1,
                                         file_checksum(judged_.subject.model_name));
    criteria_ = inputs::make_criteria(wanted, space_, profile_ ? &*profile_ : nullptr, kImportant);
    criteria_words_ = criteria;
  }

  StressReport run(const std::vector<const Method*>& methods, const inputs::Settings& asked,
                   const NamedTarget& target) {
    auto start = std::chrono::steady_clock::now();
    asked_ = asked;
    asked_.pool = pool_;
    report_.range = range_ ? range_->words() : "";
    report_.unit = !range_                                 ? "tokens"
                   : changed_.kind == inputs::Kind::kTable ? "parts of each column's range"
                                                           : "parts of the valid range";
    choose(target);
    if (!report_.interrupted) attack(methods);
    report_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return std::move(report_);
  }

  /// Writes the product and judges what is read back from it.
  void save(StressReport& report) {
    std::vector<inputs::MadeBy> made;
    int64_t count = 0;
    for (MethodReport& one : report.methods)
      for (const Attempt& attempt : one.result.attempts) count += attempt.made;
    for (const MethodReport& one : report.methods)
      if (!one.result.attempts.empty()) made.push_back({one.name, &one.result});
    if (count > 0) {
      report.spec = inputs::write_product(options_.product, data_, judged_.subject.graph, *network_, made, whole());
      report.file = options_.product;
      judge(report);
    }
    std::vector<Attempt> all;
    for (MethodReport& one : report.methods) {
      one.summary = inputs::summarise(one.result.attempts, !range_);
      all.insert(all.end(), one.result.attempts.begin(), one.result.attempts.end());
    }
    report.all = inputs::summarise(all, !range_);
    if (!criteria_.empty() && !report.spec.empty()) measure(report);
  }

  void draw(StressReport& report, const std::string& path) {
    if (changed_.kind != inputs::Kind::kImage) return;
    std::vector<inputs::Shown> shown;
    size_t done = 0;
    for (const MethodReport& one : report.methods) done += !one.result.attempts.empty();
    for (const MethodReport& one : report.methods)
      show_some(one, std::max<size_t>(2, kShown / std::max<size_t>(1, done)), shown);
    if (shown.empty()) return;
    dataset::Image sheet = inputs::change_sheet(shown, changed_, data_.info().preprocess.color == "BGR");
    dataset::write_png(path, sheet.height, sheet.width, sheet.channels, sheet.pixels);
    report.sheet = path;
  }

 private:
  /// What the originals cover, and what they cover together with what was made.
  void measure(StressReport& report) const {
    using observers::Criteria;
    using observers::CriteriaState;
    const executor::Head& head = judged_.settings.head;
    stream::Subject before = judged_.subject;
    std::vector<int64_t> samples = chosen_.samples;
    std::sort(samples.begin(), samples.end());
    before.data = dataset::subset(judged_.subject.data, samples);
    Criteria own(judged_.settings, space_, criteria_);
    stream::PassOptions how = pass_options(common_);
    stream::PassResult done = stream::run_pass(before, {&own}, how);
    if (done.interrupted) return;
    std::vector<std::unique_ptr<Criteria>> parts;
    std::vector<const stream::Observer*> watching;
    int64_t first = 0;
    for (const MethodReport& one : report.methods) {
      if (one.summary.made == 0) continue;
      const int64_t end = first + one.summary.made;
      parts.push_back(std::make_unique<Criteria>(
          judged_.settings, space_, criteria_,
          [first, end](const SampleRow& row) { return row.sample >= first && row.sample < end; }));
      watching.push_back(parts.back().get());
      first = end;
    }
    stream::Subject after(judged_.subject.model_name, judged_.subject.graph, dataset::open(report.spec),
                          {head.output, head.logits});
    stream::PassResult made = stream::run_pass(after, watching, how);
    if (made.interrupted) return;
    auto originals = done.collected[0].fold(own), together = done.collected[0].fold(own);
    auto tally = [](const stream::State& state, size_t c) -> const observers::Tally& {
      return *dynamic_cast<const CriteriaState&>(state).tallies[c];
    };
    for (size_t c = 0; c < criteria_.size(); ++c)
      report.coverage.push_back({criteria_[c]->figure(tally(*originals, c)), {}, {}});
    for (size_t m = 0; m < parts.size(); ++m) {
      auto with = done.collected[0].fold(own), part = made.collected[m].fold(*parts[m]);
      with->merge(*part);
      together->merge(*part);
      for (size_t c = 0; c < criteria_.size(); ++c)
        report.coverage[c].by_method.push_back(criteria_[c]->figure(tally(*with, c)));
    }
    for (size_t c = 0; c < criteria_.size(); ++c) report.coverage[c].after = criteria_[c]->figure(tally(*together, c));
  }

  bool whole() const { return options_.round && range_ && range_->bytes(); }

  /// Rows of the data in the units that methods work in.
  void borrow() {
    at::Tensor fed = data_.read(stream::spread(data_.size(), kPool)).inputs[changed_.feature];
    pool_ = (range_ ? range_->units(fed) : fed).contiguous();
  }

  /// By default inputs that are answered right; all of them where nothing says what is right.
  void choose(const NamedTarget& target) {
    observers::Predictions predictions(judged_.settings, true);
    stream::PassOptions how = pass_options(common_);
    const bool judged = judged_.settings.task != observers::Task::kNone;
    std::vector<SampleRow> rows;
    how.on_chunk = [&](std::vector<std::unique_ptr<stream::State>>& chunk) {
      for (const SampleRow& row : dynamic_cast<PredictionState&>(*chunk[0]).rows) {
        ++report_.of;
        report_.right += row.right == SampleRow::kRight;
        const bool meant = (target.target.label < 0 || row.label == double(target.target.label)) &&
                           (!target.target.may_fail || target.target.may_fail(row.sample));
        const bool wanted = options_.from == "all" || !judged || row.right == SampleRow::kRight;
        if (meant && wanted && std::isfinite(row.predicted)) rows.push_back(row);
      }
      dynamic_cast<PredictionState&>(*chunk[0]).rows.clear();
    };
    report_.interrupted = stream::run_pass(judged_.subject, {&predictions}, how).interrupted;
    if (rows.empty() && !report_.interrupted)
      throw InputError(
          fmt::format("none of the {} inputs{} is answered right: there is no answer to upset", with_commas(report_.of),
                      target.text.empty() ? "" : " of --on " + target.text),
          report_.right > 0
              ? "Other inputs are: leave out --on, or add --from all."
              : "netmend check says whether model and data belong together; --from all takes every input.");
    // Where the time may run out, what is done by then should speak for all.
    const bool timed = !options_.all && options_.limit <= 0;
    std::vector<size_t> order = spread_order(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      const SampleRow& row = rows[timed ? order[i] : i];
      chosen_.samples.push_back(row.sample), chosen_.answers.push_back(int64_t(row.predicted));
    }
  }

  void require_room(int64_t methods) const {
    const int64_t bytes = inputs::product_bytes(data_, *network_, methods * chosen_.count(), whole());
    const int64_t memory = methods * inputs::made_bytes(*network_, chosen_.count());
    if (bytes > kLargestFile || memory > executor::memory_budget() / 2)
      throw InputError(
          fmt::format("{} inputs by {} make {} of data; one file holds {}, half of the memory allowed is {}",
                      with_commas(chosen_.count()), counted(methods, "method"),
                      bytes_text(double(std::max(bytes, memory))), bytes_text(double(kLargestFile)),
                      bytes_text(double(executor::memory_budget() / 2))),
          "Take fewer inputs with --limit N, or fewer methods at a time.");
  }

  void attack(const std::vector<const Method*>& methods) {
    int64_t suited = 0;
    for (const Method* method : methods) {
      MethodReport one;
      one.method = method, one.name = method ? method->name : "fuzz";
      if (method) {
        if (method->make == inputs::relevant_noise) explain();
        one.settings = inputs::settle(*method, changed_, asked_);
        one.skipped = inputs::unsuited(*method, *network_, one.settings);
        if (one.skipped.empty() && method->gradients) one.skipped = gradients_missing();
        if (!one.skipped.empty() && method->make == inputs::relevant_noise && !unexplained_.empty())
          one.skipped = unexplained_;
      } else if (changed_.kind != inputs::Kind::kImage) {
        one.skipped = fmt::format("it changes images, these are {}", inputs::kind_words(changed_.kind));
      }
      suited += one.skipped.empty();
      report_.methods.push_back(std::move(one));
    }
    if (suited == 0 && methods.size() == 1)
      throw InputError(fmt::format("--method {} does not suit {}: {}", report_.methods[0].name, data_.info().spec,
                                   report_.methods[0].skipped),
                       "--method all does what suits the data.");
    require_room(suited);
    inputs::CampaignOptions how;
    how.jobs = common_.jobs, how.quiet = common_.quiet, how.attempts = options_.tries;
    how.round = options_.round && range_ && range_->bytes();
    if (options_.round && !how.round) say(common_, "--round: raw values are no bytes, they stay as they are");
    if (!options_.all && options_.limit <= 0) how.seconds = parse_budget(options_.budget) / double(suited);
    for (MethodReport& one : report_.methods) {
      if (!one.skipped.empty()) continue;
      if (one.method)
        one.result = inputs::run_campaign(*network_, judged_.subject, chosen_, *one.method, one.settings, how);
      else
        run_fuzz(one, how);
      if (one.result.out_of_time && one.method)
        say(common_,
            fmt::format("{}: {} of {} inputs in {}, evenly spread; --all for everything, --limit N, --budget 30m",
                        one.name, with_commas(int64_t(one.result.attempts.size())), with_commas(chosen_.count()),
                        duration_text(one.result.seconds)));
      report_.interrupted = report_.interrupted || one.result.interrupted;
      if (report_.interrupted) break;
    }
    std::erase_if(report_.methods, [](const MethodReport& one) {
      return one.skipped.empty() && one.result.attempts.empty() && !one.fuzz;
    });
  }

  /// Where relevance can reach the inputs, noise can go where it is largest.
  void explain() {
    if (asked_.relevance || !range_) return;
    try {
      explainer_.emplace(judged_.subject, judged_.settings);
      dataset::Batch first = data_.read(std::span(chosen_.samples.data(), 1));
      if (!explainer_->run(first).features[changed_.feature].defined())
        unexplained_ = "no relevance arrives at these inputs";
    } catch (const InputError& error) {
      unexplained_ = error.what();
    }
    if (!unexplained_.empty()) return;
    asked_.relevance = [this](const inputs::Originals& originals) {
      return explainer_->run(originals.batch, originals.answers).features[changed_.feature].to(at::kFloat);
    };
  }

  /// Why attacks would have nothing to follow, "" when they have; a few inputs tell.
  const std::string& gradients_missing() {
    if (gradients_looked_at_) return no_gradients_;
    gradients_looked_at_ = true;
    try {
      if (!network_->has_gradients(
              inputs::read_originals(*network_, judged_.subject, chosen_, 0, std::min<int64_t>(8, chosen_.count()))))
        no_gradients_ = "no gradient arrives at the inputs: something in the model rounds or looks up";
    } catch (const InputError& error) {
      no_gradients_ = error.what();
    }
    return no_gradients_;
  }

  void run_fuzz(MethodReport& one, const inputs::CampaignOptions& how) {
    inputs::Novelty novelty(criteria_);
    inputs::FuzzOptions options;
    options.jobs = how.jobs, options.quiet = how.quiet, options.seconds = how.seconds, options.seed = common_.seed;
    if (options_.steps > 0) options.rounds = options_.steps;
    options.as_published = options_.as_published == "deephunter";
    options.queue =
        options_.queue.empty() ? options_.product.substr(0, options_.product.size() - 4) + ".queue" : options_.queue;
    std::string inputs_key;
    for (size_t i = 0; i < chosen_.samples.size(); ++i)
      inputs_key += fmt::format("{}:{} ", chosen_.samples[i], chosen_.answers[i]);
    options.about = fmt::format("{} {} {} {} {} {}", file_checksum(judged_.subject.model_name), data_.info().spec,
                                checksum(inputs_key), criteria_words_,
                                options_.profile.empty() ? "-" : file_checksum(options_.profile), common_.seed);
    if (options.as_published) options.about += " deephunter";
    one.fuzz = inputs::fuzz(*network_, judged_.subject, judged_.settings, chosen_, space_, novelty, options);
    one.result = std::move(one.fuzz->made);
  }

  /// What counts is what a user of the file will get.
  void judge(StressReport& report) const {
    std::shared_ptr<const dataset::Dataset> again = dataset::open(report.spec);
    const executor::Head& head = judged_.settings.head;
    stream::Subject subject(judged_.subject.model_name, judged_.subject.graph, again, {head.output, head.logits});
    observers::Predictions predictions(judged_.settings, true);
    stream::PassOptions how = pass_options(common_);
    std::vector<SampleRow> rows;
    how.on_chunk = [&](std::vector<std::unique_ptr<stream::State>>& chunk) {
      auto& seen = dynamic_cast<PredictionState&>(*chunk[0]).rows;
      rows.insert(rows.end(), seen.begin(), seen.end());
      seen.clear();
    };
    if (stream::run_pass(subject, {&predictions}, how).interrupted)
      return;  // then what was seen while making them counts
    size_t next = 0;
    for (MethodReport& one : report.methods)
      for (Attempt& attempt : one.result.attempts) {
        if (!attempt.made) continue;
        const double predicted = rows.at(next++).predicted;
        const int64_t after = std::isfinite(predicted) ? int64_t(predicted) : -1;
        report.changed_by_saving += after != attempt.after;
        attempt.after = after;
      }
  }

  void show_some(const MethodReport& one, size_t most, std::vector<inputs::Shown>& shown) const {
    std::vector<size_t> good, rest;
    for (size_t i = 0; i < one.result.attempts.size(); ++i)
      if (one.result.attempts[i].made) (one.result.attempts[i].success() ? good : rest).push_back(i);
    const std::vector<size_t>& from = good.empty() ? rest : good;
    for (int64_t i : stream::spread(int64_t(from.size()), int64_t(most), 0.5)) {
      const size_t row = from[size_t(i)];
      const Attempt& attempt = one.result.attempts[row];
      at::Tensor before = range_->units(data_.read(std::span(&attempt.sample, 1)).inputs[changed_.feature])[0];
      at::Tensor after = range_->units(range_->fed(one.result.raw.narrow(0, int64_t(row), 1)))[0];
      auto name = [&](int64_t c) {
        return c < 0                                          ? std::string("?")
               : c < int64_t(judged_.settings.classes.size()) ? judged_.settings.classes[size_t(c)]
                                                              : std::to_string(c);
      };
      shown.push_back({before, after, fmt::format("{} {}>{}", one.name, name(attempt.before), name(attempt.after))});
    }
  }

  const Common& common_;
  const StressOptions& options_;
  const Judged& judged_;
  const dataset::Dataset& data_;
  inputs::Subject changed_;
  std::optional<inputs::Range> range_;
  std::unique_ptr<Network> network_;
  observers::SpacePtr space_;
  std::optional<observers::Profile> profile_;
  observers::Criteria::List criteria_;
  std::string criteria_words_, unexplained_, no_gradients_;
  bool gradients_looked_at_ = false;
  std::optional<observers::InputExplainer> explainer_;
  at::Tensor pool_;
  inputs::Settings asked_;
  Chosen chosen_;
  StressReport report_;
};

std::string next_step(const StressReport& report, const StressOptions& options, const Judged& judged) {
  if (report.spec.empty()) return "";
  std::string text = fmt::format("netmend eval {} --data {} --anyway", shell_word(judged.subject.model_name),
                                 shell_word(report.spec));
  if (!options.output.empty()) text += " --output " + shell_word(options.output);
  return text;
}

int refuse(const Common& common, const checkup::Preflight& preflight, const std::string& model) {
  if (common.json)
    print_json({{"preflight", preflight_json(preflight)},
                {"findings", Json::array({blocker_json(*preflight.blocker, "netmend stress " + model)})}});
  return 1;
}

}  // namespace

int stress(const Common& common, const StressOptions& options) {
  const std::vector<const Method*> methods = methods_of(options.method);  // slips of the finger show before the work
  const inputs::Settings asked = settings_of(common, options);
  if (!options.product.ends_with(".npz"))
    throw InputError(fmt::format("-o {}: inputs are written as an NPZ file", options.product),
                     "For example -o adv.npz.");
  require_writable(options.product);
  Case about = open_case(common, options);
  Judged& judged = about.judged;
  require_answers(judged.settings);
  checkup::Preflight preflight = examine(common, options, about);
  if (!common.json) print_preflight(preflight, judged.settings.metric);
  if (preflight.blocker && !options.anyway) return refuse(common, preflight, judged.subject.model_name);
  Plan plan = plan_pass(common, options, about);
  judged.subject.data = plan.data;
  NamedTarget target = parse_target(options.on, judged.settings, *plan.data);

  Stressing stressing(common, options, judged);
  stressing.hold_against(criteria_text(options, std::find(methods.begin(), methods.end(), nullptr) != methods.end()));
  StressReport report = stressing.run(methods, asked, target);
  RunFolder folder(common.out, "stress", common.arguments);
  report.run = folder.path();
  stressing.save(report);
  stressing.draw(report, folder.file("changed.png"));
  report.next = next_step(report, options, judged);
  write_changes(folder.file("changes.csv"), report, judged);
  folder.note_file(judged.subject.model_name);
  for (const std::string& file : plan.data->info().files) folder.note_file(file);
  folder.note("data", plan.data->info().spec);
  Json json = stress_json(report, judged.settings);
  json["model"] = judged.subject.model_name;
  json["data"] = plan.data->info().spec;
  json["preflight"] = preflight_json(preflight);
  json["next"] = report.next.empty() ? Json::array() : Json::array({report.next});
  json["run"] = folder.path();
  write_file(folder.file("stress.json"), json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  folder.finish(common.seed, report.seconds, report.interrupted ? 130 : 0);
  if (common.json) {
    print_json(json);
  } else {
    print_stress(report, judged);
    if (!report.next.empty()) fmt::print("\n  next  {}\n", report.next);
    fmt::print("  every input: {}/changes.csv{}\n", folder.path(),
               report.sheet.empty() ? "" : ", pictures: changed.png");
  }
  if (report.interrupted) say(common, "stopped: this is what was finished");
  return report.interrupted ? 130 : 0;
}

}  // namespace netmend::app
