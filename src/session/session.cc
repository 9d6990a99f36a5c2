#include "session/session.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/escape.h"
#include "base/pool.h"
#include "base/text.h"
#include "cluster/ranks.h"
#include "executor/layers.h"
#include "executor/runtime.h"
#include "observers/predictions.h"
#include "onnx/reader.h"
#include "session/repair_record.h"
#include "session/split.h"
#include "stream/layers.h"

namespace netmend::session {

using dataset::Dataset;
using dataset::Spec;
using observers::PredictionSettings;

model::ValueId choose_output(const model::Graph& graph, const std::string& name) {
  if (name.empty()) return graph.outputs.at(0);
  model::ValueId id = graph.find(name);
  std::vector<std::string> names;
  for (const model::Node& node : graph.nodes) {
    if (id == model::kAbsent && node.name == name && !node.outputs.empty()) id = node.outputs[0];
    for (model::ValueId output : node.outputs)
      if (output != model::kAbsent) names.push_back(graph.values[size_t(output)].name);
  }
  if (id == model::kAbsent) fail("the model has no value `{}`{}", name, did_you_mean(name, names));
  return id;
}

std::shared_ptr<const Dataset> open_data(const Spec& asked, const model::Graph& model, const Config& config,
                                         const std::function<void(const std::string&)>& note) {
  auto say = [&](const std::string& line) {
    if (note) note("data: " + line);
  };
  Spec spec = asked;
  std::vector<std::string> from_config, from_model;
  auto take = [&](const std::string& key, const std::string& value, std::vector<std::string>& source) {
    if (!spec.options.try_emplace(key, value).second) return;
    source.push_back(fmt::format("{}={}", key, value));
  };
  for (const auto& [key, value] : config.input) take(key, value, from_config);
  // Folders have an order only by their names; elsewhere the same names in another order are found out below.
  if (!config.classes.empty() && spec.head == "images")
    take("classes", dataset::join_list(config.classes), from_config);
  if (!config.meta.empty()) take("meta", config.meta, from_config);
  const bool table = spec.head == "csv" || spec.head == "text";
  if (!config.id.empty() && config.id != "path") take(table ? "id" : "meta_id", config.id, from_config);
  if (!config.groups.empty() && !config.meta.empty())
    take("meta_groups", dataset::join_list(config.groups), from_config);
  else if (!config.groups.empty() && (spec.head == "csv" || spec.head == "adult"))
    take("groups", dataset::join_list(config.groups), from_config);
  // Saved data is what the model was given in training: what the model says about raw values does not apply to it.
  for (const std::string& key : spec.head == "saved" ? std::vector<std::string>{} : dataset::preprocess_keys())
    if (auto hit = model.metadata.find("netmend.input." + key); hit != model.metadata.end())
      take(key, hit->second, from_model);
  if (!from_config.empty()) say(fmt::format("{} from {}", join(from_config, " "), config.path));
  if (!from_model.empty()) say(fmt::format("{} from the model's metadata", join(from_model, " ")));
  std::shared_ptr<const Dataset> data = dataset::open(spec);
  for (const std::string& line : data->info().notes) say(line);
  if (config.classes.empty() || spec.options.count("classes")) return data;
  std::vector<std::string> own = data->info().classes, wanted = config.classes;
  std::sort(own.begin(), own.end());
  std::sort(wanted.begin(), wanted.end());
  if (data->info().labels != dataset::LabelKind::kClass || own != wanted) {
    spec.options["classes"] = dataset::join_list(config.classes);
    return dataset::open(spec);
  }
  if (data->info().classes == config.classes) return data;
  say(fmt::format("classes are numbered in the order of {}", config.path));
  return dataset::renumbered(data, config.classes);
}

namespace {

std::shared_ptr<const Dataset> first_inputs(std::shared_ptr<const Dataset> data, int64_t limit) {
  if (limit <= 0 || limit >= data->size()) return data;
  return dataset::subset(data, stream::spread(limit, limit));
}

/// --test, else the test split of --data, else what netmend.toml names.
std::optional<Spec> test_spec(const Request& request, const Config& config) {
  if (!request.test.empty()) return dataset::parse_spec(request.test);
  if (!request.data.empty()) return *dataset::parse_splits(request.data).test;
  if (!config.test.empty()) return dataset::parse_spec(config.test);
  return {};
}

std::optional<Spec> train_spec(const Request& request, const Config& config) {
  if (!request.train.empty()) return dataset::parse_spec(request.train);
  if (!request.data.empty() && request.test.empty())
    if (auto splits = dataset::parse_splits(request.data); splits.train) return splits.train;
  const bool named = !request.data.empty() || !request.test.empty();
  if (!named && !config.train.empty()) return dataset::parse_spec(config.train);
  return {};
}

/// Columns of a table mean the same in tests as in training: both are encoded by the training file.
void encode_alike(Request& request) {
  std::string& tests = request.test.empty() ? request.data : request.test;
  if (tests.empty() || request.train.empty()) return;
  Spec spec = dataset::parse_spec(tests), other = dataset::parse_spec(request.train);
  if (spec.head == "csv" && other.head == "csv" && spec.options.try_emplace("train", other.rest).second)
    tests = dataset::spec_text(spec);
}

}  // namespace

struct Session::Impl {
  /// The output that the command line or the configuration names, which may have been written for another model.
  model::ValueId output() const {
    if (!request.output.empty() || config.output.empty()) return choose_output(graph, request.output);
    try {
      return choose_output(graph, config.output);
    } catch (const InputError&) {
      const bool other = !config.model.empty() && config.model != model_name;
      throw InputError(
          fmt::format("{}{} names the output `{}`, which {} does not have", config.path,
                      other ? fmt::format(" (written for {})", config.model) : "", config.output, model_name),
          "--output names one of its outputs, --config another file.");
    }
  }

  Request asked;  ///< as typed, for commands
  Request request;
  Config config;
  Budget budget;
  std::string model_name;
  model::Graph graph;
  executor::Head head;
  std::optional<Spec> test_spec, train_spec;
  std::shared_ptr<const Dataset> test_data, train_data;  ///< given in memory
  std::optional<Split> test, train;
  bool train_opened = false;
  std::optional<PredictionSettings> task;
  std::optional<std::vector<model::Layer>> layers;
  std::shared_ptr<void> claimed;  ///< --out
  std::optional<RunFolder> folder;
  std::vector<Traversal> traversals;

  void note(const std::string& line) const {
    if (request.note) request.note(line);
  }

  observers::TaskOverrides overrides() const {
    observers::TaskOverrides overrides = config.overrides;
    if (!request.metric.empty()) overrides.metric = request.metric;
    return overrides;
  }

  /// `--device auto`, once model and data are known.
  void choose_device(const stream::Subject& subject) {
    const int64_t inputs = subject.data->size();
    double bytes = 0;
    for (const at::Tensor& input : subject.feed.inputs(subject.data->read(stream::spread(inputs, 1))))
      bytes += double(input.nbytes()) * double(inputs);
    const int workers = request.jobs > 0 ? std::min(request.jobs, cores()) : cores();
    const executor::DeviceEstimate estimate =
        executor::estimate_devices(subject.cost * double(inputs) * request.passes, bytes, workers);
    request.device = estimate.gpu() ? "cuda" : "cpu";
    note(estimate.text());
    if (estimate.gpu()) executor::use_device(request.device, request.precision);
  }

  Split make_split(const std::string& name, const Spec& spec, std::shared_ptr<const Dataset> data, bool tell) {
    if (request.device == "auto") choose_device(stream::Subject(model_name, graph, data, {head.output, head.logits}));
    stream::Subject subject(model_name, graph, data, {head.output, head.logits}, at::Device(request.device));
    if (tell) {
      for (const std::string& line : subject.feed.notes()) note("input: " + line);
      if (!subject.batching.note.empty()) note(subject.batching.note);
    }
    return {name, spec, std::move(data), std::move(subject)};
  }

  Split open(const std::string& name, const Spec& spec, int64_t limit, bool tell) {
    auto data = open_data(spec, graph, config, tell ? request.note : nullptr);
    return make_split(name, spec, first_inputs(std::move(data), limit), tell);
  }
};

namespace {

/// Ranks that each look at their own clock would not do the same.
void refuse_clock(const Budget& budget) {
  if (budget.timed() && cluster::size() > 1)
    throw InputError("--budget: ranks cannot share a budget of time", "Give quick, normal or deep.");
}

}  // namespace

Session::Session(Request request) : impl_(std::make_unique<Impl>()) {
  Impl& own = *impl_;
  own.asked = request;
  encode_alike(request);
  own.request = std::move(request);
  own.budget = Budget::parse(own.request.budget);
  refuse_clock(own.budget);
  // A folder that somebody else works in is refused now, not after the work.
  if (!own.request.out.empty()) own.claimed = claim_folder(own.request.out);
  own.config = read_config(own.request.config, own.request.model);
  if (!own.config.undecided.empty())
    own.note(fmt::format("{} also sets {}: not used, since a model's folder may be a stranger's; --config names it",
                         own.config.path, own.config.undecided));
  own.model_name = own.request.model.empty() ? own.config.model : own.request.model;
  if (own.model_name.empty())
    throw InputError("no model is given", "Name an ONNX file, or write netmend.toml with: netmend init MODEL");
  own.graph = onnx::read_model(own.model_name);
  own.head = executor::find_head(own.graph, own.output());
  own.test_spec = test_spec(own.request, own.config);
  own.train_spec = train_spec(own.request, own.config);
}

Session::Session(Request request, const std::string& model_name, model::Graph graph,
                 std::shared_ptr<const Dataset> test, std::shared_ptr<const Dataset> train)
    : impl_(std::make_unique<Impl>()) {
  Impl& own = *impl_;
  own.asked = request;
  own.request = std::move(request);
  own.budget = Budget::parse(own.request.budget);
  refuse_clock(own.budget);
  own.model_name = model_name;
  own.graph = std::move(graph);
  own.head = executor::find_head(own.graph, choose_output(own.graph, own.request.output));
  own.test_data = std::move(test), own.train_data = std::move(train);
}

Session::~Session() = default;
Session::Session(Session&&) noexcept = default;

const Request& Session::request() const { return impl_->request; }
const Config& Session::config() const { return impl_->config; }
const std::string& Session::model_name() const { return impl_->model_name; }
const model::Graph& Session::graph() const { return impl_->graph; }
const executor::Head& Session::head() const { return impl_->head; }
bool Session::has_data() const { return impl_->test_data || impl_->test_spec; }
Budget& Session::budget() { return impl_->budget; }
const std::vector<Traversal>& Session::traversals() const { return impl_->traversals; }
void Session::note(const std::string& line) const { impl_->note(line); }

Split& Session::test() {
  Impl& own = *impl_;
  if (own.test) return *own.test;
  if (own.test_data) {
    Spec spec;
    spec.text = own.test_data->info().spec;
    own.test = own.make_split("test", spec, first_inputs(own.test_data, own.request.limit), true);
    return *own.test;
  }
  if (!own.test_spec)
    throw InputError("no data is given", "Add --data SPEC, for example --data mnist:test or --data images:photos.");
  if (own.test_spec->head == "csv" && !own.test_spec->options.count("train"))
    own.note(
        fmt::format("data: the encoding of the columns of {} is fitted on that file itself; train=FILE fits it on the "
                    "training file",
                    own.test_spec->rest));
  own.test = own.open("test", *own.test_spec, own.request.limit, true);
  if (std::string warning = seen_in_search(own.graph, *own.test->data); !warning.empty())
    own.note("warning: " + warning);
  return *own.test;
}

Split* Session::train() {
  Impl& own = *impl_;
  if (own.train_opened) return own.train ? &*own.train : nullptr;
  own.train_opened = true;
  if (own.train_data) {
    Spec spec;
    spec.text = own.train_data->info().spec;
    own.train = own.make_split("train", spec, own.train_data, false);
  } else if (own.train_spec &&
             !(own.test_spec && dataset::spec_text(*own.train_spec) == dataset::spec_text(*own.test_spec))) {
    own.train = own.open("train", *own.train_spec, 0, false);  // --limit is about tests
  }
  return own.train ? &*own.train : nullptr;
}

Split Session::open(const std::string& name, const Spec& spec) { return impl_->open(name, spec, 0, false); }

PredictionSettings Session::task_of(const Split& split) const {
  dataset::Batch batch = split.data->read(stream::spread(split.data->size(), 64));
  at::Tensor outputs = stream::run_few(split.subject, {impl_->head.output}, batch, impl_->request.jobs)[0];
  return observers::infer_task(split.subject.graph, impl_->head, split.data->info(), batch, outputs,
                               impl_->overrides());
}

const PredictionSettings& Session::task() {
  if (!impl_->task) impl_->task = task_of(test());
  return *impl_->task;
}

const std::vector<model::Layer>& Session::layers() {
  if (!impl_->layers) impl_->layers = stream::find_layers(test().subject);
  return *impl_->layers;
}

UnitPlace Session::unit(const std::string& name) {
  const char* form = "A unit is written as LAYER/NUMBER, for example conv1/7.";
  const std::vector<model::Layer>& all = layers();
  const size_t slash = name.rfind('/');
  const std::string layer = name.substr(0, slash);
  std::vector<std::string> known;
  for (const model::Layer& one : all) known.push_back(one.name);
  auto hit = std::find(known.begin(), known.end(), layer);
  if (hit == known.end())
    throw InputError(fmt::format("there is no layer {}{}", printable(layer), did_you_mean(layer, known)), form);
  UnitPlace place{size_t(hit - known.begin()), -1};
  const model::Layer& at = all[place.layer];
  if (slash == std::string::npos || !parse_int(name.substr(slash + 1), place.unit) || place.unit < 0 ||
      place.unit >= at.units)
    throw InputError(fmt::format("there is no unit {}: the units of {} are {}/0 to {}/{}", printable(name), at.name,
                                 at.name, at.name, at.units - 1),
                     form);
  return place;
}

void Session::sample(Split& split, double times, double share) {
  const Request& request = impl_->request;
  Budget& budget = impl_->budget;
  split.subject.data = split.data;
  if (request.all || (request.limit > 0 && split.name == "test") || !budget.limited()) return;
  const double each = times * split.subject.cost;
  if (budget.timed() && budget.spent() == 0) {  // the speed is not known yet: a few inputs tell it
    const int64_t probe = std::min<int64_t>(split.inputs(), 256);
    stream::run_few(split.subject, {impl_->head.output}, split.data->read(stream::spread(split.inputs(), probe, 0.3)),
                    request.jobs);
    budget.spend(double(probe) * split.subject.cost);
  }
  const int64_t fits = std::max<int64_t>(1024, budget.part(share).times(each, split.inputs()));
  // Leaving out a few would save nothing, and "all" is easier to read.
  if (double(fits) >= 0.9 * double(split.inputs())) return;
  split.subject.data = dataset::subset(split.data, stream::spread(split.inputs(), fits, 0.5));
  note(
      fmt::format("{} {} inputs are more work than --budget {} allows: {} of them, evenly spread, are used; --all uses "
                  "all, --budget deep more, --limit N the first N",
                  with_commas(split.inputs()), split.name, budget.name(), with_commas(fits)));
}

stream::PassOptions Session::pass_options() const {
  stream::PassOptions options;
  options.jobs = impl_->request.jobs;
  options.quiet = impl_->request.quiet;
  options.shared = true;
  return options;
}

void Session::run(stream::Pass& pass, const Split& split, const std::string& reason) {
  run(pass, split, reason, pass_options());
}

void Session::run(stream::Pass& pass, const Split& split, const std::string& reason,
                  const stream::PassOptions& options) {
  pass.run(options);
  impl_->traversals.push_back({split.name, reason, pass.samples(), pass.samples() == split.used(), pass.seconds()});
  impl_->budget.spend(double(pass.samples()) * split.subject.cost);
}

void Session::record(const Split& split, const std::string& reason, int64_t inputs, double seconds, bool whole) {
  impl_->traversals.push_back({split.name, reason, inputs, whole, seconds});
}

Shell Session::words(bool with_model) const {
  const Request& asked = impl_->asked;
  Shell words;
  auto add = [&](const Shell& more) { words += words.empty() ? more : Shell::of(" {}", more); };
  if (with_model && !asked.model.empty()) add(Shell::of("{}", asked.model));
  if (!asked.data.empty()) add(Shell::of("--data {}", asked.data));
  if (!asked.test.empty()) add(Shell::of("--test {}", asked.test));
  if (!asked.train.empty()) add(Shell::of("--train {}", asked.train));
  if (!asked.output.empty()) add(Shell::of("--output {}", asked.output));
  if (!asked.config.empty()) add(Shell::of("--config {}", asked.config));
  return words;
}

Shell Session::command(const std::string& verb, const std::vector<std::string>& more) const {
  Shell command = Shell::of("netmend {}", verb);
  if (const Shell own = words(); !own.empty()) command += Shell::of(" {}", own);
  for (const std::string& word : more) command += Shell::of(" {}", word);
  return command;
}

Shell Session::again(const std::string& verb, const std::vector<std::string>& more) const {
  const std::vector<std::string>& typed = impl_->request.arguments;
  if (typed.size() < 2) return command(verb, more);
  Shell command = Shell::of("netmend");
  for (size_t i = 1; i < typed.size(); ++i) command += Shell::of(" {}", typed[i]);
  for (const std::string& word : more)
    if (std::find(typed.begin(), typed.end(), word) == typed.end()) command += Shell::of(" {}", word);
  return command;
}

RunFolder& Session::folder(const std::string& command) {
  if (!impl_->folder) impl_->folder.emplace(impl_->request.out, command, impl_->request.arguments);
  return *impl_->folder;
}

void Session::finish(double seconds, int exit_status) {
  Impl& own = *impl_;
  check(own.folder.has_value(), "a run is finished in its folder");
  RunFolder& run = *own.folder;
  run.note_file(own.model_name);
  nlohmann::ordered_json passes = nlohmann::ordered_json::object(), traversals = nlohmann::ordered_json::array();
  for (const Split* split : {own.test ? &*own.test : nullptr, own.train ? &*own.train : nullptr}) {
    if (!split) continue;
    for (const std::string& file : split->data->info().files) run.note_file(file);
    run.note(split->name == "test" ? "data" : split->name, split->data->info().spec);
    passes[split->name] = std::count_if(own.traversals.begin(), own.traversals.end(),
                                        [&](const Traversal& one) { return one.whole && one.split == split->name; });
  }
  for (const Traversal& one : own.traversals)
    traversals.push_back({{"split", one.split},
                          {"reason", one.reason},
                          {"inputs", one.inputs},
                          {"whole", one.whole},
                          {"seconds", one.seconds}});
  run.add("budget", own.budget.name());
  run.add("passes", std::move(passes));
  run.add("traversals", std::move(traversals));
  run.finish(own.request.seed, seconds, exit_status);
}

}  // namespace netmend::session
