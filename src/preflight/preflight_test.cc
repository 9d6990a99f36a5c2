#include "preflight/preflight.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "findings/kinds.h"
#include "preflight/assignment.h"
#include "preflight/running_statistics.h"
#include "preflight/setups.h"

namespace netmend::preflight {
namespace {

TEST(Assignment, IsTheBestOfAllOrders) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 200; ++trial) {
    const size_t n = 1 + random() % 6;
    std::vector<std::vector<double>> worth(n, std::vector<double>(n));
    for (auto& row : worth)
      for (double& entry : row) entry = double(random() % 20);
    auto total = [&](const std::vector<int64_t>& order) {
      double sum = 0;
      for (size_t i = 0; i < n; ++i) sum += worth[i][size_t(order[i])];
      return sum;
    };
    std::vector<int64_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    double best = -1;
    do best = std::max(best, total(order));
    while (std::next_permutation(order.begin(), order.end()));
    std::vector<int64_t> found = largest_assignment(worth), sorted = found;
    std::sort(sorted.begin(), sorted.end());
    std::iota(order.begin(), order.end(), 0);
    EXPECT_EQ(sorted, order);
    EXPECT_EQ(total(found), best);
  }
}

dataset::Info images(dataset::Preprocess preprocess, bool channels_last = false) {
  dataset::Info info;
  dataset::Feature feature;
  feature.name = "x";
  feature.image = true;
  feature.channels_last = channels_last;
  feature.shape = channels_last ? std::vector<int64_t>{8, 8, 3} : std::vector<int64_t>{3, 8, 8};
  info.features = {feature};
  info.preprocess = std::move(preprocess);
  return info;
}

dataset::Batch batch_of(at::Tensor x) {
  dataset::Batch batch;
  for (int64_t i = 0; i < x.size(0); ++i) batch.samples.push_back(i);
  batch.inputs = {std::move(x)};
  batch.masks.resize(1);
  return batch;
}

const Setup& find(const std::vector<Setup>& setups, const std::string& words) {
  for (const Setup& setup : setups)
    if (setup.words == words) return setup;
  throw std::runtime_error("no set-up " + words);
}

at::Tensor brightness() {
  at::manual_seed(1);
  at::Tensor u = at::rand({16, 3, 8, 8});
  u[0][0][0][0] = 0, u[0][0][0][1] = 1;
  return u;
}

void expect_made(const dataset::Info& info, const at::Tensor& values, const std::string& words,
                 const at::Tensor& expected) {
  dataset::Batch batch = batch_of(values);
  find(scalings(info, batch), words).apply(batch);
  EXPECT_TRUE(at::allclose(batch.inputs[0], expected, 1e-4, 1e-4)) << words;
}

TEST(Scalings, GoFromAnyToAny) {
  at::Tensor u = brightness();
  at::Tensor mean = at::tensor({0.485, 0.456, 0.406}, at::kFloat).view({1, 3, 1, 1}),
             std = at::tensor({0.229, 0.224, 0.225}, at::kFloat).view({1, 3, 1, 1});
  dataset::Preprocess bytes, scaled, normalised;
  scaled.scale = 1.0 / 255;
  normalised = scaled;
  normalised.mean = {0.485, 0.456, 0.406}, normalised.std = {0.229, 0.224, 0.225};
  // What the reader does is known, and undone: the source holds bytes in all three.
  expect_made(images(bytes), u * 255, "scaled to 0…1", u);
  expect_made(images(scaled), u, "not scaled, 0…255", u * 255);
  expect_made(images(normalised), (u - mean) / std, "scaled to −1…1", u * 2 - 1);
  expect_made(images(scaled), u, "scaled to 0…1, ImageNet mean and std", (u - mean) / std);
  // Normalised before it was saved: found out by its range.
  expect_made(images({}), (u - mean) / std, "scaled to 0…1", u);
  expect_made(images({}), u * 2 - 1, "not scaled, 0…255", u * 255);
}

TEST(Scalings, AreWrittenInTheReadersWords) {
  dataset::Batch batch = batch_of(brightness() * 255);
  const Options options =
      merged(images({}), {find(scalings(images({}), batch), "scaled to 0…1, ImageNet mean and std")}).value();
  EXPECT_EQ(options.at("scale"), "1/255");
  EXPECT_EQ(options.at("mean"), "0.485:0.456:0.406");
}

/// Whatever is written down and read again does to the source what was tried.
TEST(Scalings, DoWhatTheirOptionsSay) {
  const at::Tensor u = brightness();
  dataset::Preprocess now;
  now.scale = 1.0 / 255, now.mean = {0.5}, now.std = {0.25};
  const dataset::Info info = images(now);
  const dataset::Batch batch = batch_of((u - 0.5) / 0.25);
  for (const auto& setup : scalings(info, batch)) {
    if (!setup.changes) continue;  // no option can say it
    dataset::Batch changed = batch;
    setup.apply(changed);
    const dataset::Preprocess said = dataset::parse_preprocess(merged(info, {setup}).value());
    auto spread = [](const std::vector<double>& v, double otherwise) {
      at::Tensor row = v.empty() ? at::full({1}, otherwise) : at::tensor(v, at::kFloat);
      return row.numel() == 3 ? row.view({1, 3, 1, 1}) : row;
    };
    at::Tensor made = u * 255 * said.scale.value();
    if (said.color == "BGR") made = made.flip({1});
    made = (made - spread(said.mean, 0)) / spread(said.std, 1);
    if (said.per_image) {
      at::Tensor flat = made.flatten(1);
      made = ((flat - flat.mean(1, true)) / flat.std(1, false, true)).view_as(made);
    }
    EXPECT_TRUE(at::allclose(changed.inputs[0], made, 1e-3, 2e-3)) << setup.words;
  }
}

TEST(Scalings, ConstantsOfOtherDataAreLeftOut) {
  dataset::Info info = images({});
  dataset::Batch batch = batch_of(brightness());
  auto has = [&](const std::string& part) {
    for (const auto& setup : scalings(info, batch))
      if (setup.words.find(part) != std::string::npos) return true;
    return false;
  };
  EXPECT_TRUE(has("CIFAR-10"));
  EXPECT_TRUE(has("CIFAR-100"));
  info.spec = "cifar10:test";
  EXPECT_TRUE(has("CIFAR-10"));
  EXPECT_FALSE(has("CIFAR-100"));
  EXPECT_TRUE(has("ImageNet"));
  info.spec = "images:photos";
  info.classes = {"truck", "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship"};
  EXPECT_FALSE(has("CIFAR-100"));  // the names of the classes tell it too
}

TEST(Arrangements, ExchangeColoursAndAxes) {
  at::Tensor u = brightness();
  for (bool last : {false, true}) {
    at::Tensor x = last ? u.permute({0, 2, 3, 1}).contiguous() : u;
    dataset::Info info = images({}, last);
    auto made = [&](const std::string& words) {
      dataset::Batch batch = batch_of(x);
      find(arrangements(info, batch), words).apply(batch);
      return last ? batch.inputs[0].permute({0, 3, 1, 2}) : batch.inputs[0];
    };
    EXPECT_TRUE(at::equal(made("red and blue swapped"), u.flip({1})));
    EXPECT_TRUE(at::equal(made("rows and columns swapped"), u.transpose(2, 3)));
  }
  // An array that was reshaped where it should have been turned.
  at::Tensor wrong = u.permute({0, 2, 3, 1}).contiguous().view({16, 3, 8, 8});
  dataset::Batch batch = batch_of(wrong);
  find(arrangements(images({}), batch), "values read as channels last").apply(batch);
  EXPECT_TRUE(at::equal(batch.inputs[0], u));
}

TEST(RunningStatistics, IsNearForTheSameAndFarForOtherValues) {
  at::manual_seed(2);
  RunningStatistics kept{0, at::tensor({1.0, -2.0}), at::tensor({4.0, 0.25})};
  at::Tensor values = at::randn({200, 2, 3, 3});
  values = values * kept.variance.sqrt().view({1, 2, 1, 1}) + kept.mean.view({1, 2, 1, 1});
  EXPECT_LT(statistics_distance(kept, values), 0.1);
  EXPECT_GT(statistics_distance(kept, values * 255), 1);
}

/// A blocker is a finding like any other: its kind stands in the table.
TEST(Preflight, EveryBlockerIsAKindOfFinding) {
  for (const std::string& kind : blocker_kinds()) EXPECT_EQ(findings::find_kind(kind).name, kind);
}

}  // namespace
}  // namespace netmend::preflight
