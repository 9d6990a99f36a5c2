#include "dataset/spec.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "dataset/preprocess.h"

namespace netmend::dataset {
namespace {

std::string error_of(const std::string& text) {
  try {
    parse_spec(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Spec, TakesNamesAndKindsApart) {
  Spec name = parse_spec("mnist:test,limit=100,scale=1");
  EXPECT_EQ(name.head, "mnist");
  EXPECT_EQ(name.rest, "test");
  EXPECT_TRUE(name.is_name());
  EXPECT_EQ(name.options.at("limit"), "100");
  Spec kind = parse_spec("npz:some/test.npz,x=ids:mask,y=labels");
  EXPECT_EQ(kind.rest, "some/test.npz");
  EXPECT_FALSE(kind.is_name());
  EXPECT_EQ(kind.options.at("x"), "ids:mask");
  EXPECT_EQ(spec_text(kind), "npz:some/test.npz,x=ids:mask,y=labels");
  EXPECT_EQ(parse_spec("idx:C:odd:path").rest, "C:odd:path");
}

TEST(Spec, QuotesHoldCommasAndColons) {
  Spec spec = parse_spec("csv:\"a,b \\\"c\\\".csv\",label=\"x,y\",classes=\"a:b\":c,train=plain.csv");
  EXPECT_EQ(spec.rest, "a,b \"c\".csv");
  EXPECT_EQ(spec.options.at("label"), "x,y");
  EXPECT_EQ(spec.options.at("train"), "plain.csv");
  EXPECT_EQ(split_list(spec.options.at("classes")), (std::vector<std::string>{"a:b", "c"}));
  Spec again = parse_spec(spec_text(spec));
  EXPECT_EQ(again.rest, spec.rest);
  EXPECT_EQ(again.options, spec.options);
  for (const std::vector<std::string>& items :
       {std::vector<std::string>{"a"}, {"a:b", "c,d", "e\"f", "g\\h"}, {"", "x"}})
    EXPECT_EQ(split_list(join_list(items)), items);
  EXPECT_THROW(parse_spec("csv:\"a.csv"), InputError);
}

TEST(Spec, SuggestsWhatWasMeant) {
  EXPECT_NE(error_of("mnits").find("did you mean mnist?"), std::string::npos);
  EXPECT_NE(error_of("mnist:tset").find("did you mean test?"), std::string::npos);
  EXPECT_NE(error_of("mnist,limt=3").find("did you mean limit?"), std::string::npos);
  EXPECT_NE(error_of("npz:a.npz,labels=y").find("choose from x, y"), std::string::npos);
}

TEST(Spec, RefusesWhatMeansNothing) {
  for (const char* text : {"", "mnist,", "mnist,limit", "mnist,limit=", "mnist,=3", "mnist,limit=1,limit=2", "npz",
                           "npz:", ":test", ",", "mnist:test:train", "glyphs,labels=x"})
    EXPECT_NE(error_of(text), "") << text;
}

TEST(Spec, ANameStandsForBothParts) {
  Splits both = parse_splits("glyphs,seed=7");
  ASSERT_TRUE(both.train && both.test);
  EXPECT_EQ(both.train->text, "glyphs:train,seed=7");
  EXPECT_EQ(both.test->text, "glyphs:test,seed=7");
  Splits one = parse_splits("glyphs:train");
  EXPECT_FALSE(one.train);
  EXPECT_EQ(one.test->rest, "train");
  EXPECT_FALSE(parse_splits("npz:a.npz").train);
}

TEST(Preprocess, ReadsAllKeysAndWritesThemBack) {
  std::map<std::string, std::string> options = {{"scale", "1/255"}, {"mean", "0.491:0.482:0.447"},
                                                {"std", "0.25"},    {"layout", "NHWC"},
                                                {"color", "BGR"},   {"resize", "256"},
                                                {"crop", "224"},    {"filter", "bicubic"},
                                                {"antialias", "no"}};
  Preprocess read = parse_preprocess(options);
  EXPECT_DOUBLE_EQ(*read.scale, 1 / 255.0);
  EXPECT_EQ(read.mean.size(), 3u);
  EXPECT_EQ(read.resize->shorter, 256);
  EXPECT_EQ(read.resize->crop, 224);
  EXPECT_EQ(options_of(read), options);
  EXPECT_EQ(parse_preprocess(options_of(read)), read);
  Preprocess exact = parse_preprocess({{"resize", "32x48"}, {"scale", "0.0039"}, {"unrelated", "x"}});
  EXPECT_EQ(exact.resize->height, 32);
  EXPECT_EQ(exact.resize->width, 48);
  EXPECT_EQ(parse_preprocess(options_of(exact)), exact);
  EXPECT_TRUE(parse_preprocess({}).empty());
  EXPECT_TRUE(options_of({}).empty());
}

TEST(Preprocess, RefusesWhatCannotBe) {
  using Options = std::map<std::string, std::string>;
  for (const Options& options : std::vector<Options>{{{"scale", "1/0"}},
                                                     {{"scale", "0"}},
                                                     {{"scale", "nan"}},
                                                     {{"mean", "a:b"}},
                                                     {{"std", "0"}},
                                                     {{"std", "0.2:-1"}},
                                                     {{"layout", "CHWN"}},
                                                     {{"color", "RBG"}},
                                                     {{"resize", "0x3"}},
                                                     {{"resize", "99999999x3"}},
                                                     {{"resize", "x"}},
                                                     {{"resize", "32x32"}, {"crop", "3"}},
                                                     {{"resize", "32"}, {"crop", "33"}},
                                                     {{"crop", "3"}},
                                                     {{"filter", "bilinear"}},
                                                     {{"resize", "8x8"}, {"filter", "cubic"}},
                                                     {{"resize", "8x8"}, {"antialias", "maybe"}}})
    EXPECT_THROW(parse_preprocess(options), InputError) << options.begin()->second;
}

}  // namespace
}  // namespace netmend::dataset
