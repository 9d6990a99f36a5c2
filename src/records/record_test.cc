#include "records/record.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/error.h"

namespace netmend::records {
namespace {

const std::string kHeader = "{\"netmend\":\"training-record\",\"version\":1,\"time\":1}\n";

struct Folder {
  std::string path =
      (std::filesystem::temp_directory_path() / ("netmend-records-" + std::to_string(getpid()))).string();
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path + "/" + name, std::ios::binary) << text;
    return path + "/" + name;
  }
};

TEST(Record, ReadsStepsEpochsAndSeries) {
  const Folder folder;
  folder.write(
      "record.jsonl",
      kHeader +
          "{\"e\":\"series\",\"optimizer\":0,\"from\":1,\"every\":1,\"loss\":[2.0,1.0,\"NaN\"]}\n"
          "{\"e\":\"series\",\"optimizer\":0,\"from\":4,\"every\":4,\"loss\":[0.5]}\n"
          "{\"e\":\"step\",\"step\":3,\"loss\":\"Inf\",\"layers\":{\"fc\":{\"g\":1.5,\"w\":2,\"act\":\"relu\"}}}\n"
          "{\"e\":\"epoch\",\"epoch\":1,\"metrics\":{\"loss\":1.0,\"val_loss\":\"NaN\"}}\n"
          "{\"e\":\"end\"}\n");
  const Record record = read_record(folder.path);
  ASSERT_EQ(record.series.at(0).losses.size(), 4u);
  EXPECT_TRUE(std::isnan(record.series.at(0).losses[2]));
  EXPECT_EQ(record.series.at(0).steps, (std::vector<int64_t>{1, 2, 3, 7}));
  ASSERT_EQ(record.steps.size(), 1u);
  EXPECT_TRUE(std::isinf(record.steps[0].loss));
  EXPECT_EQ(record.steps[0].layers[0].second.gradient, 1.5);
  EXPECT_TRUE(std::isnan(record.steps[0].layers[0].second.update));
  EXPECT_EQ(record.epochs[0].metrics.at("loss"), 1.0);
  EXPECT_FALSE(record.cut);
}

TEST(Record, ACutLineAndAMissingEndAreSaid) {
  const Folder folder;
  const std::string whole =
      kHeader +
      "{\"e\":\"epoch\",\"epoch\":1,\"metrics\":{\"loss\":1.0}}\n{\"e\":\"epoch\",\"epoch\":2,\"metrics\":{\"lo";
  for (size_t cut = kHeader.size(); cut <= whole.size(); ++cut)
    EXPECT_TRUE(read_record(folder.write("record.jsonl", whole.substr(0, cut))).cut) << cut;
  const Record damaged = read_record(folder.write("record.jsonl", kHeader + "{\"e\":\n\xff\xfe\n{\"e\":\"end\"}\n"));
  EXPECT_FALSE(damaged.cut);
  EXPECT_EQ(damaged.troubles.size(), 1u);
}

TEST(Record, RefusesWhatIsNone) {
  const Folder folder;
  EXPECT_THROW(read_record(folder.path), InputError);
  EXPECT_THROW(read_record(folder.write("record.jsonl", "")), InputError);
  EXPECT_THROW(read_record(folder.write("record.jsonl", "{\"a\":1}\n")), InputError);
  EXPECT_THROW(read_record(folder.write("record.jsonl", "{\"netmend\":\"training-record\",\"version\":2}\n")),
               InputError);
  EXPECT_THROW(read_record(folder.write("x.csv", "a,b\n1,2\n")), InputError);
}

TEST(Record, WrongTypesAreNotThere) {
  const Folder folder;
  for (const char* value : {"null", "[]", "{}", "\"x\"", "1e300", "true", "[[1]]", "-1"}) {
    std::string text = kHeader;
    for (const char* type : {"step", "epoch", "series", "loss", "fact", "model", "fit", "summary"}) {
      text += "{\"e\":\"" + std::string(type) + "\"";
      for (const char* key :
           {"layers", "metrics", "loss", "from", "every", "step", "optimizer", "epoch", "lr", "shape"})
        text += ",\"" + std::string(key) + "\":" + value;
      text += "}\n";
    }
    EXPECT_NO_THROW(read_record(folder.write("record.jsonl", text))) << value;
  }
}

TEST(Record, OfSeveralProcessesTheOneThatTrainedLongest) {
  const Folder folder;
  auto trained = [](int steps, const std::string& rank) {
    return "{\"netmend\":\"training-record\",\"version\":1,\"time\":1,\"rank\":\"" + rank +
           "\"}\n{\"e\":\"optimizer\",\"type\":\"SGD\"}\n{\"e\":\"summary\",\"steps\":" + std::to_string(steps) +
           "}\n{\"e\":\"end\"}\n";
  };
  folder.write("record.jsonl", kHeader + "{\"e\":\"framework\",\"name\":\"torch\"}\n{\"e\":\"end\"}\n");
  EXPECT_TRUE(read_record(folder.path).troubles.empty()) << "one record is the record";
  folder.write("record-7.jsonl", trained(100, "1"));
  Record record = read_record(folder.path);
  EXPECT_TRUE(record.path.ends_with("record-7.jsonl"));
  EXPECT_NE(record.troubles.at(0).find("trained nothing"), std::string::npos);
  folder.write("record-8.jsonl", trained(99, "0"));
  record = read_record(folder.path);
  EXPECT_TRUE(record.path.ends_with("record-8.jsonl")) << "as long: the smallest rank";
  EXPECT_NE(record.troubles.at(0).find("record-7.jsonl (100 steps)"), std::string::npos) << record.troubles.at(0);
  folder.write("record-9.jsonl", trained(4000, "3"));
  EXPECT_TRUE(read_record(folder.path).path.ends_with("record-9.jsonl"));
  folder.write("record-9.jsonl", "no record\n{\"e\":\"series\",\"loss\":[1],\"from\":1e15,\"every\":1e15}\n");
  EXPECT_TRUE(read_record(folder.path).path.ends_with("record-8.jsonl")) << "what is no record trained nothing";
}

TEST(Csv, ColumnsOfKerasAndLightningMeanTheSame) {
  const Folder folder;
  const Record keras = read_record(
      folder.write("k.csv", "epoch,accuracy,loss,val_accuracy,val_loss\n0,0.5,1.0,0.4,1.1\n1,0.6,nan,0.5,1.0\n"));
  ASSERT_EQ(keras.epochs.size(), 2u);
  EXPECT_EQ(keras.epochs[0].metrics.at("val_loss"), 1.1);
  EXPECT_TRUE(std::isnan(keras.epochs[1].metrics.at("loss")));
  const Record lightning = read_record(
      folder.write("l.csv", "epoch,step,train_loss_epoch,val_acc,val_loss\n0,9,1.0,,\n0,9,,0.5,1.2\n1,19,0.8,,\n"));
  ASSERT_EQ(lightning.epochs.size(), 2u);
  EXPECT_EQ(lightning.epochs[0].metrics.at("loss"), 1.0);
  EXPECT_EQ(lightning.epochs[0].metrics.at("val_accuracy"), 0.5);
}

/// A field of protobuf with bytes.
std::string field(int number, const std::string& bytes) {
  return std::string{char(number << 3 | 2), char(bytes.size())} + bytes;
}
template <typename T>
std::string raw(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}
std::string event(char step, const std::string& value) {
  const std::string message = std::string{char(2 << 3), step} + field(5, field(1, value));
  return raw(uint64_t(message.size())) + "cccc" + message + "cccc";
}

TEST(TensorBoard, ScalarsOfBothVersionsAreEpochs) {
  const Folder folder;
  const std::string one = field(1, "train/loss") + std::string{char(2 << 3 | 5)} + raw(0.5f);  // simple_value
  const std::string two =
      field(1, "val_loss") + field(8, std::string{char(1 << 3), 1} + field(4, raw(0.75f)));  // a tensor
  const std::string text = event(1, one) + event(1, two) + event(2, one);
  const Record record = read_record(folder.write("events.out.tfevents.1", text));
  ASSERT_EQ(record.epochs.size(), 2u);
  EXPECT_EQ(record.epochs[0].metrics.at("loss"), 0.5);
  EXPECT_EQ(record.epochs[0].metrics.at("val_loss"), 0.75);
  for (size_t cut = 0; cut < text.size(); ++cut) try {
      read_record(folder.write("events.out.tfevents.1", text.substr(0, cut)));
    } catch (const InputError&) {
    }
}

void make_database(const std::string& path, const std::string& words) {
  sqlite3* file = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &file), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(file, words.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(file);
  sqlite3_close(file);
}

const std::string kTrackio =
    "CREATE TABLE metrics (id INTEGER PRIMARY KEY AUTOINCREMENT, timestamp TEXT NOT NULL, run_name TEXT NOT NULL, "
    "step INTEGER NOT NULL, metrics TEXT NOT NULL);";

TEST(Trackio, TheLastRunOfADatabaseIsRead) {
  const Folder folder;
  const std::string path = folder.path + "/project.db";
  make_database(path, kTrackio +
                          "INSERT INTO metrics VALUES (1,'t','old',0,'{\"loss\":9}'),"
                          "(2,'t','new',0,'{\"train/loss\":2.0,\"lr\":0.1}'),(3,'t','new',0,'{\"val/loss\":2.5}'),"
                          "(4,'t','new',1,'{\"train/loss\":\"NaN\",\"val/acc\":0.5}'),(5,'t','new',2,'garbage');");
  const Record record = read_record(path);
  ASSERT_EQ(record.epochs.size(), 2u);
  EXPECT_EQ(record.epochs[0].metrics.at("loss"), 2.0);
  EXPECT_EQ(record.epochs[0].metrics.at("val_loss"), 2.5);
  EXPECT_EQ(record.epochs[0].rate, 0.1);
  EXPECT_TRUE(std::isnan(record.epochs[1].metrics.at("loss")));
  EXPECT_EQ(record.epochs[1].metrics.at("val_accuracy"), 0.5);
  EXPECT_EQ(record.troubles.size(), 3u);
}

TEST(Trackio, OtherDatabasesAreRefused) {
  const Folder folder;
  make_database(folder.path + "/other.db", "CREATE TABLE things (name TEXT);");
  EXPECT_THROW(read_record(folder.path + "/other.db"), InputError);
  make_database(folder.path + "/empty.db", kTrackio);
  EXPECT_THROW(read_record(folder.path + "/empty.db"), InputError);
  make_database(folder.path + "/lossless.db", kTrackio + "INSERT INTO metrics VALUES (1,'t','a',0,'{\"speed\":1}');");
  EXPECT_THROW(read_record(folder.path + "/lossless.db"), InputError);
  EXPECT_THROW(read_record(folder.write("cut.db", "SQLite format 3")), InputError);
}

}  // namespace
}  // namespace netmend::records
