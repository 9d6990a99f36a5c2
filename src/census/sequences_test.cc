// Near-duplicates among sequences of tokens: planted ones are found, ids that are near as numbers are not.
#include "census/sequences.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "census/near_duplicates.h"
#include "dataset/memory_dataset.h"

namespace netmend::census {
namespace {

using Tokens = std::vector<int64_t>;

TEST(Sequences, EditsAreCounted) {
  const Tokens a{1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  EXPECT_EQ(edit_distance(a, a, 3), 0);
  EXPECT_EQ(edit_distance(a, Tokens{1, 2, 3, 4, 5, 6, 7, 8, 9}, 3), 1);
  EXPECT_EQ(edit_distance(a, Tokens{1, 2, 30, 4, 5, 6, 7, 8, 9, 10, 11}, 3), 2);
  EXPECT_EQ(edit_distance(a, Tokens{10, 9, 8, 7, 6, 5, 4, 3, 2, 1}, 3), 4) << "more than asked for";
  EXPECT_EQ(edit_distance(Tokens{}, Tokens{}, 3), 0);
  EXPECT_DOUBLE_EQ(alike_sequences(a, Tokens{1, 2, 30, 4, 5, 6, 7, 8, 9, 10}), 0.9);
  EXPECT_EQ(alike_sequences(a, Tokens{1, 2, 30, 40, 5, 6, 7, 8, 9, 10}), 0);
  EXPECT_EQ(alike_sequences(Tokens{1, 2, 3}, Tokens{1, 2, 4}), 0) << "short ones are alike by chance";
  EXPECT_EQ(alike_sequences(Tokens{}, Tokens{}), 1);
}

/// Texts of a few common words and many rare ones, padded with 0; the last of the second half repeat the first half.
at::Tensor texts(int64_t count, uint64_t seed) {
  Random random(seed);
  at::Tensor ids = at::zeros({count, 30}, at::kLong);
  for (int64_t i = 0; i < count; ++i)
    for (int64_t t = 0; t < int64_t(10 + random.below(20)); ++t)
      ids[i][t] = int64_t(random.uniform() < 0.5 ? 1 + random.below(20) : 20 + random.below(5000));
  return ids;
}

NearSearch search(const at::Tensor& x, const at::Tensor& y, at::ScalarType type) {
  dataset::Feature feature = dataset::text_feature(30);
  feature.type = type, feature.pad = type == at::kLong ? 0 : -1;
  const dataset::MemoryDataset a(feature, x.to(type), at::zeros({x.size(0)}, at::kLong), {"no", "yes"}),
      b(feature, y.to(type), at::zeros({y.size(0)}, at::kLong), {"no", "yes"});
  const Census of_a(a), of_b(b);
  return near_duplicates(*take(a, of_a, 1), a, *take(b, of_b, 1), b, 1);
}

TEST(Sequences, OneWordReplacedIsFoundAndUnrelatedTextsAreNot) {
  for (const at::ScalarType type : {at::kLong, at::kFloat}) {  // ids that a file stores as numbers are ids
    at::Tensor x = texts(400, 1), y = texts(600, 2);
    EXPECT_TRUE(search(x, y, type).pairs.empty());
    for (int64_t i = 0; i < 25; ++i) x[i] = y[100 + i], x[i][3] = 4999;
    const NearSearch found = search(x, y, type);
    ASSERT_EQ(found.pairs.size(), 25u);
    for (size_t i = 0; i < found.pairs.size(); ++i) {
      EXPECT_EQ(found.pairs[i].sample, int64_t(i));
      EXPECT_EQ(found.pairs[i].other, int64_t(100 + i));
      EXPECT_LT(found.pairs[i].alike, 1);
    }
  }
}

TEST(Sequences, IdsThatAreNearAsNumbersAreOtherWords) {
  at::Tensor x = texts(300, 3);
  EXPECT_TRUE(search(x + (x > 0).to(at::kLong), x, at::kFloat).pairs.empty()) << "every id is one more";
}

}  // namespace
}  // namespace netmend::census
