#include "netmend/shared.h"

#include <fmt/format.h>

#include <map>

#include "base/error.h"
#include "base/text.h"
#include "cluster/ranks.h"
#include "evidence/json.h"
#include "executor/runtime.h"
#include "netmend/show.h"

namespace netmend::app {

namespace {

/// Roughly how often a command sends its inputs through the network, for `--device auto`: gradients count three times,
/// and searches what they usually take. 0: the command has no such work, or knows it only at its end.
const std::map<std::string, double> kPasses = {
    {"check", 25},  {"compare", 2}, {"coverage", 12}, {"eval", 1},     {"explain", 6}, {"failures", 2}, {"gate", 1},
    {"locate", 60}, {"mutate", 60}, {"next", 4},      {"repair", 200}, {"slices", 1},  {"stress", 120}, {"whatif", 10}};

double passes_of(const std::string& verb) {
  const auto found = kPasses.find(verb);
  return found == kPasses.end() ? 0 : found->second;
}

std::string verb_of(const Common& common) { return common.arguments.size() > 1 ? common.arguments[1] : ""; }

}  // namespace

std::string settle_device(const Common& common) {
  const std::string device = executor::check_device(common.device), verb = verb_of(common);
  if (common.device != "auto") return device;
  if (device != "auto") {
    say(common, "--device auto: the CPU, since there is no GPU that can be used here");
    return device;
  }
  if (passes_of(verb) > 0 || verb == "train") return device;
  const bool study = verb == "lab" && common.arguments.size() > 2 && common.arguments[2] == "study";
  say(common, study ? "--device auto: the GPU, since studies are much work"
                    : "--device auto: the CPU, since this command's work is not known beforehand");
  return study ? "cuda" : "cpu";
}

session::Request request_of(const Common& common, const CaseOptions& options) {
  session::Request request;
  request.model = options.model, request.data = options.data, request.test = options.test;
  request.train = options.train, request.output = options.output, request.metric = options.metric;
  request.budget = options.budget, request.limit = options.limit, request.all = options.all;
  request.config = common.config, request.seed = common.seed, request.jobs = common.jobs;
  request.device = common.device, request.precision = common.precision, request.passes = passes_of(verb_of(common));
  request.quiet = common.quiet, request.out = common.out;
  request.arguments = common.arguments;
  request.note = [&common](const std::string& line) { say(common, printable(line)); };
  return request;
}

Examined examine(const Common& common, const CaseOptions& options, session::Session& session, const std::string& verb) {
  Examined examined{preflight::examine(session), {}};
  const preflight::Preflight& found = examined.preflight;
  const bool stop = found.blocker && !options.anyway;
  if (!common.json) print_preflight(found, session.task().metric, stop ? OnBlocker::kStop : OnBlocker::kGoOn);
  if (!stop) return examined;
  const findings::Finding finding = preflight::finding_of(*found.blocker, session, verb);
  if (common.json)
    print_json(
        {{"preflight", evidence::preflight_json(found)}, {"findings", Json::array({findings::to_json(finding)})}});
  else
    print("  next      {}\n", finding.next.at(0).text());
  examined.stop = 1;
  return examined;
}

void check_shard(const std::string& product) {
  if (cluster::size() > 1)
    throw InputError("--shard is for processes that know nothing of each other", "Leave it out: ranks share the data.");
  if (product.empty()) throw InputError("--shard needs a file for its part", "Add -o part1.state.");
}

void tell_shard(const Common& common, const session::Shard& done, const std::string& shard, const std::string& product,
                const std::string& merge) {
  if (common.json)
    print_json({{"state", product}, {"samples", done.samples}, {"shard", shard}, {"seconds", done.seconds}});
  else
    print("  {} in {}; {} puts the parts together\n", counted(done.samples, "input"), product, merge);
}

}  // namespace netmend::app
