// netmend eval: the metric, loss, per class, confusions; one row an input; shards.
#include <ATen/ATen.h>

#include "base/error.h"
#include "base/file.h"
#include "base/run_folder.h"
#include "base/text.h"
#include "netmend/fingerprint.h"
#include "netmend/show.h"
#include "observers/sample_table.h"
#include "observers/unit_profile.h"
#include "onnx/reader.h"
#include "stream/layers.h"
#include "stream/state_file.h"

namespace netmend::app {
namespace {

using observers::PredictionState;

void write_units(const std::string& path, const observers::UnitProfile& profile,
                 const observers::UnitProfileState& state) {
  write_file(path, [&](std::ostream& out) {
    out << "unit,min,max,mean,variance,zero_fraction,not_finite\n";
    for (size_t l = 0; l < profile.layers().size(); ++l)
      for (size_t u = 0; u < state.stats[l].size(); ++u) {
        const auto& unit = state.stats[l][u];
        out << fmt::format("{},{:.9g},{:.9g},{:.9g},{:.9g},{:.6g},{}\n", unit_name(profile.layers()[l], int64_t(u)),
                           unit.min, unit.max, unit.mean, unit.variance(), unit.zero_fraction(), unit.not_finite);
      }
  });
}

/// What a shard's file needs so that `lab merge` can print the evaluation.
void write_shard(const EvalOptions& options, const observers::Predictions& observer, const stream::Subject& subject,
                 stream::PassResult& pass) {
  if (pass.interrupted) fail("stopped before the shard was complete; nothing was written");
  stream::StateFile file;
  Json description = {
      {"settings", observers::to_json(observer.settings())}, {"model", subject.model_name}, {"seconds", pass.seconds}};
  file.description = description.dump();
  file.subject = checksum(file_checksum(subject.model_name) + "|" + subject.data->info().spec + "|" +
                          std::to_string(subject.data->size()) + "|" + std::to_string(subject.batch_size()));
  file.chunks = pass.chunks;
  file.collected = std::move(pass.collected[0]);
  stream::write_state(options.product, file, observer);
}

int eval_shard(const Common& common, const EvalOptions& options, const Judged& judged, stream::PassOptions pass) {
  if (options.product.empty()) throw InputError("--shard needs a place for its part", "Add -o part1.state.");
  require_writable(options.product);
  pass.shard = stream::parse_shard(options.shard);
  observers::Predictions observer(judged.settings, false);
  stream::PassResult result = stream::run_pass(judged.subject, {&observer}, pass);
  write_shard(options, observer, judged.subject, result);
  if (common.json)
    print_json({{"state", options.product},
                {"samples", result.samples},
                {"shard", options.shard},
                {"seconds", result.seconds}});
  else
    fmt::print("  {} inputs in {}; put the parts together with netmend lab merge\n", with_commas(result.samples),
               options.product);
  return 0;
}

}  // namespace

int eval(const Common& common, const EvalOptions& options) {
  Case about = open_case(common, options);
  Judged& judged = about.judged;
  stream::PassOptions pass = pass_options(common);
  if (options.float64) pass.precision = at::kDouble;
  if (!options.shard.empty()) return eval_shard(common, options, judged, pass);
  if (!options.product.empty())
    throw InputError("-o goes with --shard", "The tables of eval are in the run folder (--out).");

  checkup::Preflight preflight = examine(common, options, about);
  const bool blocked = preflight.blocker && !options.anyway;
  if (!common.json) print_preflight(preflight, judged.settings.metric);
  if (blocked && !common.json) return 1;
  Plan plan = plan_pass(common, options, about);
  judged.subject.data = plan.data;
  const auto& data = plan.data;

  RunFolder folder(common.out, "eval", common.arguments);
  observers::Predictions observer(judged.settings, true);
  observers::UnitProfile profile(options.units ? stream::find_layers(judged.subject) : std::vector<model::Layer>{});
  observers::SampleTable table;
  observers::GroupCounts groups(judged.settings, *data);
  Fingerprint fingerprint;
  pass.on_chunk = [&](std::vector<std::unique_ptr<stream::State>>& chunk) {
    auto& state = dynamic_cast<PredictionState&>(*chunk[0]);
    table.append(state.rows);
    groups.add(state.rows);
    fingerprint.add(state.rows);
    state.rows.clear();
  };
  std::vector<const stream::Observer*> all{&observer};
  if (options.units) all.push_back(&profile);
  stream::PassResult done = stream::run_pass(judged.subject, all, pass);

  auto state = done.collected[0].fold(observer);
  auto result = observers::finish(observer, dynamic_cast<const PredictionState&>(*state));
  table.write_csv(folder.file("samples.csv"), judged.settings, *data);
  table.write_npz(folder.file("samples.npz"), judged.settings);
  if (options.units) {
    auto units = done.collected[1].fold(profile);
    write_units(folder.file("units.csv"), profile, dynamic_cast<const observers::UnitProfileState&>(*units));
  }
  folder.note_file(judged.subject.model_name);
  for (const std::string& file : data->info().files) folder.note_file(file);
  folder.note("data", data->info().spec);
  for (const auto& [key, value] : dataset::options_of(data->info().preprocess)) folder.note("input." + key, value);

  Json json = result_json(judged.settings, result, done.seconds);
  json["groups"] = groups_json(judged.settings, groups.results());
  json["of"] = plan.whole;
  json["model"] = judged.subject.model_name;
  json["data"] = data->info().spec;
  json["fingerprint"] = fingerprint.finish(*data);
  json["preflight"] = preflight_json(preflight);
  if (preflight.blocker)
    json["findings"] =
        Json::array({blocker_json(*preflight.blocker, next_command("eval", judged.subject.model_name, options))});
  json["run"] = folder.path();
  write_file(folder.file("eval.json"), json.dump(2) + "\n");
  folder.finish(common.seed, done.seconds, done.interrupted ? 130 : 0);
  if (common.json) {
    print_json(json);
  } else {
    fmt::print("{}  on {}\n", judged.subject.model_name, data->info().spec);
    print_result(judged.settings, result, done.seconds);
    print_groups(judged.settings, groups.results());
    fmt::print("\n  every input: {}/samples.csv{}\n", folder.path(), options.units ? ", every unit: units.csv" : "");
  }
  if (done.interrupted)
    say(common, fmt::format("stopped: this is the result of the first {} inputs", with_commas(done.samples)));
  return done.interrupted ? 130 : blocked ? 1 : 0;
}

}  // namespace netmend::app
