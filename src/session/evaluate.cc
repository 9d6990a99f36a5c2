#include "session/evaluate.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/error.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/json.h"
#include "observers/sample_table.h"
#include "observers/unit_profile.h"
#include "session/fingerprint.h"
#include "session/split.h"
#include "stream/state_file.h"

namespace netmend::session {
namespace {

void write_units(const std::string& path, const observers::UnitProfile& profile,
                 const observers::UnitProfileState& state) {
  write_csv(path, "unit,min,max,mean,variance,zero_fraction,not_finite", [&](CsvWriter& out) {
    for (size_t l = 0; l < profile.layers().size(); ++l)
      for (size_t u = 0; u < state.stats[l].size(); ++u) {
        const observers::UnitStats& unit = state.stats[l][u];
        out.row(unit_name(profile.layers()[l], int64_t(u)), Digits{unit.min, 9}, Digits{unit.max, 9},
                Digits{unit.mean, 9}, Digits{unit.variance(), 9}, Digits{unit.zero_fraction()}, unit.not_finite);
      }
  });
}

stream::PassOptions options_of(const Session& session, bool float64) {
  stream::PassOptions options = session.pass_options();
  if (float64) options.precision = at::kDouble;
  return options;
}

}  // namespace

Evaluation evaluate(Session& session, const EvaluateOptions& options) {
  Split& tests = session.test();
  const observers::PredictionSettings& task = session.task();
  session.sample(tests);
  const dataset::Dataset& data = *tests.subject.data;
  observers::Predictions predictions(task, true);
  observers::UnitProfile profile(options.units ? session.layers() : std::vector<model::Layer>{});
  observers::SampleTable table;
  observers::GroupCounts groups(task, data);
  Fingerprint fingerprint;
  stream::Pass pass(tests.subject);
  auto judged = pass.watch(predictions);
  std::optional<stream::Watched<observers::UnitProfile>> units;
  if (options.units) units = pass.watch(profile);
  pass.each_chunk<observers::Predictions>(judged, [&](observers::PredictionState& chunk) {
    table.append(chunk.rows);
    groups.add(chunk.rows);
    fingerprint.add(chunk.rows);
    chunk.rows.clear();
  });
  session.run(pass, tests, "evaluation", options_of(session, options.float64));

  RunFolder& folder = session.folder("eval");
  for (const auto& [key, value] : dataset::options_of(data.info().preprocess)) folder.note("input." + key, value);
  table.write_csv(folder.file("samples.csv"), task, data);
  table.write_npz(folder.file("samples.npz"), task);
  if (units) write_units(folder.file("units.csv"), profile, pass.state(*units));
  return {data.info().spec,  observers::finish(predictions, pass.state(judged)),
          groups.results(),  fingerprint.finish(data),
          tests.inputs(),    pass.seconds(),
          pass.interrupted()};
}

Shard evaluate_shard(Session& session, const std::string& shard, const std::string& path, bool float64) {
  claim_product(path, "-o");
  stream::PassOptions options = options_of(session, float64);
  options.shard = stream::parse_shard(shard);
  const Split& tests = session.test();
  observers::Predictions predictions(session.task(), false);
  stream::PassResult pass = stream::run_pass(tests.subject, {&predictions}, options);
  if (pass.interrupted) fail("stopped before the shard was complete; nothing was written");
  session.record(tests, "shard " + shard, pass.samples, pass.seconds);
  const nlohmann::json description = {{"settings", observers::to_json(predictions.settings())},
                                      {"model", session.model_name()},
                                      {"seconds", pass.seconds}};
  stream::StateFile file;
  file.description = json_text(description);
  file.subject = checksum(file_checksum(session.model_name()) + "|" + tests.subject.data->info().spec + "|" +
                          std::to_string(tests.used()) + "|" + std::to_string(tests.subject.batch_size()));
  file.chunks = pass.chunks;
  file.collected = std::move(pass.collected[0]);
  stream::write_state(path, file, predictions);
  return {pass.samples, pass.seconds};
}

MergedShards merge_shards(const std::vector<std::string>& paths) {
  const stream::StateFile header = stream::read_state_header(paths.at(0));
  int64_t largest = 0;
  for (const std::string& path : paths) largest = std::max(largest, stream::read_state_header(path).bytes);
  if (header.observer != "predictions")
    fail("{} holds the state of `{}`, not of an evaluation", paths[0], header.observer);
  MergedShards merged;
  {
    const JsonDocument about(header.description, paths[0]);
    merged.task = observers::settings_from_json(about.top().at("settings"));
  }
  // A network of n classes leaves a confusion matrix of n × n counts: small files cannot be of many, but the shard of a
  // small data set may hold nothing.
  constexpr double kAnyway = 8 << 20;
  const auto classes = double(merged.task.by_class() ? merged.task.classes.size() : 0);
  if (8 * classes * classes > std::max(kAnyway, double(largest)))
    fail("{}: the state file is damaged: it is too small for {} classes", paths[0], merged.task.classes.size());
  const observers::Predictions predictions(merged.task, false);
  std::vector<stream::StateFile> files;
  for (const std::string& path : paths) {
    files.push_back(stream::read_state(path, predictions));
    const JsonDocument about(files.back().description, path);
    merged.seconds += about.top().at("seconds").number();
    merged.model = about.top().at("model").text();
    if (about.top().at("settings").json() != observers::to_json(merged.task))
      fail("{} and {} were evaluated with different settings", paths[0], path);
  }
  const stream::Collected whole = stream::join_states(std::move(files), paths);
  const auto state = whole.fold(predictions);
  merged.result = observers::finish(predictions, static_cast<const observers::PredictionState&>(*state));
  return merged;
}

}  // namespace netmend::session
