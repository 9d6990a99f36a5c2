// netmend eval: the metric, loss, per class, most confused pairs; one row per input; shards.
#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "cluster/ranks.h"
#include "evidence/json.h"
#include "netmend/show.h"
#include "session/evaluate.h"

namespace netmend::app {
namespace {

int eval_shard(const Common& common, const EvalOptions& options) {
  check_shard(options.product);
  session::Session session(request_of(common, options));
  const session::Shard done = session::evaluate_shard(session, options.shard, options.product, options.float64);
  tell_shard(common, done, options.shard, options.product, "netmend lab merge");
  return 0;
}

Json eval_json(session::Session& session, const session::Evaluation& done, const preflight::Preflight& preflight) {
  Json json = evidence::result_json(session.task(), done.result);
  json["seconds"] = done.seconds;
  json["samples_per_second"] = done.seconds > 0 ? double(done.result.samples) / done.seconds : 0;
  json["groups"] = groups_json(session.task(), done.groups);
  json["of"] = done.of;
  json["model"] = session.model_name();
  json["data"] = done.data;
  json["fingerprint"] = done.fingerprint;
  json["preflight"] = evidence::preflight_json(preflight);
  if (preflight.blocker)
    json["findings"] = Json::array({findings::to_json(preflight::finding_of(*preflight.blocker, session, "eval"))});
  return json;
}

}  // namespace

int eval(const Common& common, const EvalOptions& options) {
  if (!options.shard.empty()) return eval_shard(common, options);
  if (!options.product.empty())
    throw InputError("-o goes with --shard", "The tables of eval are in the run folder (--out).");
  session::Session session(request_of(common, options));
  const preflight::Preflight preflight = preflight::examine(session);
  const bool blocked = preflight.blocker && !options.anyway;
  if (!common.json) print_preflight(preflight, session.task().metric, blocked ? OnBlocker::kStop : OnBlocker::kGoOn);
  if (blocked && !common.json) {
    print("  next      {}\n", preflight::finding_of(*preflight.blocker, session, "eval").next.at(0).text());
    return 1;
  }
  const session::Evaluation done = session::evaluate(session, {options.units, options.float64});
  const int status = done.interrupted ? 130 : blocked ? 1 : 0;
  const RunFolder& folder = session.folder("eval");
  Json json = eval_json(session, done, preflight);
  json["run"] = folder.path();
  mark_partial(json, status);
  write_file(folder.file("eval.json"), evidence::dump(json, 2));
  session.finish(done.seconds, status);
  if (common.json) {
    print_json(json);
  } else {
    print("{}  on {}\n", session.model_name(), done.data);
    print_result(session.task(), done.result, done.seconds);
    print_groups(session.task(), done.groups);
    print("\n  per input: {}/samples.csv{}\n", folder.path(), options.units ? ", per unit: units.csv" : "");
  }
  if (done.interrupted)
    say(common, fmt::format("stopped: this is the result of the first {}", counted(done.result.samples, "input")));
  return status;
}

}  // namespace netmend::app
