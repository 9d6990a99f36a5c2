#include "records/writer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "records/record.h"

namespace netmend::records {
namespace {

struct Place {
  std::string path = (std::filesystem::temp_directory_path() / ("netmend-writer-" + std::to_string(getpid()))).string();
  Place() { std::filesystem::create_directories(path); }
  ~Place() { std::filesystem::remove_all(path); }
  std::string file() const { return path + "/record.jsonl"; }
};

TEST(Writer, AFullRecordEndsLikeAnyOther) {
  const Place place;
  {
    RecordWriter writer(place.file(), {"netmend", "train"});
    const std::string much(1 << 20, 'x');
    for (int i = 0; i < 95; ++i) writer.say("step", {{"step", i}, {"text", much}});
    writer.say("summary", {{"optimizer", 0}, {"steps", 95}});
    writer.say("end", {{"steps", 95}});
  }
  EXPECT_LE(std::filesystem::file_size(place.file()), uintmax_t(90) << 20);
  const Record record = read_record(place.path);
  EXPECT_FALSE(record.cut);
  EXPECT_EQ(record.of("full").size(), 1u);
  EXPECT_EQ(record.last("summary").whole("steps"), 95);
}

TEST(Writer, WhatItWritesIsReadBack) {
  const Place place;
  {
    RecordWriter writer(place.file(), {"netmend", "train"});
    for (double loss : {2.0, double(NAN), double(INFINITY)}) writer.add_loss(loss, 0.1);
    writer.say("epoch", {{"epoch", 1}, {"step", 3}, {"metrics", {{"loss", number_word(NAN)}, {"accuracy", 0.5}}}});
    writer.say_ring();
    writer.say("end", {{"steps", 3}});
  }
  const Record record = read_record(place.path);
  EXPECT_EQ(record.header.texts("program"), (std::vector<std::string>{"netmend", "train"}));
  ASSERT_EQ(record.series.at(0).losses.size(), 3u);
  EXPECT_TRUE(std::isnan(record.series.at(0).losses[1]));
  EXPECT_TRUE(std::isinf(record.series.at(0).losses[2]));
  EXPECT_EQ(record.epochs.at(0).metrics.at("accuracy"), 0.5);
  EXPECT_EQ(record.of("ring").size(), 1u);
  EXPECT_FALSE(record.cut);
}

TEST(Writer, AMillionStepsStaySmallAndKeepTheirSpike) {
  const Place place;
  {
    RecordWriter writer(place.file(), {});
    for (int64_t step = 1; step <= 1'000'000; ++step) writer.add_loss(step == 700'001 ? 1e6 : 1.0, 0.1);
  }
  EXPECT_LT(std::filesystem::file_size(place.file()), 4'000'000u);
  const Record record = read_record(place.path);
  const LossSeries& series = record.series.at(0);
  EXPECT_GT(series.steps.back(), 999'000);
  EXPECT_GT(*std::max_element(series.losses.begin(), series.losses.end()), 1000);
  EXPECT_TRUE(record.cut);  // no end was written
}

TEST(Writer, GoesOnBehindTheStepsOfACheckpoint) {
  const Place place;
  {
    RecordWriter writer(place.file(), {});
    writer.begin_after(500);
    writer.add_loss(1.0, 0.1);
  }
  EXPECT_EQ(read_record(place.path).series.at(0).steps, std::vector<int64_t>{501});
}

TEST(LookBudget, LooksOftenAtFirstThenAsItsCostAllows) {
  LookBudget budget;
  EXPECT_TRUE(budget.due(1, 0));
  budget.spent(0.1, 1);
  EXPECT_FALSE(budget.due(4, 4.9));  // 0.1 s is a fortieth of four seconds
  EXPECT_TRUE(budget.due(4, 5.1));
}

}  // namespace
}  // namespace netmend::records
