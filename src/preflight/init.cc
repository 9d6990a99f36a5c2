#include "preflight/init.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/text.h"
#include "dataset/bytes.h"
#include "dataset/table.h"
#include "executor/layers.h"
#include "observers/predictions.h"
#include "onnx/reader.h"
#include "preflight/discover.h"
#include "preflight/examination.h"
#include "preflight/trial.h"
#include "session/session.h"
#include "session/toml.h"

namespace netmend::preflight {
namespace {

namespace fs = std::filesystem;
using session::Config;
using session::Fact;
using session::toml_key;
using session::toml_string;

constexpr int kRounds = 3;  ///< of preflights: each may find one thing that the next one needs

const char* const kHeading =
    "# What the model file does not say. Flags take precedence over this file; `netmend init --update` adds what is "
    "missing.\n\n";

/// A path as it is written in a file that lies in `folder`.
std::string from_folder(const std::string& path, const fs::path& folder) {
  if (path.empty() || fs::path(path).is_absolute()) return path;
  // By the words of the path alone: a link is meant to be followed by the reader, not written down.
  std::error_code error;
  const fs::path near =
      fs::absolute(path, error)
          .lexically_normal()
          .lexically_relative(fs::absolute(folder.empty() ? "." : folder, error).lexically_normal() / "");
  return near.empty() ? fs::absolute(path, error).string() : near.string();
}

std::string toml_list(const std::vector<std::string>& words) {
  std::vector<std::string> quoted;
  for (const std::string& word : words) quoted.push_back(toml_string(word));
  return fmt::format("[{}]", join(quoted, ", "));
}

std::string toml_value(const toml::node& node) {
  if (node.is_string()) return toml_string(node.as_string()->get());
  if (!node.is_array()) return fmt::format("{:.9g}", node.value<double>().value_or(0));
  std::vector<std::string> items;
  for (const toml::node& item : *node.as_array()) items.push_back(toml_value(item));
  return fmt::format("[{}]", join(items, ", "));
}

void flatten(const toml::table& table, const std::string& where, std::vector<Fact>& out) {
  for (const auto& [key, node] : table) {
    const std::string name = where + toml_key(std::string(key.str()));
    if (node.is_table())
      flatten(*node.as_table(), name + ".", out);
    else
      out.push_back({name, toml_value(node), ""});
  }
}

class Drafting {
 public:
  explicit Drafting(const InitRequest& request)
      : request_(request), folder_(fs::path(request.model).parent_path()), graph_(onnx::read_model(request.model)) {
    draft_.model = request.model;
    draft_.input = toml_key(graph_.values[size_t(graph_.inputs.at(0))].name);
    draft_.file = (folder_ / "netmend.toml").string();
    std::error_code error;
    draft_.existed = fs::exists(draft_.file, error);
  }

  ConfigDraft run() {
    about_model();
    about_data();
    if (FoundClasses found = find_classes(graph_, request_.model); !found.names.empty())
      set_classes(found.names, found.source);
    const bool prepared = test_ && test_->head == "saved";  // nothing is left to be done to it
    const bool rows =
        test_ && (test_->head == "csv" || test_->head == "text" || test_->head == "adult" || holds_rows());
    for (Fact& fact : find_preprocessing(graph_, request_.model))
      if (!prepared && !(rows && fact.key.ends_with(".layout"))) add(std::move(fact));
    if (test_) look_at_data();
    about_goal();
    sort_facts();
    draft_.text = updates() ? session::updated_toml(session::read_toml(draft_.file), draft_.facts, draft_.file)
                            : session::fresh_toml(draft_.facts, kHeading) + suggestions();
    require_own_limits();
    return std::move(draft_);
  }

 private:
  /// Rows of numbers have no axes that a layout could name, whatever the model makes of them.
  bool holds_rows() const {
    try {
      const auto data = session::open_data(*test_, graph_, Config{});
      return data->info().features.size() == 1 && data->info().features[0].shape.size() == 1;
    } catch (const InputError&) {
      return false;  // told where the data is opened to be looked at
    }
  }

  /// Names and metadata of others fill the draft. Whatever they are, they set no limit, accept nothing, choose no
  /// checks: that is for whoever owns the file.
  void require_own_limits() const {
    const Config drafted = session::parse_config(draft_.text, draft_.file);
    const Config before = updates() ? session::read_config(draft_.file, "") : Config{};
    check(drafted.gate == before.gate && drafted.accepted.size() == before.accepted.size() &&
              drafted.accepted_inputs.size() == before.accepted_inputs.size() &&
              drafted.checks_only == before.checks_only && drafted.checks_skip == before.checks_skip,
          "a draft of {} sets what only its owner may set", draft_.file);
  }

  bool updates() const { return draft_.existed && request_.update; }

  void add(Fact fact) {
    for (Fact& have : draft_.facts)
      if (have.key == fact.key) {
        have = std::move(fact);
        return;
      }
    draft_.facts.push_back(std::move(fact));
  }
  void add(const std::string& key, const std::string& value, const std::string& source) {
    add(Fact{key, value, source});
  }
  const Fact* find(const std::string& key) const {
    for (const Fact& fact : draft_.facts)
      if (fact.key == key) return &fact;
    return nullptr;
  }

  void about_model() {
    add("model.file", toml_string(fs::path(request_.model).filename().string()), "");
    std::vector<std::string> names;
    for (model::ValueId id : graph_.outputs) names.push_back(graph_.values[size_t(id)].name);
    output_ = request_.output.empty() ? names.at(0) : request_.output;
    session::choose_output(graph_, output_);
    add("model.output", toml_string(output_),
        !request_.output.empty() ? "--output"
        : names.size() > 1       ? fmt::format("the first of {}: {}", names.size(), printable(join(names, ", ")))
                                 : "the model's only output");
    std::error_code error;
    if (fs::exists(folder_ / "ref.npz", error))
      add("model.reference", "\"ref.npz\"", "beside the model: outputs of the original framework");
  }

  void set_split(std::optional<dataset::Spec>& split, const std::string& key, const dataset::Spec& spec,
                 const std::string& source) {
    dataset::Spec written = spec;
    if (!written.is_name()) written.rest = from_folder(written.rest, folder_);
    for (const char* option : {"labels", "train", "vocab", "meta"})
      if (auto given = written.options.find(option); given != written.options.end())
        given->second = from_folder(given->second, folder_);
    if (auto y = written.options.find("y"); written.head == "npy" && y != written.options.end())
      y->second = from_folder(y->second, folder_);
    split = spec;
    add("data." + key, toml_string(dataset::spec_text(written)), source);
  }

  void about_data() {
    if (!request_.data.empty()) {
      dataset::Splits splits = dataset::parse_splits(request_.data);
      if (dataset::Splits inside = find_splits(*splits.test); inside.test) splits = inside;
      if (splits.train) set_split(train_, "train", *splits.train, "--data has both splits");
      set_split(test_, "test", *splits.test, splits.train ? "" : "--data; a single spec is used as test data");
    }
    if (!request_.train.empty()) set_split(train_, "train", dataset::parse_spec(request_.train), "--train");
    if (!request_.test.empty()) set_split(test_, "test", dataset::parse_spec(request_.test), "--test");
    if (!test_)
      if (const Config config = session::read_config(request_.config, request_.model); !config.test.empty())
        test_ = dataset::parse_spec(config.test);
    if (test_ && test_->head == "images") about_meta();
  }

  /// A table beside the images whose first column names them.
  void about_meta() {
    std::error_code error;
    for (const fs::path& place :
         {fs::path(test_->rest) / "meta.csv", fs::path(test_->rest).parent_path() / "meta.csv"}) {
      if (!fs::is_regular_file(place, error)) continue;
      add("data.id", "\"path\"", "images are named by their paths");
      add("data.meta", toml_string(from_folder(place.string(), folder_)), "beside the images");
      dataset::Table table(dataset::open_bytes(place.string()), dataset::table_format(place.string(), {}));
      std::vector<std::string> columns(table.columns().begin(), table.columns().end());
      if (columns.size() > 1)
        add("data.groups", toml_list({columns.begin() + 1, columns.end()}), "the columns of meta.csv");
      return;
    }
  }

  void set_classes(const std::vector<std::string>& names, const std::string& source) {
    classes_ = names;
    add("classes", toml_list(names), source);
  }

  /// Opens the data as the facts say, infers the task, and tries whether model and data belong together.
  void look_at_data() {
    for (int round = 0; round < kRounds; ++round) {
      const Config config = session::parse_config(
          updates() ? session::updated_toml(session::read_toml(draft_.file), draft_.facts, draft_.file)
                    : session::fresh_toml(draft_.facts, ""),
          draft_.file);
      const auto data = session::open_data(*test_, graph_, config);
      if (resize_as_the_model_wants(data->info())) {
        --round;
        continue;
      }
      if (round == 0) about_readers(data->info());
      const executor::Head head = executor::find_head(graph_, session::choose_output(graph_, output_));
      const stream::Subject subject(request_.model, graph_, data, {head.output, head.logits});
      const dataset::Batch batch = data->read(stream::spread(data->size(), 64));
      const at::Tensor outputs = stream::run_few(subject, {head.output}, batch, request_.jobs)[0];
      if (count_from_one(*data, batch, observers::as_columns(outputs).size(1))) {
        --round;
        continue;
      }
      const observers::PredictionSettings task =
          observers::infer_task(graph_, head, data->info(), batch, outputs, config.overrides);
      if (round == 0) about_task(task, outputs);
      // After the first finding the draft stands on evidence, and only a clear case changes it again.
      const bool free = round == 0 && !told_how_to_prepare(config);
      draft_.preflight =
          examine(subject, task, {config.expect, config.overrides.output_kind}, {request_.jobs, {}, free});
      draft_.metric = task.metric;
      if (!draft_.blocked()) look_for_training_rows(config);
      if (!draft_.blocked() || draft_.preflight->blocker->line.empty() || round + 1 == kRounds) return;
      adopt(*draft_.preflight->blocker);
    }
  }

  /// A table is encoded by its training rows; where they are not named, by its own, which is a little off.
  void look_for_training_rows(const Config& config) {
    if (test_->head != "csv" || train_ || test_->options.count("train")) return;
    auto said = config.input.find("standardize");
    if (config.input.count("scale") || (said != config.input.end() && said->second == "no") ||
        test_->options.count("scale") || test_->options.count("standardize"))
      return;
    draft_.preflight->lines.push_back(
        {"columns are scaled by statistics of the test rows, since no training rows are given (--train csv:FILE)",
         false});
  }

  /// Images of one size, and a network that takes another one.
  bool resize_as_the_model_wants(const dataset::Info& info) {
    const model::Value& input = graph_.values[size_t(graph_.inputs.at(0))];
    const std::vector<model::Dim> wanted = input.shape.value_or(std::vector<model::Dim>{});
    if (info.features.size() != 1 || !info.features[0].image || info.preprocess.resize || wanted.size() != 4 ||
        info.features[0].shape.size() != 3)
      return false;
    const dataset::Feature& has = info.features[0];
    const size_t axis = has.channels_last ? 0 : 1, channel = has.channels_last ? 2 : 0;  // of height
    if (test_->head != "images" || wanted[channel + 1].size != has.shape[channel]) return false;
    std::vector<int64_t> sides;
    for (size_t i : {axis, axis + 1}) sides.push_back(wanted[i + 1].size > 0 ? wanted[i + 1].size : has.shape[i]);
    if (sides == std::vector<int64_t>{has.shape[axis], has.shape[axis + 1]}) return false;
    add(fmt::format("input.{}.resize", toml_key(input.name)),
        fmt::format("{{ height = {}, width = {} }}", sides[0], sides[1]),
        fmt::format("the model takes {}×{}, the images are {}×{}", sides[0], sides[1], has.shape[axis],
                    has.shape[axis + 1]));
    return true;
  }

  /// One label more than outputs, and none is 0: MATLAB's and R's count from 1. Says so in the specs.
  bool count_from_one(const dataset::Dataset& data, const dataset::Batch& batch, int64_t outputs) {
    static const std::vector<std::string> heads = {"npz", "npy", "idx"};
    if (data.info().labels != dataset::LabelKind::kClass || int64_t(data.info().classes.size()) != outputs + 1 ||
        test_->options.count("first") || std::find(heads.begin(), heads.end(), test_->head) == heads.end() ||
        (batch.labels == 0).any().item<bool>())
      return false;
    for (auto [split, name] : {std::pair{&train_, "train"}, {&test_, "test"}}) {
      if (!*split) continue;
      (*split)->options["first"] = "1";
      (*split)->text = dataset::spec_text(**split);
      set_split(*split, name, dataset::Spec(**split), "labels count from 1");
    }
    return true;
  }

  void about_readers(const dataset::Info& info) {
    if (!classes_.empty() && classes_.size() < info.classes.size())
      throw InputError(fmt::format("{} lists {} classes, but {} has {}", find("classes")->source, classes_.size(),
                                   info.spec, info.classes.size()),
                       "The list of classes or the data belongs to another model.");
    bool named = false;
    for (size_t c = 0; c < info.classes.size(); ++c) named = named || info.classes[c] != std::to_string(c);
    const std::string source = test_->head == "images" ? "the names of the folders, in alphabetical order"
                               : test_->head == "csv"  ? "the values of the label column"
                               : test_->is_name()      ? "the class names of " + test_->head
                                                       : "the data";
    if (classes_.empty() && named && info.labels != dataset::LabelKind::kNumber) set_classes(info.classes, source);
    if (!test_->is_name()) return;
    const std::string& name = graph_.values[size_t(graph_.inputs.at(0))].name;
    for (const auto& [key, value] : dataset::options_of(info.preprocess))
      if (key == "scale" && !test_->options.count("scale"))
        add("input." + toml_key(name) + ".scale", toml_string(value), reader_default());
    if (!info.groups.empty()) add("data.groups", toml_list(info.groups), "the group columns of " + test_->head);
  }

  /// The spec, the file that is there, or files beside the model say how values are scaled; what a reader of known data
  /// does by itself is no more than a first guess.
  bool told_how_to_prepare(const Config& config) const {
    if (test_->head == "saved") return true;
    if (updates() && !config.input.empty()) return true;
    for (const char* key : {"scale", "mean", "std", "per_image", "standardize"}) {
      if (test_->options.count(key)) return true;
      for (const Fact& fact : draft_.facts)
        if (fact.key.starts_with("input.") && fact.key.ends_with(std::string(".") + key) && !is_guess(fact))
          return true;
    }
    return false;
  }
  bool is_guess(const Fact& fact) const { return fact.source == reader_default(); }
  std::string reader_default() const { return "the default for " + test_->head; }

  void about_task(const observers::PredictionSettings& task, const at::Tensor& outputs) {
    const at::Tensor columns = observers::as_columns(outputs);
    const bool probabilities = task.head.output_kind == executor::OutputKind::kProbabilities ||
                               task.head.output_kind == executor::OutputKind::kSigmoid;
    const char* kind = probabilities                           ? "probabilities"
                       : looks_like_log_probabilities(columns) ? "log-probabilities"
                                                               : "logits";
    add("model.kind", toml_string(observers::task_name(task.task)),
        fmt::format("{} output column{} and the labels of the data", task.outputs, task.outputs == 1 ? "" : "s"));
    if (task.task != observers::Task::kNumber)
      add("model.output_kind", toml_string(kind), fmt::format("the outputs for {} inputs", columns.size(0)));
    if (!task.metric.empty()) add("goal.metric", toml_string(task.metric), "the usual metric for this task");
  }

  /// Takes over what the preflight found, with the evidence as its source.
  void adopt(const Blocker& blocker) {
    std::vector<Fact> taken;
    flatten(session::parse_toml(blocker.line, draft_.file), "", taken);
    if (blocker.kind == "preprocessing") forget_preparation();
    for (Fact& fact : taken) {
      fact.source = blocker.brief.empty() ? "found by the preflight" : blocker.brief;
      if (const Fact* have = find(fact.key); have && have->value == fact.value) continue;
      if (fact.key == "model.output")
        output_ = *session::parse_toml("v = " + fact.value, draft_.file)["v"].value<std::string>();
      add(std::move(fact));
    }
    draft_.adopted.push_back(blocker);
  }

  /// What an adopted line says anew, in the draft and in the specs, which would win over it.
  void forget_preparation() {
    static const std::vector<std::string> keys = {"scale", "mean",  "std",       "layout",
                                                  "color", "shape", "per_image", "standardize"};
    for (const std::string& key : keys) {
      std::erase_if(draft_.facts,
                    [&](const Fact& fact) { return fact.key.starts_with("input.") && fact.key.ends_with("." + key); });
      for (auto [split, name] : {std::pair{&train_, "train"}, {&test_, "test"}})
        if (*split && (*split)->options.erase(key)) {
          const Fact* written = find(std::string("data.") + name);
          (*split)->text = dataset::spec_text(**split);
          if (written) set_split(*split, name, dataset::Spec(**split), written->source);
        }
    }
  }

  void about_goal() {
    auto hit = graph_.metadata.find("accuracy");
    if (hit == graph_.metadata.end()) return;
    double value = -1;
    if (parse_double(trim(hit->second), value) && value >= 0 && value <= 1)
      add("goal.expect", fmt::format("{:.6g}", value), "the model's metadata, `accuracy`");
  }

  void sort_facts() {
    static const std::vector<std::string> order = {"model", "classes", "input", "data", "goal"};
    auto place = [](const Fact& fact) {
      return std::find(order.begin(), order.end(), fact.key.substr(0, fact.key.find('.'))) - order.begin();
    };
    std::stable_sort(draft_.facts.begin(), draft_.facts.end(),
                     [&](const Fact& a, const Fact& b) { return place(a) < place(b); });
  }

  std::string suggestions() const {
    std::string text = "\n";
    if (!find("goal.expect"))
      text +=
          "# goal.expect = 0.91            # the metric that training reported on this test data; netmend check "
          "compares with it\n";
    if (!test_) text += "# data.test = \"images:photos/test\"  # what to judge the model on; see netmend data --help\n";
    return text + "# gate.accuracy = \">= 0.90\"     # limits for a pipeline\n";
  }

  const InitRequest& request_;
  fs::path folder_;
  model::Graph graph_;
  std::string output_;
  std::optional<dataset::Spec> train_, test_;
  std::vector<std::string> classes_;
  ConfigDraft draft_;
};

}  // namespace

findings::Finding ConfigDraft::finding() const {
  const Blocker& blocker = *preflight->blocker;
  findings::Finding finding =
      findings::make(blocker.kind, blocker.where, {{"case", Shell::of("{}", model)}, {"model", model}, {"data", ""}},
                     {0.5, 0}, findings::Certainty::kConfirmed,
                     blocker.brief.empty() ? blocker.evidence : blocker.brief, blocker.evidence + ".");
  finding.level = findings::Level::kBlocker;
  finding.title = blocker.title;
  if (!blocker.line.empty()) finding.numbers["toml"] = blocker.line;
  finding.next = {Shell::of("netmend check {}", model)};
  if (blocker.line.empty()) finding.next[0] += Shell::of(" --anyway");
  return finding;
}

ConfigDraft draft_config(const InitRequest& request) { return Drafting(request).run(); }

}  // namespace netmend::preflight
