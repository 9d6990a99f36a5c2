#include <ATen/ATen.h>

#include <cmath>
#include <numeric>
#include <set>

#include "base/text.h"
#include "dataset/dataset.h"
#include "dataset/table.h"
#include "dataset/test_files.h"
#include "dataset/words.h"

namespace netmend::dataset {
namespace {

std::vector<Row> rows_of(const std::string& text, TableFormat format = {}) {
  std::vector<Row> rows;
  Table table(bytes_of("f.csv", {text.begin(), text.end()}), format);
  table.for_all([&](int64_t, const Row& row) { rows.push_back(row); });
  return rows;
}

std::vector<int64_t> range(int64_t count) {
  std::vector<int64_t> out(static_cast<size_t>(count));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

TEST(Table, QuotesBlanksAndEnds) {
  EXPECT_EQ(rows_of("a,b\n1, x y \n"), (std::vector<Row>{{"1", "x y"}}));
  EXPECT_EQ(rows_of("a,b\r\n1,2\r\n\r\n3,4"), (std::vector<Row>{{"1", "2"}, {"3", "4"}}));
  EXPECT_EQ(rows_of("a,b\n\"x, \"\"y\"\"\nz\", 2\n3,\n"), (std::vector<Row>{{"x, \"y\"\nz", "2"}, {"3", ""}}));
  EXPECT_EQ(rows_of("\xef\xbb\xbf\"a\",b\n 5\" tall,2\n"), (std::vector<Row>{{"5\" tall", "2"}}));
  EXPECT_EQ(rows_of("a\tb\n1\t\n", {'\t'}), (std::vector<Row>{{"1", ""}}));
  EXPECT_EQ(rows_of("A11  6 x \n B 7 y\n", {' ', false}), (std::vector<Row>{{"A11", "6", "x"}, {"B", "7", "y"}}));
  EXPECT_EQ(rows_of("one, two\n\nthree\n", {0, false, true, 0, false}),
            (std::vector<Row>{{"one, two"}, {""}, {"three"}}));
  EXPECT_EQ(rows_of("|remark\n1,2\n", {',', false, false, '|'}), (std::vector<Row>{{"1", "2"}}));
}

TEST(Table, TellsTheLineOfARaggedRow) {
  EXPECT_TRUE(
      mentions(error_of([] { rows_of("a,b\n1,2\n\n1,2,3\n"); }), "f.csv, line 4 has 3 values, the first line has 2"));
  EXPECT_TRUE(mentions(error_of([] { rows_of("a,b\n\"x\ny\",2\n7\n"); }), "line 4 has 1 value,"));
  EXPECT_TRUE(mentions(error_of([] { rows_of("a,b\n"); }), "no rows"));
  EXPECT_TRUE(mentions(error_of([] { rows_of(""); }), "no rows"));
  EXPECT_TRUE(
      mentions(error_of([] { rows_of("a,b\n1,\"never closed\n2,3\n4,5"); }), "no error"));  // the rest is one value
}

TEST(Table, RowsLongerThanTheWindow) {
  std::string text = "a,b\n";
  for (int i = 0; i < 5; ++i) text += std::string(700000, char('p' + i)) + ",\"" + std::string(900000, '\n') + "\"\n";
  std::vector<Row> rows = rows_of(text);
  ASSERT_EQ(rows.size(), 5u);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(rows[size_t(i)][0], std::string(700000, char('p' + i)));
  Table table(bytes_of("f", {text.begin(), text.end()}), {});
  EXPECT_EQ(table.where(1), "f, line 900003");
}

TEST(Table, ColumnsWithoutNamesOrWithEqualOnes) {
  Table numbered(bytes_of("f", {'1', ',', '2'}), {',', false});
  EXPECT_EQ(numbered.columns(), (std::vector<std::string>{"1", "2"}));
  std::string text = "x,x,x\n1,2,3\n";
  Table twice(bytes_of("f", {text.begin(), text.end()}), {});
  EXPECT_EQ(twice.columns(), (std::vector<std::string>{"x", "x.1", "x.2"}));
}

const char* const kPeople =
    "age,job,sex,income\n"
    "30,cook,f,high\n"
    "40,?,m,low\n"
    "?,smith,f,low\n"
    "50,cook,m,high\n";

TEST(Csv, NumbersAndCategories) {
  TemporaryFolder folder;
  std::string path = folder.write("p.csv.gz", gzipped(kPeople));
  auto data = open("csv:" + path + ",label=income");
  EXPECT_EQ(data->info().features[0].columns,
            (std::vector<std::string>{"age", "job=?", "job=cook", "job=smith", "sex=f", "sex=m"}));
  EXPECT_EQ(data->info().classes, (std::vector<std::string>{"high", "low"}));
  Batch batch = data->read(range(4));
  const double deviation = std::sqrt(200 / 3.0);
  at::Tensor expected = at::tensor({-10 / deviation, 0., 1., 0., 1., 0., 0., 1., 0., 0., 0., 1., 0., 0., 0., 1., 1., 0.,
                                    10 / deviation,  0., 1., 0., 0., 1.})
                            .view({4, 6});
  EXPECT_TRUE(at::allclose(batch.inputs[0], expected.to(at::kFloat), 1e-5, 1e-6));
  EXPECT_TRUE(at::equal(batch.labels, at::tensor({0, 1, 1, 0}, at::kLong)));
  EXPECT_EQ(data->display(1).text, "age=40 job=? sex=m income=low");
  using Values = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(data->display(1).values, (Values{{"age", "40"}, {"job", "?"}, {"sex", "m"}})) << "without the label";
}

TEST(Csv, FittedOnTheTrainingFile) {
  TemporaryFolder folder;
  std::string train = folder.write("train.csv", kPeople);
  std::string test = folder.write("test.csv", "job,sex,age,income\nbaker,f,60,low\ncook,?,?,high\n");
  auto data = open("csv:" + test + ",label=income,train=" + train);
  EXPECT_EQ(data->info().features[0].shape, (std::vector<int64_t>{6}));
  at::Tensor x = data->read(range(2)).inputs[0];
  EXPECT_NEAR(x[0][0].item<float>(), 20 / std::sqrt(200 / 3.0), 1e-5);
  EXPECT_EQ(x.slice(1, 1, 4).sum().item<float>(), 1);  // baker is new: no category
  EXPECT_EQ(x[1][0].item<float>(), 0);
  std::string odd = folder.write("odd.csv", "job,sex,age,income\ncook,f,old,low\n");
  EXPECT_TRUE(mentions(error_of([&] { open("csv:" + odd + ",label=income,train=" + train)->read(range(1)); }),
                       "odd.csv, line 2"));
  std::string strange = folder.write("strange.csv", "job,sex,age,income\ncook,f,3,middling\n");
  EXPECT_TRUE(mentions(error_of([&] { open("csv:" + strange + ",label=income,train=" + train); }), "middling"));
}

TEST(Csv, GroupsAreKeptAside) {
  TemporaryFolder folder;
  std::string path = folder.write("p.csv", kPeople);
  auto aside = open("csv:" + path + ",label=income,groups=sex");
  EXPECT_EQ(aside->groups(1), (std::vector<std::string>{"m"}));
  EXPECT_EQ(aside->info().features[0].columns, (std::vector<std::string>{"age", "job=?", "job=cook", "job=smith"}));
  auto both = open("csv:" + path + ",label=income,groups=sex,columns=sex:age,standardize=no");
  EXPECT_EQ(both->info().features[0].columns, (std::vector<std::string>{"sex=f", "sex=m", "age"}));
  EXPECT_EQ(both->read(range(1)).inputs[0][0][2].item<float>(), 30);
  auto scaled = open("csv:" + path + ",columns=age,scale=0.1,mean=3,std=2");
  EXPECT_FLOAT_EQ(scaled->read(std::vector<int64_t>{3}).inputs[0].item<float>(), (5 - 3) / 2.f);
  auto words = open("csv:" + path + ",columns=age,categories=age,id=job");
  EXPECT_EQ(words->info().features[0].columns, (std::vector<std::string>{"age=30", "age=40", "age=50", "age=?"}));
  EXPECT_EQ(words->id(2), "smith");
  auto number = open("csv:" + path + ",columns=sex,label=income,classes=low:high");
  EXPECT_TRUE(at::equal(number->read(range(4)).labels, at::tensor({1, 0, 0, 1}, at::kLong)));
}

TEST(Csv, ColumnsFromTheirLeastToTheirLargestValue) {
  TemporaryFolder folder;
  std::string train = folder.write("train.csv", "a,b,y\n2,7,0\n10,7,1\n6,7,0\n");
  std::string test = folder.write("test.csv", "a,b,y\n4,8,0\n12,7,1\n");
  auto data = open("csv:" + test + ",label=y,train=" + train + ",standardize=minmax");
  EXPECT_TRUE(at::equal(data->read(range(2)).inputs[0], at::tensor({0.25f, 1.f, 1.25f, 0.f}).view({2, 2})));
  EXPECT_TRUE(mentions(error_of([&] { open("csv:" + test + ",label=y,standardize=maybe"); }), "neither yes nor no"));
  EXPECT_TRUE(mentions(error_of([&] { open("csv:" + test + ",label=y,per_image=yes"); }), "is a table"));
}

TEST(Csv, MistakesAreNamed) {
  TemporaryFolder folder;
  std::string path = folder.write("p.csv", kPeople);
  auto error = [&](const std::string& options) {
    return error_of([&] { open("csv:" + path + options)->read(range(4)); });
  };
  EXPECT_TRUE(mentions(error(",label=incom"), "did you mean income?"));
  EXPECT_TRUE(mentions(error(",drop=jop"), "did you mean job?"));
  EXPECT_TRUE(mentions(error(",label=age"), "line 4 (sample 2)"));
  EXPECT_TRUE(mentions(error(",label=income,kind=number"), "not a number"));
  EXPECT_TRUE(mentions(error(",label=income,classes=low:hi"), "'high'"));
  EXPECT_TRUE(mentions(error(",resize=3x3"), "images"));
  EXPECT_TRUE(mentions(error(",sep=both"), "sep=both"));
  EXPECT_TRUE(mentions(error(",columns=age,mean=1:2:3"), "the number of numeric columns is 1"));
  std::string fractions = folder.write("f.csv", "a,y\n1,0\n2,0.5\n");
  EXPECT_TRUE(mentions(error_of([&] { open("csv:" + fractions + ",label=y"); }), "kind=number"));
  std::string names = "who,note,y\n";
  for (int i = 0; i < 1200; ++i) names += fmt::format("n{0},r{0},1\n", i);
  std::string wordy = error_of([&] { open("csv:" + folder.write("n.csv", names) + ",label=y"); });
  EXPECT_TRUE(mentions(wordy, "drop=who:note"));
}

TEST(Words, CleaningAsInKimsScripts) {
  EXPECT_EQ(clean_sentence("It's the film's best - don't MISS it! (really?)"),
            "it 's the film 's best do n't miss it ! ( really ? )");
  EXPECT_EQ(clean_sentence("na\xc3\xafve\ttale"), "na ve tale");
  EXPECT_EQ(clean_sentence("we'll they've you're I'd"), "we 'll they 've you 're i 'd");
}

TEST(Text, LabelsVocabularyAndPadding) {
  TemporaryFolder folder;
  std::string path = folder.write("t.tsv", "label\ttext\nbad\tA dull Film\ngood\ta fine , fine film indeed\n");
  auto data = open("text:" + path + ",label=label");
  const Feature& feature = data->info().features[0];
  EXPECT_EQ(feature.shape, (std::vector<int64_t>{6}));
  EXPECT_EQ(feature.vocabulary, 2 + 6);
  Batch batch = data->read(range(2));
  EXPECT_EQ(batch.inputs[0].scalar_type(), at::kLong);
  // Twice each: a, film, fine; once: "," dull, indeed.
  EXPECT_TRUE(at::equal(batch.inputs[0], at::tensor({2, 6, 3, 0, 0, 0, 2, 4, 5, 4, 3, 7}, at::kLong).view({2, 6})));
  EXPECT_TRUE(at::equal(batch.masks[0].sum(1), at::tensor({3, 6}, at::kLong)));
  EXPECT_TRUE(at::equal(batch.labels, at::tensor({0, 1}, at::kLong)));
  EXPECT_EQ(data->display(1).text, "a fine , fine film indeed");
  std::string vocab = folder.write("vocab.txt", "film\na\n");
  Batch known = open("text:" + path + ",label=label,vocab=" + vocab + ",length=3,lower=no")->read(range(2));
  EXPECT_TRUE(at::equal(known.inputs[0], at::tensor({1, 1, 1, 3, 1, 1}, at::kLong).view({2, 3})));
  std::string bert = folder.write("bert.txt", "[PAD]\nx\n[UNK]\nfilm\n");
  auto with_bert = open("text:" + path + ",label=label,vocab=" + bert + ",length=4");
  EXPECT_EQ(with_bert->info().features[0].unknown, 2);
  EXPECT_TRUE(at::equal(with_bert->read(range(1)).inputs[0], at::tensor({2, 2, 3, 0}, at::kLong).view({1, 4})));
  EXPECT_TRUE(mentions(error_of([&] { open("text:" + path + ",label=label,scale=2"); }), "scale="));
  EXPECT_TRUE(mentions(
      error_of([&] { open("text:" + path + ",label=label,vocab=" + folder.write("v", "<pad>\na\n")); }), "<unk>"));
}

TEST(Text, ASentenceALine) {
  TemporaryFolder folder;
  auto data = open("text:" + folder.write("t.txt", "one, two\n\nthree\r\n") + ",length=2");
  EXPECT_EQ(data->size(), 3);
  EXPECT_EQ(data->info().labels, LabelKind::kNone);
  Batch batch = data->read(range(3));
  EXPECT_FALSE(batch.labels.defined());
  EXPECT_TRUE(at::equal(batch.masks[0].sum(1), at::tensor({2, 0, 1}, at::kLong)));
  EXPECT_EQ(data->display(2).text, "three");
}

}  // namespace
}  // namespace netmend::dataset
