#include "netmend/shared.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "base/text.h"
#include "executor/runtime.h"
#include "findings/finding.h"
#include "netmend/searched.h"
#include "onnx/reader.h"
#include "stream/match.h"

namespace netmend::app {

using model::ValueId;

void print_json(const Json& json) {
  std::string text = json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fputc('\n', stdout);
}

void say(const Common& common, const std::string& line) {
  if (!common.quiet) fmt::print(stderr, "{}\n", line);
}

ValueId choose_output(const model::Graph& graph, const std::string& name) {
  if (name.empty()) return graph.outputs.at(0);
  ValueId id = graph.find(name);
  std::vector<std::string> names;
  for (const model::Node& node : graph.nodes) {
    if (id == model::kAbsent && node.name == name && !node.outputs.empty()) id = node.outputs[0];
    for (ValueId output : node.outputs)
      if (output != model::kAbsent) names.push_back(graph.values[size_t(output)].name);
  }
  if (id == model::kAbsent) fail("the model has no value `{}`{}", name, did_you_mean(name, names));
  return id;
}

std::string image_layout(const model::Value& input) {
  if (!input.shape || input.shape->size() != 4) return "";
  auto channels = [&](size_t axis) {
    int64_t size = (*input.shape)[axis].size;
    return size == 1 || size == 3 || size == 4;
  };
  if (channels(1)) return "NCHW";
  return channels(3) ? "NHWC" : "";
}

dataset::Spec test_spec(const std::string& data, const std::string& test, const Config& config) {
  if (!test.empty()) return dataset::parse_spec(test);
  if (!data.empty()) return *dataset::parse_splits(data).test;
  if (!config.test.empty()) return dataset::parse_spec(config.test);
  throw InputError("no data is given", "Add --data SPEC, for example --data mnist:test or --data images:photos.");
}

std::optional<dataset::Spec> train_spec(const CaseOptions& options, const std::string& train, const Config& config) {
  if (!train.empty()) return dataset::parse_spec(train);
  if (!options.data.empty() && options.test.empty())
    if (auto splits = dataset::parse_splits(options.data); splits.train) return splits.train;
  const bool named = !options.data.empty() || !options.test.empty();
  if (!named && !config.train.empty()) return dataset::parse_spec(config.train);
  return {};
}

void encode_alike(CaseOptions& options, const std::string& train) {
  std::string& tests = options.test.empty() ? options.data : options.test;
  if (tests.empty() || train.empty()) return;
  dataset::Spec spec = dataset::parse_spec(tests), other = dataset::parse_spec(train);
  if (spec.head == "csv" && other.head == "csv" && spec.options.try_emplace("train", other.rest).second)
    tests = dataset::spec_text(spec);
}

std::shared_ptr<const dataset::Dataset> first_inputs(std::shared_ptr<const dataset::Dataset> data, int64_t limit) {
  if (limit <= 0 || limit >= data->size()) return data;
  std::vector<int64_t> first(size_t(limit), 0);
  for (int64_t i = 0; i < limit; ++i) first[size_t(i)] = i;
  return dataset::subset(data, std::move(first));
}

std::shared_ptr<const dataset::Dataset> open_data(const Common& common, const dataset::Spec& asked,
                                                  const model::Graph& model, const Config& config) {
  dataset::Spec spec = asked;
  std::vector<std::string> from_config, from_model;
  auto take = [&](const std::string& key, const std::string& value, std::vector<std::string>& source) {
    if (!spec.options.try_emplace(key, value).second) return;
    source.push_back(fmt::format("{}={}", key, value));
  };
  for (const auto& [key, value] : config.input) take(key, value, from_config);
  // Folders have an order only by their names; elsewhere the same names in another order are found out below.
  if (!config.classes.empty() && spec.head == "images") take("classes", join(config.classes, ":"), from_config);
  if (!config.meta.empty()) take("meta", config.meta, from_config);
  const bool table = spec.head == "csv" || spec.head == "text";
  if (!config.id.empty() && config.id != "path") take(table ? "id" : "meta_id", config.id, from_config);
  if (!config.groups.empty() && !config.meta.empty())
    take("meta_groups", join(config.groups, ":"), from_config);
  else if (!config.groups.empty() && (spec.head == "csv" || spec.head == "adult"))
    take("groups", join(config.groups, ":"), from_config);
  // Saved data is what the model was given in training: what the model says about raw values does not apply to it.
  for (const std::string& key : spec.head == "saved" ? std::vector<std::string>{} : dataset::preprocess_keys())
    if (auto hit = model.metadata.find("netmend.input." + key); hit != model.metadata.end())
      take(key, hit->second, from_model);
  if (!from_config.empty()) say(common, fmt::format("data: {} from {}", join(from_config, " "), config.path));
  if (!from_model.empty()) say(common, fmt::format("data: {} from the model's metadata", join(from_model, " ")));
  std::shared_ptr<const dataset::Dataset> data = dataset::open(spec);
  for (const std::string& note : data->info().notes) say(common, "data: " + note);
  if (config.classes.empty() || spec.options.count("classes")) return data;
  std::vector<std::string> own = data->info().classes, wanted = config.classes;
  std::sort(own.begin(), own.end());
  std::sort(wanted.begin(), wanted.end());
  if (data->info().labels != dataset::LabelKind::kClass || own != wanted) {
    spec.options["classes"] = join(config.classes, ":");
    return dataset::open(spec);
  }
  if (data->info().classes == config.classes) return data;
  say(common, fmt::format("data: classes are numbered in the order of {}", config.path));
  return dataset::renumbered(data, config.classes);
}

Judged make_judged(const Common& common, const std::string& model, model::Graph graph,
                   std::shared_ptr<const dataset::Dataset> data, const std::string& output,
                   const observers::Wishes& wishes) {
  executor::Head head = executor::find_head(graph, choose_output(graph, output));
  stream::Subject subject(model, std::move(graph), data, {head.output, head.logits});
  for (const std::string& note : subject.feed.notes()) say(common, "input: " + note);
  if (!subject.batching.note.empty()) say(common, subject.batching.note);
  dataset::Batch batch = data->read(stream::spread(data->size(), 64));
  at::Tensor answers = stream::run_few(subject, {head.output}, batch, common.jobs)[0];
  auto settings = observers::settle_task(subject.graph, head, data->info(), batch, answers, wishes);
  return {std::move(subject), std::move(settings)};
}

stream::PassOptions pass_options(const Common& common) {
  stream::PassOptions options;
  options.jobs = common.jobs;
  options.quiet = common.quiet;
  options.device = at::Device(common.device);
  return options;
}

Case open_case(const Common& common, const CaseOptions& options) {
  Config config = read_config(common.config, options.model);
  std::string file = options.model.empty() ? config.model : options.model;
  if (file.empty())
    throw InputError("no model is given", "Name an ONNX file, or write netmend.toml with: netmend init MODEL");
  model::Graph graph = onnx::read_model(file);
  dataset::Spec spec = test_spec(options.data, options.test, config);
  if (spec.head == "csv" && !spec.options.count("train"))
    say(common, fmt::format("data: columns of {} are encoded by its own values; train=FILE fits the encoding to the "
                            "training file",
                            spec.rest));
  auto data = first_inputs(open_data(common, spec, graph, config), options.limit);
  if (std::string warning = searched_warning(graph, *data); !warning.empty()) say(common, "warning: " + warning);
  observers::Wishes wishes = config.wishes;
  if (!options.metric.empty()) wishes.metric = options.metric;
  Judged judged = make_judged(common, file, std::move(graph), data,
                              options.output.empty() ? config.output : options.output, wishes);
  return {std::move(config), std::move(spec), std::move(data), std::move(judged)};
}

namespace {

/// The splits that someone may have taken for each other.
std::vector<checkup::OtherData> other_splits(const Common& common, const Case& about) {
  std::vector<checkup::OtherData> others;
  auto add = [&](const dataset::Spec& spec) {
    if (dataset::spec_text(spec) == dataset::spec_text(about.spec)) return;
    std::string text = dataset::spec_text(spec);
    others.push_back({fmt::format("data = {{ test = \"{}\" }}", text), text, [&common, &about, spec] {
                        Common silent = common;
                        silent.quiet = true;
                        return open_data(silent, spec, about.judged.subject.graph, about.config);
                      }});
  };
  if (about.spec.is_name())
    for (const char* split : {"train", "test"}) {
      dataset::Spec spec = about.spec;
      spec.rest = split;
      if (!(about.spec.rest.empty() && spec.rest == "test")) add(spec);
    }
  else
    for (const std::string& text : {about.config.train, about.config.test})
      if (!text.empty()) add(dataset::parse_spec(text));
  return others;
}

}  // namespace

namespace {

/// Does the file answer as the framework did that trained it?
void look_at_reference(const Case& about, checkup::Preflight& preflight) {
  const std::string& path = about.config.reference;
  stream::Match match = stream::compare_with_reference(about.judged.subject.graph, stream::read_reference(path), {});
  double most = 0;
  for (const stream::OutputMatch& output : match.outputs) most = std::max(most, output.difference.max);
  preflight.lines.push_back({fmt::format("outputs {} {} (largest difference {:.2g} on {} inputs)",
                                         match.matches ? "match" : "do not match", path, most, match.inputs),
                             match.matches});
  if (!match.matches && !preflight.blocker)
    preflight.blocker =
        checkup::Blocker{"reference:outputs", "The model does not answer as the framework did that trained it.",
                         fmt::format("{}; netmend match {} --reference {} shows where it departs", match.reason,
                                     about.judged.subject.model_name, path),
                         ""};
}

}  // namespace

checkup::Preflight examine(const Common& common, const CaseOptions& options, const Case& about) {
  checkup::PreflightOptions how;
  how.jobs = common.jobs;
  how.others = other_splits(common, about);
  checkup::Expected expected{about.config.expect, about.config.wishes.gives};
  // What was expected holds for the metric and the data of netmend.toml, not for others.
  const std::string& meant = about.config.test;
  const bool other_data =
      !meant.empty() && dataset::spec_text(dataset::parse_spec(meant)) != dataset::spec_text(about.spec);
  if (!options.metric.empty() || !options.output.empty() || other_data) expected.metric = -1;
  checkup::Preflight result = checkup::preflight(about.judged.subject, about.judged.settings, expected, how);
  if (!about.config.reference.empty()) look_at_reference(about, result);
  return result;
}

Plan plan_pass(const Common& common, const CaseOptions& options, const Case& about, double times) {
  const int64_t size = about.data->size(), probe = std::min<int64_t>(size, 256);
  auto start = std::chrono::steady_clock::now();
  stream::run_few(about.judged.subject, {about.judged.settings.head.output},
                  about.data->read(stream::spread(size, probe, 0.3)), common.jobs);
  double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  double rate = double(probe) / std::max(took, 1e-6) / times;
  Plan plan{about.data, size, double(size) / rate};
  double budget = options.all || options.limit > 0 ? INFINITY : parse_budget(options.budget);
  std::string rest = fmt::format("{}/s", with_commas(int64_t(rate)));
  if (plan.seconds > budget) {
    auto fewer = std::max<int64_t>(1024, int64_t(budget * 0.4 * rate));
    if (fewer < size) {
      plan.data = dataset::subset(about.data, stream::spread(size, fewer, 0.5));
      say(common,
          fmt::format("{} inputs at {} would take {}; using {} of them, evenly spread ({}). --all for everything, "
                      "--limit N, --budget 30m",
                      with_commas(size), rest, duration_text(plan.seconds), with_commas(fewer),
                      duration_text(double(fewer) / rate)));
      plan.seconds = double(fewer) / rate;
    }
  } else if (plan.seconds > 5) {
    say(common, fmt::format("{} inputs at {}: about {}, {} of memory", with_commas(size), rest,
                            duration_text(plan.seconds), bytes_text(double(executor::memory_peak()))));
  }
  return plan;
}

std::string next_command(const std::string& command, const std::string& model, const CaseOptions& options) {
  std::string text = fmt::format("netmend {} {}", command, model);
  if (!options.data.empty()) text += " --data " + options.data;
  if (!options.test.empty()) text += " --test " + options.test;
  if (!options.output.empty()) text += " --output " + options.output;
  return text;
}

std::string case_words(const Common& common, const CaseOptions& options) {
  std::vector<std::string> words;
  if (!options.model.empty()) words.push_back(findings::shell_word(options.model));
  auto add = [&](const char* flag, const std::string& value) {
    if (!value.empty()) words.push_back(std::string(flag) + " " + findings::shell_word(value));
  };
  add("--data", options.data), add("--test", options.test), add("--output", options.output);
  add("--config", common.config);
  return join(words, " ");
}

}  // namespace netmend::app
