// Data in memory that no check of data has anything to say about, for tests that then damage it.
#pragma once

#include <algorithm>

#include "base/random.h"
#include "census/census.h"
#include "checks/checks_for_test.h"
#include "dataset/memory_dataset.h"
#include "slices/failing.h"

namespace netmend::checks {

/// All rows that look at the data alone.
inline const std::vector<std::string> kDataRows = {
    "test-size",      "imbalance",          "absent-classes", "label-shift",       "label-order",
    "duplicates",     "conflicting-labels", "split-leak",     "constant-features", "missing-values",
    "unknown-tokens", "truncated-text",     "outliers",       "label-leak",        "drift"};

/// Data and predictions that are sound until a test changes something.
struct Sound {
  dataset::Feature feature = dataset::picture_feature(8);
  std::vector<std::string> classes{"cat", "dog", "owl"};
  at::Tensor x[2], y[2], mask[2];     // test, train
  std::vector<std::string> shown[2];  // rows as text; empty for none
  std::vector<std::string> group_names;
  std::vector<std::vector<std::string>> groups;  // of tests
  std::vector<int64_t> wrong;                    // tests
  std::vector<float> confidence;                 // of tests; empty for 0.9
  bool train = true, run_train = true;
  observers::PredictionSettings settings;

  explicit Sound(int64_t tests = 900, int64_t trains = 1500, uint64_t seed = 1) {
    settings.task = observers::Task::kClasses, settings.classes = classes, settings.metric = "accuracy";
    settings.outputs = 3;
    Random random(seed);
    for (int part : {0, 1}) {
      const int64_t count = part ? trains : tests;
      x[part] = at::empty({count, 1, 8, 8}, at::kFloat), y[part] = at::empty({count}, at::kLong);
      for (int64_t i = 0; i < count * 64; ++i) x[part].data_ptr<float>()[i] = float(random.uniform());
      for (int64_t i = 0; i < count; ++i) y[part].data_ptr<int64_t>()[i] = int64_t(random.below(3));
    }
    for (int64_t i = 0; i < tests; ++i)
      if (random.uniform() < 0.05) wrong.push_back(i);
  }

  static Sound table(uint64_t seed = 2) {
    Sound sound(900, 1500, seed);
    sound.feature = dataset::table_feature({"age", "hours", "sex=F", "sex=M"});
    Random random(seed + 50);
    for (int part : {0, 1}) {
      sound.x[part] = at::zeros({sound.y[part].size(0), 4}, at::kFloat);
      for (int64_t i = 0; i < sound.x[part].size(0); ++i) {
        float* row = sound.x[part].data_ptr<float>() + i * 4;
        row[0] = float(random.normal()), row[1] = float(random.normal()), row[2 + random.below(2)] = 1;
      }
    }
    return sound;
  }

  static Sound text(uint64_t seed = 3) {
    Sound sound(900, 1500, seed);
    sound.feature = dataset::text_feature(12);
    Random random(seed + 90);
    for (int part : {0, 1}) {
      const int64_t count = sound.y[part].size(0);
      sound.x[part] = at::zeros({count, 12}, at::kLong), sound.mask[part] = at::zeros({count, 12}, at::kBool);
      for (int64_t i = 0; i < count; ++i) {
        const auto length = int64_t(4 + random.below(8));  // never the whole length
        for (int64_t t = 0; t < length; ++t) {
          sound.x[part].data_ptr<int64_t>()[i * 12 + t] = int64_t(2 + random.below(500));
          sound.mask[part].data_ptr<bool>()[i * 12 + t] = true;
        }
      }
    }
    return sound;
  }

  ObservedSplit part(int which) const {
    ObservedSplit out;
    out.name = which ? "train" : "test";
    auto data = std::make_shared<dataset::MemoryDataset>(feature, x[which], y[which], classes,
                                                         which ? "memory:train" : "memory:test");
    if (mask[which].defined()) data->set_mask(mask[which]);
    if (!shown[which].empty()) data->set_rows(shown[which]);
    if (which == 0 && !groups.empty()) data->set_groups(group_names, groups);
    out.whole = data->size();
    if (which == 0 || run_train)
      for (int64_t i = 0; i < data->size(); ++i) {
        const auto label = y[which].data_ptr<int64_t>()[i];
        const bool fails = which == 0 && std::find(wrong.begin(), wrong.end(), i) != wrong.end();
        const auto answer = fails ? (label + 1) % int64_t(classes.size()) : label;
        out.rows.push_back({i, double(label), double(answer),
                            which == 0 && !confidence.empty() ? confidence[size_t(i)] : 0.9f, fails ? 2.f : 0.1f,
                            fails ? observers::SampleRow::kWrong : observers::SampleRow::kRight});
      }
    out.data = std::move(data);
    if (!out.rows.empty()) out.result.metrics = {slices::metric_of(settings, out.rows)};
    return out;
  }

  Results check(bool slices_too = false) const {
    Observed seen = observed();
    Results found;
    run_rows(seen, found, kDataRows);
    if (slices_too) run_rows(seen, found, {"groups", "slices"});
    return found;
  }

  Observed observed() const {
    Observed seen{.session = any_session(), .settings = settings};
    seen.test = part(0);
    if (train) seen.train = part(1);
    for (ObservedSplit* split : {&*seen.test, seen.train ? &*seen.train : nullptr}) {
      if (!split) continue;
      split->census_observer = std::make_unique<census::Census>(*split->data);
      split->census = census::take(*split->data, *split->census_observer, 1);
    }
    return seen;
  }
};

}  // namespace netmend::checks
