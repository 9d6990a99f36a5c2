// netmend init: netmend.toml from what model and data tell, each value with its source.
#include <toml++/toml.h>

#include <cstdio>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "dataset/table.h"
#include "netmend/discover.h"
#include "netmend/show.h"
#include "onnx/reader.h"

namespace netmend::app {
namespace fs = std::filesystem;

namespace {

const char* const kHeading =
    "# What the model file cannot tell. Flags win over what is written here; `netmend init --update` adds what is "
    "missing.\n\n";

/// A path as it is written in a file that lies in `folder`.
std::string from_folder(const std::string& path, const fs::path& folder) {
  if (path.empty() || fs::path(path).is_absolute()) return path;
  // By the words of the path alone: a link is meant to be followed by the reader, not written down.
  std::error_code error;
  fs::path near = fs::absolute(path, error)
                      .lexically_normal()
                      .lexically_relative(fs::absolute(folder.empty() ? "." : folder, error).lexically_normal() / "");
  return near.empty() ? fs::absolute(path, error).string() : near.string();
}

class Init {
 public:
  Init(const Common& common, const InitOptions& options)
      : common_(common),
        options_(options),
        folder_(fs::path(options.model).parent_path()),
        file_((folder_ / "netmend.toml").string()),
        graph_(onnx::read_model(options.model)) {}

  int run() {
    std::error_code error;
    const bool there = fs::exists(file_, error);
    if (there && !options_.update && !options_.force && !options_.print)
      throw InputError(fmt::format("{} is there already", file_),
                       "--update adds what is missing and keeps the rest, --force replaces it, --print only shows.");
    about_model();
    about_data();
    about_classes();
    const bool prepared = test_ && test_->head == "saved";  // nothing is left to be done to it
    for (Fact& fact : find_preprocessing(graph_, options_.model))
      if (!prepared) add(std::move(fact));
    if (test_) look_at_data(there && options_.update);
    about_goal();
    std::string text = there && options_.update ? updated_toml(read_file(file_, 1 << 20), facts_, file_)
                                                : fresh_toml(facts_, kHeading) + suggestions();
    if (options_.print) {
      std::fwrite(text.data(), 1, text.size(), stdout);
      return 0;
    }
    write_file(file_, text);
    read_config(file_, options_.model);  // what we wrote, we can read
    report(there);
    return blocked_ ? 1 : 0;
  }

 private:
  void add(Fact fact) {
    for (Fact& have : facts_)
      if (have.key == fact.key) {
        have = std::move(fact);
        return;
      }
    facts_.push_back(std::move(fact));
  }
  void add(const std::string& key, const std::string& value, const std::string& source) {
    add(Fact{key, value, source});
  }

  void about_model() {
    add("model.file", toml_string(fs::path(options_.model).filename().string()), "");
    const auto& outputs = graph_.outputs;
    std::vector<std::string> names;
    for (model::ValueId id : outputs) names.push_back(graph_.values[size_t(id)].name);
    output_ = options_.output.empty() ? names.at(0) : options_.output;
    choose_output(graph_, output_);
    add("model.output", toml_string(output_),
        !options_.output.empty() ? "--output"
        : names.size() > 1       ? fmt::format("the first of {}: {}", names.size(), printable(join(names, ", ")))
                                 : "the model's only output");
    std::error_code error;
    if (fs::exists(folder_ / "ref.npz", error))
      add("model.reference", "\"ref.npz\"", "beside the model: outputs of the original framework");
  }

  void about_data() {
    auto set = [&](std::optional<dataset::Spec>& split, const std::string& key, const dataset::Spec& spec,
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
    };
    if (!options_.data.empty()) {
      dataset::Splits splits = dataset::parse_splits(options_.data);
      if (dataset::Splits inside = find_splits(*splits.test); inside.test) splits = inside;
      if (splits.train) set(train_, "train", *splits.train, "--data has both splits");
      set(test_, "test", *splits.test, splits.train ? "" : "--data; one spec is taken as test data");
    }
    if (!options_.train.empty()) set(train_, "train", dataset::parse_spec(options_.train), "--train");
    if (!options_.test.empty()) set(test_, "test", dataset::parse_spec(options_.test), "--test");
    if (!test_) {
      Config config = read_config(common_.config, options_.model);
      if (!config.test.empty()) test_ = dataset::parse_spec(config.test);
    }
    if (test_ && test_->head == "images") about_meta();
  }

  /// A table beside the images whose first column names them.
  void about_meta() {
    std::error_code error;
    for (const fs::path& place :
         {fs::path(test_->rest) / "meta.csv", fs::path(test_->rest).parent_path() / "meta.csv"}) {
      if (!fs::is_regular_file(place, error)) continue;
      add("data.id", "\"path\"", "an image is named by its path");
      add("data.meta", toml_string(from_folder(place.string(), folder_)), "beside the images");
      dataset::Table table(dataset::open_bytes(place.string()), dataset::table_format(place.string(), {}));
      std::vector<std::string> columns;
      for (size_t i = 1; i < table.columns().size(); ++i) columns.push_back(toml_string(table.columns()[i]));
      if (!columns.empty()) add("data.groups", fmt::format("[{}]", join(columns, ", ")), "its columns");
      return;
    }
  }

  void about_classes() {
    FoundClasses found = find_classes(graph_, options_.model);
    if (!found.names.empty()) set_classes(found.names, found.source);
  }

  void set_classes(const std::vector<std::string>& names, const std::string& source) {
    std::vector<std::string> quoted;
    for (const std::string& name : names) quoted.push_back(toml_string(name));
    classes_ = names;
    add("classes", fmt::format("[{}]", join(quoted, ", ")), source);
  }

  /// Opens the data as the facts say, finds out what the outputs are, and tries whether model and data belong together.
  void look_at_data(bool update) {
    for (int round = 0; round < 3; ++round) {
      Config config = draft(update);
      Common quiet = common_;
      quiet.quiet = true;
      auto data = open_data(quiet, *test_, graph_, config);
      if (round == 0) about_readers(*data);
      if (round == 0 && !classes_.empty() && !data->info().classes.empty() &&
          classes_.size() < data->info().classes.size())
        throw InputError(fmt::format("{} names {} classes, {} has {}", facts_of("classes"), classes_.size(),
                                     data->info().spec, data->info().classes.size()),
                         "One of them belongs to another model.");
      Judged judged = make_judged(quiet, options_.model, graph_, data, output_, config.overrides);
      if (round == 0) about_answers(judged);
      checkup::PreflightOptions how;
      how.jobs = common_.jobs;
      preflight_ = checkup::preflight(judged.subject, judged.settings, {config.expect, config.overrides.output_kind}, how);
      metric_ = judged.settings.metric;
      blocked_ = preflight_->blocker.has_value();
      if (!blocked_ || preflight_->blocker->line.empty() || round == 2) return;
      take_line(*preflight_->blocker);
    }
  }

  std::string facts_of(const std::string& key) const {
    for (const Fact& fact : facts_)
      if (fact.key == key) return fact.source;
    return key;
  }

  /// The configuration that the facts so far make, over the file that is there when it is updated.
  Config draft(bool update) const {
    std::string text = update ? updated_toml(read_file(file_, 1 << 20), facts_, file_) : fresh_toml(facts_, "");
    return parse_config(text, file_);
  }

  void about_readers(const dataset::Dataset& data) {
    const dataset::Info& info = data.info();
    bool named = false;
    for (size_t c = 0; c < info.classes.size(); ++c) named = named || info.classes[c] != std::to_string(c);
    std::string source = test_->head == "images" ? "names of the folders, in alphabetical order"
                         : test_->head == "csv"  ? "values of the label column"
                         : test_->is_name()      ? test_->head + " knows its names"
                                                 : "the data";
    if (classes_.empty() && named && info.labels != dataset::LabelKind::kNumber) set_classes(info.classes, source);
    if (!test_->is_name()) return;
    const std::string name = graph_.values[size_t(graph_.inputs.at(0))].name;
    for (const auto& [key, value] : dataset::options_of(info.preprocess))
      if (key == "scale" && !test_->options.count("scale"))
        add("input." + toml_key(name) + ".scale", toml_string(value), test_->head + " is read so");
    if (!info.groups.empty()) {
      std::vector<std::string> quoted;
      for (const std::string& group : info.groups) quoted.push_back(toml_string(group));
      add("data.groups", fmt::format("[{}]", join(quoted, ", ")), test_->head + " keeps these columns aside");
    }
  }

  void about_answers(const Judged& judged) {
    const auto& settings = judged.settings;
    add("model.kind", toml_string(observers::task_name(settings.task)),
        fmt::format("{} output column{}, labels of the data", settings.outputs, settings.outputs == 1 ? "" : "s"));
    if (settings.task != observers::Task::kNumber)
      add("model.output_kind", settings.head.output_kind == executor::OutputKind::kLogits ? "\"logits\"" : "\"probabilities\"",
          "looked at on 64 inputs");
    if (!settings.metric.empty()) add("goal.metric", toml_string(settings.metric), "the usual one for this kind");
  }

  /// Takes over what the preflight found, with the evidence as its source.
  void take_line(const checkup::Blocker& blocker) {
    toml::table found = toml::parse(blocker.line);
    std::vector<Fact> taken;
    flatten(found, "", taken);
    for (Fact& fact : taken) {
      fact.source = blocker.brief.empty() ? "found by the preflight" : blocker.brief;
      if (has_same(fact)) continue;
      if (fact.key == "model.output") output_ = *toml::parse("v = " + fact.value)["v"].value<std::string>();
      add(std::move(fact));
    }
    found_.push_back(blocker);
  }

  bool has_same(const Fact& fact) const {
    return std::any_of(facts_.begin(), facts_.end(),
                       [&](const Fact& have) { return have.key == fact.key && have.value == fact.value; });
  }

  static std::string value_text(const toml::node& node) {
    if (node.is_string()) return toml_string(node.as_string()->get());
    if (!node.is_array()) return fmt::format("{:.9g}", node.value<double>().value_or(0));
    std::vector<std::string> items;
    for (const toml::node& item : *node.as_array()) items.push_back(value_text(item));
    return fmt::format("[{}]", join(items, ", "));
  }

  static void flatten(const toml::table& table, const std::string& where, std::vector<Fact>& out) {
    for (const auto& [key, node] : table) {
      std::string name = where + toml_key(std::string(key.str()));
      if (node.is_table()) {
        flatten(*node.as_table(), name + ".", out);
        continue;
      }
      out.push_back({name, value_text(node), ""});
    }
  }

  void about_goal() {
    if (auto hit = graph_.metadata.find("accuracy"); hit != graph_.metadata.end()) {
      double value = -1;
      if (parse_double(trim(hit->second), value) && value >= 0 && value <= 1)
        add("goal.expect", fmt::format("{:.6g}", value), "the model's metadata, `accuracy`");
    }
    static const std::vector<std::string> order = {"model", "classes", "input", "data", "goal"};
    std::stable_sort(facts_.begin(), facts_.end(), [](const Fact& a, const Fact& b) {
      auto place = [](const Fact& fact) {
        return std::find(order.begin(), order.end(), fact.key.substr(0, fact.key.find('.'))) - order.begin();
      };
      return place(a) < place(b);
    });
  }

  std::string suggestions() const {
    std::string text = "\n";
    if (metric_.empty() || facts_of("goal.expect") == "goal.expect")
      text +=
          "# goal.expect = 0.91            # what training reported on this test data: makes sure that we run it "
          "right\n";
    if (!test_) text += "# data.test = \"images:photos/test\"  # what to judge the model on; see netmend data --help\n";
    text += "# gate.accuracy = \">= 0.90\"     # limits for a pipeline\n";
    return text;
  }

  void report(bool there) const {
    if (common_.json) {
      Json json = {{"file", file_}, {"values", Json::array()}};
      for (const Fact& fact : facts_)
        json["values"].push_back({{"key", fact.key}, {"value", fact.value}, {"source", fact.source}});
      if (preflight_) json["preflight"] = preflight_json(*preflight_);
      if (blocked_)
        json["findings"] = Json::array({blocker_json(*preflight_->blocker, "netmend check " + options_.model)});
      print_json(json);
      return;
    }
    fmt::print("{} {}\n", file_, there && options_.update ? "updated" : "written");
    for (const Fact& fact : facts_)
      if (!fact.source.empty())
        fmt::print("  {} = {}\n      from {}\n", fact.key, printable(fact.value.substr(0, 90)), printable(fact.source));
    for (const checkup::Blocker& found : found_)
      fmt::print("\n  {} {}.\n  It is in the file now; take it out if it is wrong.\n", found.title, found.evidence);
    if (preflight_) {
      fmt::print("\n");
      print_preflight(*preflight_, metric_);
    }
    if (!blocked_) fmt::print("\nnext: netmend check{}\n", folder_.empty() ? "" : " " + options_.model);
  }

  const Common& common_;
  const InitOptions& options_;
  fs::path folder_;
  std::string file_, output_, metric_;
  model::Graph graph_;
  std::optional<dataset::Spec> train_, test_;
  std::vector<std::string> classes_;
  std::vector<Fact> facts_;
  std::optional<checkup::Preflight> preflight_;
  std::vector<checkup::Blocker> found_;  ///< what was taken over
  bool blocked_ = false;
};

}  // namespace

int init(const Common& common, const InitOptions& options) { return Init(common, options).run(); }

}  // namespace netmend::app
