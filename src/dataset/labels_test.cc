#include <ATen/ATen.h>

#include "dataset/dataset.h"
#include "dataset/test_files.h"

namespace netmend::dataset {
namespace {

using Words = std::vector<std::string>;

/// An NPZ with three samples and these labels.
struct Labelled {
  TemporaryFolder folder;
  std::string spec(const std::string& labels) {
    return "npz:" + folder.write("d.npz", zip_bytes({{"x.npy", npy_bytes("<f4", "(3, 1)", raw_bytes<float>({1, 2, 3}))},
                                                     {"y.npy", labels}}));
  }
  std::vector<int64_t> classes(const std::string& labels, const std::string& options, Words names) {
    auto data = open(spec(labels) + options);
    EXPECT_EQ(data->info().classes, names);
    at::Tensor read = data->read(std::vector<int64_t>{0, 1, 2}).labels;
    return {read.data_ptr<int64_t>(), read.data_ptr<int64_t>() + 3};
  }
  std::string error(const std::string& labels, const std::string& options = "") {
    return error_of([&] { open(spec(labels) + options); });
  }
};

std::string wide(const std::u32string& text) {
  return {reinterpret_cast<const char*>(text.data()), text.size() * sizeof(char32_t)};
}

TEST(Labels, WordsBecomeClasses) {
  Labelled data;
  using Numbers = std::vector<int64_t>;
  const std::string words = npy_bytes("<U3", "(3,)", wide(U"owlcat" + std::u32string(U"\u00e9\0\0", 3)));
  EXPECT_EQ(data.classes(words, "", {"cat", "owl", "é"}), (Numbers{1, 0, 2}));
  EXPECT_EQ(data.classes(words, ",classes=owl:é:cat:dog", {"owl", "é", "cat", "dog"}), (Numbers{0, 2, 1}));
  const std::string bytes = npy_bytes("|S2", "(3, 1)", std::string("b\0a\0b\0", 6));
  EXPECT_EQ(data.classes(bytes, "", {"a", "b"}), (Numbers{1, 0, 1}));
  const std::string numbers = npy_bytes("|S2", "(3,)",
                                        std::string("10"
                                                    "9\0"
                                                    "9\0",
                                                    6));
  EXPECT_EQ(data.classes(numbers, "", {"9", "10"}), (Numbers{1, 0, 0}));
  const std::string big = npy_bytes(">U1", "(3,)", std::string("\0\0\0b\0\0\0a\0\0\0c", 12));
  EXPECT_EQ(data.classes(big, "", {"a", "b", "c"}), (Numbers{1, 0, 2}));
}

TEST(Labels, BrokenWordsAreNamed) {
  Labelled data;
  const std::string words = npy_bytes("|S3", "(3,)", "catowlcat");
  EXPECT_TRUE(mentions(data.error(words, ",classes=cat:dog"), "label of sample 1 is 'owl'"));
  EXPECT_TRUE(mentions(data.error(npy_bytes("|S3", "(3,)", "catowl")), "cut short"));
  EXPECT_TRUE(mentions(data.error(npy_bytes("|S999999999", "(3,)", "cat")), "words of 999999999 characters"));
  EXPECT_TRUE(mentions(data.error(npy_bytes("|S3", "(4611686018427387904,)", "cat")), "cut short"));
  EXPECT_TRUE(mentions(data.error(npy_bytes("|S1", "(3, 2)", "abcdef")), "3×2"));
  EXPECT_TRUE(mentions(data.error(npy_bytes("<U1", "(3,)", std::string(12, '\xff'))), "not a character"));
  EXPECT_TRUE(mentions(data.error(npy_bytes("|S3", "(2,)", "catowl")), "2 labels for 3 samples"));
}

TEST(Labels, CountingFromOneIsSeen) {
  Labelled data;
  using Numbers = std::vector<int64_t>;
  const std::string from_one = npy_bytes("<i8", "(3,)", raw_bytes<int64_t>({1, 3, 2}));
  EXPECT_TRUE(mentions(data.error(from_one, ",classes=a:b:c"), "If the labels start at 1, add first=1"));
  EXPECT_EQ(data.classes(from_one, ",classes=a:b:c,first=1", {"a", "b", "c"}), (Numbers{0, 2, 1}));
  EXPECT_EQ(data.classes(from_one, ",first=1", {"0", "1", "2"}), (Numbers{0, 2, 1}));
  EXPECT_EQ(data.classes(from_one, ",classes=a:b:c:d", {"a", "b", "c", "d"}), (Numbers{1, 3, 2}));
  EXPECT_TRUE(mentions(data.error(from_one, ",classes=a:b"), "2 class names"));
  const std::string negative = npy_bytes("<i8", "(3,)", raw_bytes<int64_t>({0, -1, 2}));
  EXPECT_TRUE(mentions(data.error(negative), "the label of sample 1 is -1"));
  EXPECT_TRUE(
      mentions(data.error(from_one, ",first=2"), "the label of sample 0 is 1, which is not a class number (2, 3"));
  const std::string one_hot = npy_bytes("<f4", "(3, 2)", raw_bytes<float>({0, 1, 1, 0, 0, 1}));
  EXPECT_EQ(data.classes(one_hot, "", {"0", "1"}), (Numbers{1, 0, 1}));
}

}  // namespace
}  // namespace netmend::dataset
