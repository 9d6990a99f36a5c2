#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/escape.h"
#include "inputs/case_for_test.h"
#include "inputs/product.h"
#include "inputs/summary.h"

namespace netmend::inputs {
namespace {

TEST(RawRange, IsFoundInTheData) {
  at::Tensor raw = random_bytes({40, 3, 8, 8}, 1), labels = at::zeros({40}, at::kLong);
  dataset::Preprocess normal;
  normal.scale = 1.0 / 255, normal.mean = {0.5, 0.4, 0.3}, normal.std = {0.2, 0.25, 0.3};
  stream::RawRange bytes(*picture_data(raw, labels, 2, normal), 0);
  EXPECT_TRUE(bytes.bytes());
  EXPECT_EQ(bytes.words(), "0 … 255 (bytes)");
  auto data = picture_data(raw, labels, 2, normal);
  std::vector<int64_t> first{0, 1};
  at::Tensor fed = data->read(first).inputs[0];
  EXPECT_TRUE(at::allclose(bytes.units(fed), raw.narrow(0, 0, 2) / 255, 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(bytes.fed(bytes.raw(bytes.units(fed))), fed, 1e-4, 1e-4));
  stream::RawRange unit(*picture_data(raw / 255, labels, 2, {}), 0);
  EXPECT_EQ(unit.high(), 1);
  EXPECT_FALSE(unit.bytes());
  stream::RawRange signed_one(*picture_data(raw / 127.5 - 1, labels, 2, {}), 0);
  EXPECT_EQ(signed_one.low(), -1);
  stream::RawRange odd(*picture_data(raw * 3 - 77, labels, 2, {}), 0);  // by channel, as there is
  at::Tensor units = odd.units(raw * 3 - 77);
  EXPECT_NEAR(units.min().item<double>(), 0, 1e-6);
  EXPECT_NEAR(units.max().item<double>(), 1, 1e-6);
  EXPECT_EQ(stream::RawRange(*picture_data(raw, labels, 2, {}), 0, "0:300").high(), 300);
  for (const char* bad : {"5", "3:1", "a:b", "1:1", "0:inf", "0:1:2"})
    EXPECT_THROW(stream::RawRange(*picture_data(raw, labels, 2, {}), 0, bad), InputError) << bad;
}

TEST(RawRange, ConstantAndBrokenValuesDoNoHarm) {
  dataset::Info info;
  info.spec = "made up";
  info.features = {{"x", {3}}};
  dataset::Batch batch;
  batch.inputs = {at::tensor({5.f, NAN, -1.f, 5.f, 20.f, 1.f}).reshape({2, 3})};
  MadeDataset data(info, batch);
  stream::RawRange range(data, 0);
  at::Tensor units = range.units(batch.inputs[0]);
  EXPECT_EQ(units[0][0].item<float>(), 0);
  EXPECT_EQ(range.raw(units)[1][0].item<float>(), 5);
  EXPECT_TRUE(std::isfinite(range.low()) && std::isfinite(range.high()));
}

/// What is written opens again as what was fed, whatever the layout and colours.
TEST(Product, ReadsBackAsItWasMade) {
  char name[] = "/tmp/netmend-product-XXXXXX";
  const std::string folder = mkdtemp(name);
  for (bool last : {false, true})
    for (const char* color : {"", "BGR"})
      for (bool whole : {false, true}) {
        dataset::Preprocess preprocess;
        preprocess.scale = 1.0 / 255, preprocess.mean = {0.5, 0.4, 0.3}, preprocess.std = {0.2, 0.25, 0.3};
        preprocess.layout = last ? "NHWC" : "NCHW", preprocess.color = color;
        at::Tensor raw = random_bytes({20, 3, 8, 8}, 4), labels = at::arange(20, at::kLong).remainder(4);
        TestCase test(small_network(4, 3, last), picture_data(raw, labels, 4, preprocess, last));
        Settings settings;
        settings.eps = 0.1;
        CampaignOptions how;
        how.quiet = true, how.round = whole;
        CampaignResult made =
            run_campaign(*test.network, test.subject, test.chosen, find_method("fgsm"), settings, how);
        std::string spec =
            write_product(folder + "/p.npz", *test.data, test.subject.graph, *test.network, {{"fgsm", &made}}, whole);
        auto again = dataset::open(spec);
        ASSERT_EQ(again->size(), 20);
        std::vector<int64_t> rows;
        for (int64_t i = 0; i < 20; ++i) rows.push_back(i);
        dataset::Batch batch = again->read(rows);
        EXPECT_TRUE(at::equal(batch.inputs[0], test.range->fed(made.raw))) << spec;
        EXPECT_TRUE(at::equal(batch.labels, labels)) << spec;
        EXPECT_EQ(again->info().classes, test.data->info().classes);
      }
  std::filesystem::remove_all(folder);
}

TEST(Product, WordsForTheShell) {
  EXPECT_EQ(shell_word("npz:adv.npz,x=x,scale=1/255"), "npz:adv.npz,x=x,scale=1/255");
  EXPECT_EQ(shell_word("it's a bag"), "'it'\\''s a bag'");
}

/// Sentences of ids; 0 pads, 1 is unknown, 9 begins every one of them.
struct Sentences {
  at::Tensor ids = at::zeros({20, 10}, at::kLong), mask = at::zeros({20, 10}, at::kBool);
  std::unique_ptr<TestCase> test;
  Settings settings;
  Sentences() {
    Random random(2);
    for (int64_t row = 0; row < 20; ++row) {
      ids[row][0] = 9;
      const auto length = int64_t(3 + random.below(7));
      for (int64_t i = 1; i < length; ++i) ids[row][i] = int64_t(10 + random.below(20));
      mask[row].narrow(0, 0, length).fill_(true);
    }
    dataset::Info info;
    info.spec = "made up";
    dataset::Feature feature{"ids", {10}, at::kLong};
    feature.vocabulary = 30, feature.pad = 0, feature.unknown = 1;
    info.features = {feature};
    info.labels = dataset::LabelKind::kClass, info.classes = {"0", "1"};
    dataset::Batch batch;
    batch.inputs = {ids}, batch.masks = {mask}, batch.labels = at::zeros({20}, at::kLong);
    zoo::Builder b("text", zoo::Scheme::kHe, 3);
    model::ValueId x = b.embedding("embed", b.input("ids", {10}, model::Element::kInt64), 30, 4);
    test = std::make_unique<TestCase>(b.finish(b.dense("fc", b.flatten(x), 40, 2), "y", 2),
                                      std::make_shared<MadeDataset>(info, batch));
    settings.eps = 0.3, settings.pool = ids;
  }
};

TEST(Tokens, AreDroppedSwappedAndReplaced) {
  Sentences s;
  Originals all = s.test->originals();
  const Network& network = *s.test->network;
  at::Tensor words = s.mask.sum(1) - 1, many = (words.to(at::kDouble) * 0.3).round().clamp_min(1).to(at::kLong);
  Changed dropped = token_drop(network, all, s.settings), swapped = token_swap(network, all, s.settings),
          replaced = token_replace(network, all, s.settings);
  for (int64_t row = 0; row < 20; ++row) {
    auto bag = [&](const at::Tensor& ids, const at::Tensor& mask) {
      at::Tensor kept = ids[row].masked_select(mask[row]);
      return std::multiset<int64_t>(kept.data_ptr<int64_t>(), kept.data_ptr<int64_t>() + kept.numel());
    };
    const int64_t changes = many[row].item<int64_t>();
    auto own = bag(s.ids, s.mask), left = bag(dropped.units, dropped.mask);
    EXPECT_EQ(left.size() + size_t(changes), own.size());
    EXPECT_TRUE(std::includes(own.begin(), own.end(), left.begin(), left.end()));
    EXPECT_EQ(bag(swapped.units, swapped.mask), own);
    EXPECT_EQ(bag(replaced.units, replaced.mask).size(), own.size());
    EXPECT_EQ((replaced.units[row] != s.ids[row]).sum().item<int64_t>(), changes);
    for (const Changed* changed : {&dropped, &swapped, &replaced}) {
      EXPECT_EQ(changed->units[row][0].item<int64_t>(), 9);  // every sentence begins with it
      at::Tensor padding = changed->units[row].masked_select(changed->mask[row].logical_not());
      EXPECT_EQ(padding.ne(0).sum().item<int64_t>(), 0);
    }
  }
}

TEST(Tokens, OtherMethodsSayWhyNot) {
  Sentences s;
  for (const Method& method : methods()) {
    const std::string why = unsuited(method, *s.test->network, s.settings);
    EXPECT_EQ(why.empty(), method.name.starts_with("token-")) << method.name;
    EXPECT_EQ(why.empty(), why.find("token id") == std::string::npos);
  }
}

TEST(Columns, ChangeByColumn) {
  Random random(4);
  const int64_t count = 60;
  at::Tensor rows = at::zeros({count, 6}, at::kFloat);
  for (int64_t i = 0; i < count; ++i) {
    rows[i][0] = random.normal() * 3, rows[i][1] = random.normal();
    rows[i][2 + int64_t(random.below(3))] = 1;
    rows[i][5] = 7;  // never changes
  }
  dataset::Info info;
  info.spec = "made up";
  dataset::Feature feature{"x", {6}};
  feature.columns = {"age", "height", "job=a", "job=b", "job=c", "year"};
  info.features = {feature};
  info.labels = dataset::LabelKind::kClass, info.classes = {"0", "1"};
  dataset::Batch batch;
  batch.inputs = {rows}, batch.masks.resize(1), batch.labels = at::zeros({count}, at::kLong);
  zoo::Builder b("table", zoo::Scheme::kHe, 3);
  TestCase test(b.finish(b.dense("fc", b.input("x", {6}), 6, 2), "y", 2), std::make_shared<MadeDataset>(info, batch));
  Originals all = test.originals();
  Settings settings;
  settings.eps = 0.1, settings.pool = all.units;
  auto raw = [&](const Changed& changed) { return test.range->raw(changed.units); };
  at::Tensor noisy = raw(column_noise(*test.network, all, settings)) - rows;
  EXPECT_LT(noisy.narrow(1, 2, 4).abs().max().item<double>(), 1e-5);  // categories and constants stay
  EXPECT_NEAR(noisy.select(1, 0).std().item<double>(), 0.3, 0.12);
  Changed swapped = category_swap(*test.network, all, settings);
  at::Tensor jobs = raw(swapped).narrow(1, 2, 3), old = rows.narrow(1, 2, 3);
  EXPECT_TRUE(at::allclose(jobs.sum(1), at::ones({count})));
  EXPECT_EQ((jobs.argmax(1) == old.argmax(1)).sum().item<int64_t>(), 0);
  EXPECT_LT((raw(swapped) - rows).narrow(1, 0, 2).abs().max().item<double>(), 1e-5);
  Changed permuted = column_permute(*test.network, all, settings);
  at::Tensor off = (permuted.units != all.units);
  for (int64_t i = 0; i < count; ++i) {
    const int columns = off[i][0].item<bool>() + off[i][1].item<bool>() + off[i].narrow(0, 2, 3).any().item<bool>() +
                        off[i][5].item<bool>();
    EXPECT_EQ(columns, int(permuted.made[size_t(i)]));
  }
  EXPECT_NE(unsuited(find_method("fgsm"), *test.network, settings).find("column-noise"), std::string::npos);
}

TEST(Summary, CountsEverything) {
  std::vector<Attempt> attempts{{0, 1, 1, 2, true, {1, 3, 0.5}},
                                {1, 1, 1, 1, true, {9, 9, 9}},
                                {2, 0, 0, 1, false, {9, 9, 9}},
                                {3, 0, 0, 2, true, {3, 5, 0.7}}};
  Summary summary = summarise(attempts, false);
  EXPECT_EQ(summary.inputs, 4);
  EXPECT_EQ(summary.made, 3);
  EXPECT_EQ(summary.successes, 2);
  EXPECT_DOUBLE_EQ(summary.l2->mean, 4);
  EXPECT_DOUBLE_EQ(summary.l2->median, 4);
  EXPECT_DOUBLE_EQ(summary.l0->most, 3);
  ASSERT_EQ(summary.classes.size(), 2u);
  EXPECT_EQ(summary.classes[1].made, 2);
  EXPECT_FALSE(summarise({}, false).l2.has_value());
  EXPECT_FALSE(summarise(attempts, true).l2.has_value());
}

}  // namespace
}  // namespace netmend::inputs
