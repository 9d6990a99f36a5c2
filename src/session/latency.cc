#include "session/latency.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "session/split.h"

namespace netmend::session {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kInputs = 256;
constexpr int kRepeats = 5, kWarmUp = 8;

Json five_numbers(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  auto quantile = [&](double q) {
    const double at = q * double(values.size() - 1);
    const auto low = size_t(at);
    const size_t high = std::min(low + 1, values.size() - 1);
    return values[low] + (at - double(low)) * (values[high] - values[low]);
  };
  return {{"min", values.front()}, {"q1", quantile(0.25)}, {"median", quantile(0.5)},
          {"q3", quantile(0.75)},  {"max", values.back()}, {"count", values.size()}};
}

/// The median, and the 95 % interval that the order of the values gives, whatever their distribution.
stats::Estimate median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const double n = double(values.size()), reach = 0.98 * std::sqrt(n);
  auto at = [&](double rank) { return values[size_t(std::clamp(rank, 0.0, n - 1))]; };
  return {at((n - 1) / 2), at(std::floor(n / 2 - reach)), at(std::ceil(n / 2 + reach))};
}

}  // namespace

Latency measure_latency(Session& session) {
  const Split& test = session.test();
  const observers::PredictionSettings& task = session.task();
  const std::vector<int64_t> samples = stream::spread(test.subject.data->size(), kInputs, 0.5);
  session.record(test, "latency", int64_t(samples.size()));
  // The executor is made once, as a server would; a fixed batch is fed the same input throughout.
  executor::Request request;
  request.wanted = {task.head.output};
  request.device = test.subject.device;
  if (!request.device.is_cpu()) request.precision = executor::pass_precision();
  executor::Executor executor(test.subject.batching.graph, request);
  const int64_t batch =
      test.subject.batching.kind == executor::Batching::kFixed ? test.subject.batching.size : int64_t(1);
  std::vector<double> all;
  std::map<std::string, std::vector<double>> by_class;
  at::NoGradGuard no_grad;
  for (size_t i = 0; i < samples.size(); ++i) {
    const dataset::Batch one = test.subject.data->read(std::vector<int64_t>(size_t(batch), samples[i]));
    const std::vector<at::Tensor> inputs = test.subject.feed.inputs(one);
    std::vector<double> runs;
    for (int run = 0; run < kRepeats + (i == 0 ? kWarmUp : 0); ++run) {
      const auto start = std::chrono::steady_clock::now();
      at::Tensor output = executor.run(inputs)[0];
      if (output.is_cuda()) output = output.to(at::kCPU);  // waits for the device
      runs.push_back(1e3 * std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    std::vector<double> kept(runs.end() - kRepeats, runs.end());
    std::nth_element(kept.begin(), kept.begin() + kRepeats / 2, kept.end());
    all.push_back(kept[kRepeats / 2]);
    if (task.by_class() && one.labels.defined()) {
      const int64_t label = one.labels.to(at::kLong)[0].item<int64_t>();
      if (label >= 0 && label < int64_t(task.classes.size()))
        by_class[task.classes[size_t(label)]].push_back(all.back());
    }
  }
  Json json = {{"unit", "ms"},
               {"batch", batch},
               {"repeats", kRepeats},
               {"device", session.request().device},
               {"all", five_numbers(all)},
               {"groups", Json::array()}};
  if (by_class.size() <= 50)
    for (const auto& [name, values] : by_class) {
      json["groups"].push_back(five_numbers(values));
      json["groups"].back()["name"] = name;
    }
  return {std::move(json), median_of(all), int64_t(all.size())};
}

}  // namespace netmend::session
