#include "census/repeats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/file.h"
#include "census/overview.h"

namespace netmend::census {
namespace {

class Tables : public ::testing::Test {
 protected:
  std::filesystem::path before = std::filesystem::current_path();
  std::string path;
  void SetUp() override {
    path = (std::filesystem::temp_directory_path() / "repeats-XXXXXX").string();
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    std::filesystem::current_path(path);
    std::ofstream("a.csv") << "x,y,label\n1,2,cat\n3.5,4,dog\n1,2,cat\n5,6,dog\n3.5,4,cat\n";
    std::ofstream("b.csv") << "x,y,label\n7,8,dog\n1,2,cat\n";
  }
  void TearDown() override {
    std::filesystem::current_path(before);
    std::filesystem::remove_all(path);
  }
};

TEST_F(Tables, DuplicatesWithinAndConflictingLabels) {
  const Repeats found = find_repeats("csv:a.csv,label=label", "", 0, 1);
  ASSERT_EQ(found.exact.size(), 2u);
  EXPECT_EQ(found.exact[0].sample, 2);
  EXPECT_EQ(found.exact[0].other, 0);
  EXPECT_EQ(found.exact[0].label, "cat");
  EXPECT_EQ(found.exact[1].sample, 4);
  EXPECT_EQ(found.exact[1].other_label, "dog");
  EXPECT_EQ(found.conflicting, 2);
  EXPECT_TRUE(found.against.empty());
  write_repeats("drop.csv", found);
  const std::string text = read_file("drop.csv", 1 << 20);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), int64_t(1 + found.exact.size() + found.near.size()));
  EXPECT_NE(text.find("2,2,cat,duplicate,0,0,cat,1"), std::string::npos) << text;
  EXPECT_EQ(find_repeats("csv:a.csv,label=label", "", 2, 1).exact.size(), 0u);
}

TEST_F(Tables, DuplicatesInOtherData) {
  const Repeats found = find_repeats("csv:a.csv,label=label,train=a.csv", "csv:b.csv,label=label,train=a.csv", 0, 1);
  ASSERT_EQ(found.exact.size(), 2u);  // both rows that b has too
  EXPECT_EQ(found.exact[0].sample, 0);
  EXPECT_EQ(found.exact[0].other, 1);
  EXPECT_EQ(found.exact[1].sample, 2);
  EXPECT_EQ(found.other_inputs, 2);
  EXPECT_THROW(find_repeats("csv:a.csv,label=label", "glyphs:test", 0, 1), InputError);
}

TEST_F(Tables, OverviewCounts) {
  const DataOverview data = describe_data({"csv:a.csv,label=label", 0, {}});
  EXPECT_EQ(data.samples, 5);
  EXPECT_EQ(data.labels, "classes");
  ASSERT_EQ(data.classes.size(), 2u);
  EXPECT_EQ(data.classes[0].name, "cat");
  EXPECT_EQ(data.classes[0].samples, 3);
  EXPECT_FALSE(data.pictures);
  EXPECT_EQ(data.examples.size(), 3u);
  EXPECT_EQ(describe_data({"csv:a.csv,label=label", 2, {}}).samples, 2);
  EXPECT_THROW(write_sheet({"csv:a.csv,label=label", 0, {}}, 10, "sheet.png"), InputError);
  write_sheet({"glyphs:test", 100, {}}, 20, "sheet.png");
  EXPECT_EQ(read_file("sheet.png", 1 << 24).substr(1, 3), "PNG");
}

}  // namespace
}  // namespace netmend::census
