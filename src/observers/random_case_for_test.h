// A small network over random inputs, for tests of observers.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>

#include "executor/layers.h"
#include "observers/catalog.h"
#include "stream/pass.h"
#include "zoo/zoo.h"

namespace netmend::observers {

/// What stands in the first number of the first two inputs; kLeftOut: these inputs are not there at all.
enum class FirstInputs { kSound, kNan, kInf, kLeftOut };
constexpr int64_t kBrokenInputs = 2;

/// Random inputs and labels, in memory.
class RandomData : public dataset::Dataset {
 public:
  RandomData(int64_t count, FirstInputs first = FirstInputs::kSound, std::vector<int64_t> shape = {12})
      : left_out_(first == FirstInputs::kLeftOut ? kBrokenInputs : 0) {
    at::Tensor noise = at::arange(count * model::checked_count(shape), at::kFloat);
    x_ = at::sin(noise * 1.7).view({count, -1});
    if (first == FirstInputs::kNan) x_[0][0] = NAN, x_[1][0] = NAN;
    if (first == FirstInputs::kInf) x_[0][0] = INFINITY, x_[1][0] = -INFINITY;
    std::vector<int64_t> sizes = shape;
    sizes.insert(sizes.begin(), count);
    x_ = x_.view(sizes);
    info_.spec = "random";
    info_.size = count - left_out_;
    info_.features = {{"x", std::move(shape), at::kFloat, false}};
    info_.labels = dataset::LabelKind::kClass;
    for (int c = 0; c < 4; ++c) info_.classes.push_back(std::to_string(c));
  }
  dataset::Batch read(std::span<const int64_t> samples) const override {
    std::vector<int64_t> numbers(samples.begin(), samples.end());  // the others keep their numbers
    for (int64_t& number : numbers) number += left_out_;
    at::Tensor rows = at::tensor(numbers, at::kLong);
    return {{x_.index_select(0, rows)}, {at::Tensor()}, rows.remainder(4), numbers};
  }
  dataset::Display display(int64_t) const override { return {}; }

 private:
  int64_t left_out_;
  at::Tensor x_;
};

struct RandomCase {
  std::shared_ptr<RandomData> data;
  stream::Subject subject;
  Materials materials;

  explicit RandomCase(int64_t count, FirstInputs inputs = FirstInputs::kSound,
                      const std::string& network = "mlp:12-9-7-4", std::vector<int64_t> shape = {12})
      : data(std::make_shared<RandomData>(count, inputs, std::move(shape))), subject(make(network, data)) {
    executor::Head head = executor::find_head(subject.graph, subject.graph.outputs[0]);
    std::vector<int64_t> first{0, 1, 2, 3};
    dataset::Batch batch = data->read(first);
    at::NoGradGuard no_grad;
    at::Tensor output = executor::Executor(subject.graph).run(batch.inputs)[0];
    materials.predictions = infer_task(subject.graph, head, data->info(), batch, output);
    materials.layers = executor::find_layers(subject.graph);
    materials.subject = &subject;
  }
  static stream::Subject make(const std::string& network, std::shared_ptr<RandomData> data) {
    model::Graph graph = zoo::make(network);
    std::vector<model::ValueId> outputs = graph.outputs;
    return {network, std::move(graph), data, outputs};
  }
  stream::PassResult run(const stream::Observer& observer, int jobs, stream::Shard shard = {}) const {
    stream::PassOptions options;
    options.jobs = jobs;
    options.shard = shard;
    options.quiet = true;
    return stream::run_pass(subject, {&observer}, options);
  }
};

}  // namespace netmend::observers
