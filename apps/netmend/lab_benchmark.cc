// netmend lab benchmark: how fast a network is here, and where the time goes.
#include <fmt/format.h>

#include <algorithm>

#include "base/escape.h"
#include "base/text.h"
#include "netmend/shared.h"
#include "netmend/terminal.h"
#include "session/benchmark.h"

namespace netmend::app {
namespace {

using session::Benchmark;
using session::OperatorCost;

std::string rate_text(double rate) { return with_commas(int64_t(rate)) + "/s"; }

void print_operators(const Benchmark& found, size_t shown) {
  double all = 0;
  for (const OperatorCost& one : found.operators) all += one.seconds;
  std::vector<OperatorCost> list = found.operators;
  std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  Table table{{"node", "operator", "µs/input", "share", "FLOP", "bytes", "FLOP/s"}, "llrrrrr"};
  for (size_t i = 0; i < std::min(shown, list.size()); ++i) {
    const OperatorCost& one = list[i];
    table.rows.push_back({printable(one.name), printable(one.op), fmt::format("{:.3g}", 1e6 * one.seconds),
                          fmt::format("{:.1f} %", 100 * one.seconds / std::max(all, 1e-30)),
                          one.flops > 0 ? flops_text(one.flops) : "–", bytes_text(one.bytes),
                          one.flops > 0 ? flops_text(one.flops / std::max(one.seconds, 1e-30)) : "–"});
  }
  print_table(table);
  if (list.size() > shown) print("  … and {} more (--top N, --json)\n", list.size() - shown);
}

}  // namespace

int lab_benchmark(const Common& common, const BenchmarkOptions& options) {
  session::Session session(request_of(common, options));
  const Benchmark found = session::measure_speed(session, options.seconds);
  if (common.json) {
    print_json(session::to_json(found));
    return 0;
  }
  print("{} on {}, {}\n", printable(session.model_name()), found.device, counted(found.workers, "worker"));
  print("  parameters   {} ({})\n", with_commas(found.parameters), bytes_text(found.weight_bytes));
  print("  one input    {}FLOP   latency {:.3g} ms\n", flops_text(found.flops), found.latency_ms);
  for (const session::Rate& rate : found.rates)
    print("  batch {:<6} {:>14}   {:4.1f} % of the {} FLOP/s that this machine reaches\n", rate.batch,
          rate_text(rate.inputs_per_second), 100 * rate.inputs_per_second * found.flops / found.peak_flops,
          flops_text(found.peak_flops));
  print("  whole pass   {} from the file, {} from memory ({}, predictions judged)\n", rate_text(found.from_file),
        rate_text(found.from_memory), counted(found.inputs, "input"));
  print("  memory       {} {}\n\n  one batch of {} on one thread, operator by operator:\n",
        bytes_text(found.peak_memory), found.device == "cpu" ? "in tensors at most" : "of the GPU are used",
        found.batch);
  print_operators(found, options.top);
  return 0;
}

}  // namespace netmend::app
