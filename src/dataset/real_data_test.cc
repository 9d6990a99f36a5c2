// Figures that are known of real data, where it is on this machine; and the drawn digits, which always are.
#include <ATen/ATen.h>

#include <cstdlib>
#include <numeric>
#include <set>
#include <thread>

#include "dataset/dataset.h"
#include "dataset/locate.h"
#include "dataset/summary.h"
#include "dataset/test_files.h"
#include "dataset/words.h"

namespace netmend::dataset {
namespace {

std::vector<int64_t> range(int64_t count) {
  std::vector<int64_t> out(static_cast<size_t>(count));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

std::vector<int64_t> first_labels(const Dataset& data) {
  at::Tensor labels = data.read(range(5)).labels;
  return {labels.data_ptr<int64_t>(), labels.data_ptr<int64_t>() + 5};
}

/// Why a data set cannot be tested here; "" when it can.
std::string absent(const std::string& spec) {
  try {
    open(spec);
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

#define NEEDS(spec) \
  if (std::string why = absent(spec); !why.empty()) GTEST_SKIP() << why

TEST(RealData, Mnist) {
  NEEDS("mnist:all");
  auto train = open("mnist:train"), test = open("mnist:test");
  EXPECT_EQ(train->size(), 60000);
  EXPECT_EQ(test->size(), 10000);
  EXPECT_EQ(test->info().features[0].shape, (std::vector<int64_t>{1, 28, 28}));
  EXPECT_EQ(first_labels(*train), (std::vector<int64_t>{5, 0, 4, 1, 9}));
  EXPECT_EQ(first_labels(*test), (std::vector<int64_t>{7, 2, 1, 0, 4}));
  Summary summary = summarize(*test);
  EXPECT_EQ(summary.class_counts, (std::vector<int64_t>{980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009}));
  EXPECT_DOUBLE_EQ(summary.features[0].raw.finite.high(), 255);
  EXPECT_DOUBLE_EQ(summary.features[0].values.finite.high(), 1);
  EXPECT_NEAR(summary.features[0].values.finite.mean(), 0.1325, 1e-4);
  auto all = open("mnist:all");
  EXPECT_EQ(all->size(), 70000);
  EXPECT_TRUE(
      at::equal(all->read(std::vector<int64_t>{60001}).inputs[0], test->read(std::vector<int64_t>{1}).inputs[0]));
  EXPECT_EQ(open("mnist:test,scale=1")->read(range(9)).inputs[0].max().item<float>(), 255);
}

TEST(RealData, FashionMnist) {
  NEEDS("fashion-mnist");
  Summary summary = summarize(*open("fashion-mnist:test"));
  EXPECT_EQ(summary.class_counts, std::vector<int64_t>(10, 1000));
  EXPECT_EQ(summary.classes[9], "Ankle boot");
}

TEST(RealData, Cifar10) {
  NEEDS("cifar10");
  auto test = open("cifar10");
  EXPECT_EQ(test->info().features[0].shape, (std::vector<int64_t>{3, 32, 32}));
  Summary summary = summarize(*test);
  EXPECT_EQ(summary.classes[3], "cat");
  EXPECT_EQ(std::set<int64_t>(summary.class_counts.begin(), summary.class_counts.end()).size(), 1u);  // balanced
  const double means[] = {0.4914, 0.4822, 0.4465}, deviations[] = {0.2470, 0.2435, 0.2616};
  for (size_t c = 0; c < 3; ++c) {
    EXPECT_NEAR(summary.features[0].channels[c].finite.mean(), means[c], 0.01);
    EXPECT_NEAR(summary.features[0].channels[c].finite.deviation(), deviations[c], 0.01);
  }
}

TEST(RealData, Adult) {
  NEEDS("adult:all");
  auto train = open("adult:train"), test = open("adult");
  EXPECT_EQ(train->size(), 32561);
  EXPECT_EQ(test->size(), 16281);
  EXPECT_EQ(train->info().features[0].shape, (std::vector<int64_t>{108}));
  EXPECT_EQ(test->info().features[0].columns, train->info().features[0].columns);
  EXPECT_EQ(test->info().classes, (std::vector<std::string>{"<=50K", ">50K"}));
  EXPECT_EQ(summarize(*train).class_counts, (std::vector<int64_t>{24720, 7841}));
  EXPECT_EQ(summarize(*test).class_counts, (std::vector<int64_t>{12435, 3846}));
  EXPECT_EQ(test->groups(0), (std::vector<std::string>{"Male", "Black"}));
  EXPECT_EQ(open("adult:all")->size(), 32561 + 16281);
  EXPECT_EQ(open("adult,drop=sex:race")->info().features[0].shape, (std::vector<int64_t>{101}));
}

TEST(RealData, ReviewSentences) {
  NEEDS("rt-polarity");
  auto train = open("rt-polarity:train"), test = open("rt-polarity"), all = open("rt-polarity:all");
  EXPECT_EQ(train->size() + test->size(), 10662);
  EXPECT_EQ(summarize(*test).class_counts, (std::vector<int64_t>{533, 533}));
  EXPECT_EQ(train->info().features[0].shape, (std::vector<int64_t>{56}));
  EXPECT_EQ(train->info().features[0].vocabulary, test->info().features[0].vocabulary);
  std::set<std::string> words, sentences;
  size_t longest = 0;
  for (int64_t i = 0; i < all->size(); ++i) {
    std::vector<std::string> cleaned = words_of(clean_sentence(all->display(i).text), false);
    longest = std::max(longest, cleaned.size());
    words.insert(cleaned.begin(), cleaned.end());
  }
  EXPECT_EQ(longest, 56u);
  EXPECT_EQ(words.size(), 18764u);  // both as the regular expressions of those scripts give them in Python
  EXPECT_EQ(summarize(*train).features[0].unknown_ids, 0);
}

TEST(RealData, DrivingFramesAsPillowResizesThem) {
  const char* root = std::getenv("NETMEND_DATA");
  if (!root) GTEST_SKIP() << "NETMEND_DATA is not set";
  std::string frames = std::string(root) + "/driving/center",
              small = std::string(root) + "/driving/center_100x100_rgb.idx4-ubyte.gz";
  if (!std::filesystem::exists(small)) GTEST_SKIP() << small << " is not there";
  at::Tensor pillow = open("idx:" + small)->read(range(8)).inputs[0];
  at::Tensor ours = open("images:" + frames + ",resize=100x100,layout=NHWC")->read(range(8)).inputs[0];
  EXPECT_LE((pillow - ours).abs().max().item<float>(), 1);
}

TEST(Locate, SaysWhereItLookedAndWhatToDo) {
  TemporaryFolder empty;
  const char* before = std::getenv("NETMEND_DATA");
  std::string kept = before ? before : "";
  ::setenv("NETMEND_DATA", empty.path().c_str(), 1);
  std::string error = error_of([] { data_missing("mnist", "some file"); });
  std::vector<std::string> folders = data_folders("mnist");
  before ? ::setenv("NETMEND_DATA", kept.c_str(), 1) : ::unsetenv("NETMEND_DATA");
  EXPECT_EQ(folders.front(), empty.path() + "/mnist");
  EXPECT_TRUE(mentions(error, empty.path() + "/mnist"));
  EXPECT_TRUE(mentions(error, "some file"));
  EXPECT_TRUE(mentions(error, "set NETMEND_DATA"));
}

TEST(Glyphs, AreTheSameForTheSameSeed) {
  auto one = open("glyphs:train"), two = open("glyphs:train,seed=42"), other = open("glyphs:train,seed=7");
  at::Tensor x = one->read(range(50)).inputs[0];
  EXPECT_TRUE(at::equal(x, two->read(range(50)).inputs[0]));
  EXPECT_FALSE(at::equal(x, other->read(range(50)).inputs[0]));
  EXPECT_TRUE(at::equal(x[7], two->read(std::vector<int64_t>{7}).inputs[0][0]));
  EXPECT_FALSE(at::equal(x[0], open("glyphs:test")->read(range(1)).inputs[0][0]));
  auto all = open("glyphs:all"), test = open("glyphs");
  EXPECT_TRUE(at::equal(all->read(std::vector<int64_t>{one->size() + 3}).inputs[0],
                        test->read(std::vector<int64_t>{3}).inputs[0]));
}

TEST(Glyphs, AreBalancedAndInked) {
  Summary summary = summarize(*open("glyphs:test"));
  EXPECT_EQ(summary.class_counts, std::vector<int64_t>(10, 400));
  EXPECT_GT(summary.features[0].values.finite.mean(), 0.05);
  EXPECT_LT(summary.features[0].values.finite.mean(), 0.25);
  EXPECT_EQ(summary.features[0].feature.shape, (std::vector<int64_t>{1, 28, 28}));
}

TEST(Glyphs, ManyThreadsDrawTheSame) {
  auto shared = open("glyphs:test"), alone = open("glyphs:test");
  at::Tensor expected = alone->read(range(400)).inputs[0];
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] { wrong += !at::equal(shared->read(range(400)).inputs[0], expected); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Summary, CountsWhatIsNoNumber) {
  TemporaryFolder folder;
  const float nan = NAN, infinite = INFINITY;
  std::string x = folder.write("x.npy", npy_bytes("<f4", "(2, 3)", raw_bytes<float>({1, nan, 3, infinite, 5, 7})));
  std::string y = folder.write("y.npy", npy_bytes("<f4", "(2,)", raw_bytes<float>({0.5, 1.5})));
  Summary summary = summarize(*open("npy:" + x + ",y=" + y + ",kind=number,scale=2,mean=1"));
  const ValueSummary &after = summary.features[0].values, &raw = summary.features[0].raw;
  EXPECT_EQ(after.nan, 1);
  EXPECT_EQ(after.infinite, 1);
  EXPECT_EQ(after.finite.count(), 4);
  EXPECT_DOUBLE_EQ(after.finite.low(), 1);
  EXPECT_DOUBLE_EQ(after.finite.high(), 13);
  EXPECT_DOUBLE_EQ(raw.finite.low(), 1);
  EXPECT_DOUBLE_EQ(raw.finite.high(), 7);
  EXPECT_DOUBLE_EQ(raw.finite.mean(), 4);
  EXPECT_DOUBLE_EQ(summary.label_values.finite.mean(), 1);
}

}  // namespace
}  // namespace netmend::dataset
