#include <ATen/ATen.h>
#include <c10/util/Half.h>

#include <cmath>
#include <numeric>

#include "dataset/array_dataset.h"
#include "dataset/dataset.h"
#include "dataset/test_files.h"

namespace netmend::dataset {
namespace {

std::vector<int64_t> range(int64_t count, int64_t first = 0) {
  std::vector<int64_t> out(static_cast<size_t>(count));
  std::iota(out.begin(), out.end(), first);
  return out;
}

std::vector<float> floats(const at::Tensor& tensor) {
  at::Tensor flat = tensor.to(at::kFloat).contiguous();
  return {flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel()};
}

std::string pixels(int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += char(i * 7);
  return out;
}

TEST(Idx, ImagesAndLabels) {
  TemporaryFolder folder;
  std::string images = folder.write("i", idx_bytes(8, {3, 2, 2}, pixels(12)));
  std::string labels = folder.write("l.gz", gzipped(idx_bytes(8, {3}, {4, 0, 2})));
  auto data = open("idx:" + images + ",labels=" + labels + ",scale=1/255");
  EXPECT_EQ(data->size(), 3);
  EXPECT_EQ(data->info().features[0].shape, (std::vector<int64_t>{1, 2, 2}));
  EXPECT_TRUE(data->info().features[0].image);
  EXPECT_EQ(data->info().classes.size(), 5u);
  EXPECT_EQ(data->info().files, (std::vector<std::string>{images, labels}));
  Batch batch = data->read(std::vector<int64_t>{2, 0, 1});
  EXPECT_EQ(batch.inputs[0].sizes(), (at::IntArrayRef{3, 1, 2, 2}));
  EXPECT_FLOAT_EQ(batch.inputs[0][0][0][0][1].item<float>(), 9 * 7 / 255.f);
  EXPECT_EQ(floats(batch.labels), (std::vector<float>{2, 4, 0}));
  EXPECT_EQ(batch.samples, (std::vector<int64_t>{2, 0, 1}));
  Display display = data->display(1);
  EXPECT_EQ(display.kind, Display::kImage);
  EXPECT_EQ(display.pixels, (std::vector<uint8_t>{28, 35, 42, 49}));
}

/// Rows that are images in truth: read in the order that the spec names, whatever shape the file gives them.
TEST(Arrays, RowsAreReadInTheShapeOfTheSpec) {
  TemporaryFolder folder;
  std::string path = folder.write("i", idx_bytes(8, {5, 12}, pixels(60)));
  const at::Tensor rows = open("idx:" + path)->read(range(5)).inputs[0];
  ASSERT_EQ(rows.sizes(), (at::IntArrayRef{5, 12}));
  auto read = [&](const std::string& options) { return open("idx:" + path + options)->read(range(5)).inputs[0]; };
  EXPECT_TRUE(at::equal(read(",shape=3x2x2"), rows.view({5, 3, 2, 2})));
  EXPECT_TRUE(at::equal(read(",shape=2x2x3"), rows.view({5, 2, 2, 3})));
  EXPECT_TRUE(at::equal(read(",shape=2x2x3,layout=NCHW"), rows.view({5, 2, 2, 3}).permute({0, 3, 1, 2})));
  EXPECT_TRUE(at::equal(read(",shape=3x2x2,layout=NHWC"), rows.view({5, 3, 2, 2}).permute({0, 2, 3, 1})));
  EXPECT_TRUE(at::equal(read(",shape=3x4,layout=NCWH"), rows.view({5, 1, 3, 4}).transpose(2, 3)));
  auto refused = [&](const std::string& options, const std::string& why) {
    EXPECT_TRUE(mentions(error_of([&] { read(options); }), why)) << options;
  };
  refused(",shape=3x2x3", "18 values");
  refused(",shape=12", "not the shape of an image");
  refused(",shape=3xx4", "not the shape of an image");
  refused(",shape=2x3x2", "must come first or last");
  EXPECT_TRUE(mentions(error_of([] { open("glyphs:test,shape=28x28"); }), "shape of its own"));
}

/// As TensorFlow's per_image_standardization.
TEST(Arrays, EachImageByItsOwnMeanAndDeviation) {
  TemporaryFolder folder;
  std::string values = pixels(32);
  for (int i = 16; i < 32; ++i) values[size_t(i)] = 9;  // a uniform image
  std::string path = folder.write("i", idx_bytes(8, {2, 4, 4}, values));
  const at::Tensor raw = open("idx:" + path)->read(range(2)).inputs[0].flatten(1);
  const at::Tensor made = open("idx:" + path + ",per_image=yes")->read(range(2)).inputs[0].flatten(1);
  EXPECT_TRUE(at::allclose(made[0], (raw[0] - raw[0].mean()) / raw[0].std(false), 1e-4, 1e-5));
  EXPECT_TRUE(at::equal(made[1], at::zeros({16})));
  const std::string flat = folder.write("flat", idx_bytes(8, {2, 16}, values));
  EXPECT_TRUE(at::equal(open("idx:" + flat + ",per_image=yes")->read(range(2)).inputs[0], made));
  EXPECT_TRUE(
      mentions(error_of([&] { open("idx:" + path + ",per_image=yes,mean=0.5"); }), "cannot be combined with it"));
  const Preprocess kept = parse_preprocess({{"per_image", "yes"}, {"shape", "3x2x2"}});
  EXPECT_EQ(parse_preprocess(options_of(kept)), kept);
}

TEST(Idx, AllTypesAreRead) {
  TemporaryFolder folder;
  auto value_of = [&](uint8_t type, const std::string& bytes) {
    return open("idx:" + folder.write("f", idx_bytes(type, {1, 1}, bytes)) + ",type=float")
        ->read(range(1))
        .inputs[0]
        .item<float>();
  };
  EXPECT_EQ(value_of(0x08, "\xff"), 255);
  EXPECT_EQ(value_of(0x09, "\xff"), -1);
  EXPECT_EQ(value_of(0x0b, std::string("\xff\x00", 2)), -256);
  EXPECT_EQ(value_of(0x0c, big(uint32_t(-70000))), -70000);
  EXPECT_EQ(value_of(0x0d, std::string("\x3f\xc0\x00\x00", 4)), 1.5f);
  EXPECT_EQ(value_of(0x0e, std::string("\xbf\xf8\x00\x00\x00\x00\x00\x00", 8)), -1.5f);
}

TEST(Idx, HostileHeadersAreRefused) {
  TemporaryFolder folder;
  auto refused = [&](const std::string& bytes, const std::string& why) {
    std::string path = folder.write("f", bytes);
    EXPECT_TRUE(mentions(error_of([&] { open("idx:" + path); }), why));
    EXPECT_TRUE(mentions(error_of([&] { open("idx:" + path); }), path));
  };
  refused("", "not an IDX file");
  refused("PK\3\4", "not an IDX file");
  refused(idx_bytes(0x77, {1}, "x"), "type 0x77");
  refused(idx_bytes(8, {}, ""), "0 axes");
  refused(idx_bytes(8, {1, 2, 3, 4, 5, 6, 7, 8, 9}, ""), "9 axes");
  refused(std::string("\0\0\x08\x03\0\0", 6), "cut short");
  refused(idx_bytes(8, {3, 2, 2}, pixels(11)), "cut short");
  refused(idx_bytes(8, {0xffffffff, 0xffffffff, 0xffffffff}, "x"), "impossible shape");
  refused(idx_bytes(8, {0xffffffff}, "x"), "cut short");
  refused(idx_bytes(8, {0xffffffff, 0}, "x"), "without values");
  refused(idx_bytes(8, {0, 28, 28}, ""), "no samples");
  refused(gzipped(idx_bytes(8, {3, 2, 2}, pixels(12))).substr(0, 30), "cut short");
  std::string damaged = gzipped(idx_bytes(8, {3, 40, 40}, pixels(4800)));
  damaged[20] ^= 0x55;
  refused(damaged, "");
  EXPECT_TRUE(mentions(error_of([&] { open("idx:" + folder.path() + "/none"); }), "No such file"));
  EXPECT_TRUE(mentions(error_of([&] { open("idx:" + folder.path()); }), "folder"));
}

TEST(Idx, PreprocessingIsCarriedOut) {
  TemporaryFolder folder;
  std::string path = folder.write("f", idx_bytes(8, {2, 2, 2, 3}, pixels(24)));
  auto plain = open("idx:" + path)->read(range(2)).inputs[0];
  EXPECT_EQ(plain.sizes(), (at::IntArrayRef{2, 2, 2, 3}));
  auto moved = open("idx:" + path + ",layout=NCHW,color=BGR,scale=1/255,mean=0.1:0.2:0.3,std=0.5:0.25:0.125");
  EXPECT_EQ(moved->info().features[0].shape, (std::vector<int64_t>{3, 2, 2}));
  at::Tensor expected = plain.flip(3).permute({0, 3, 1, 2}) / 255;
  expected = (expected - at::tensor({0.1f, 0.2f, 0.3f}).view({1, 3, 1, 1})) /
             at::tensor({0.5f, 0.25f, 0.125f}).view({1, 3, 1, 1});
  EXPECT_TRUE(at::allclose(moved->read(range(2)).inputs[0], expected, 1e-5, 1e-6));
  at::Tensor planes = open("idx:" + path + ",layout=NCHW,mean=1:2:3")->read(range(2)).inputs[0];
  EXPECT_TRUE(at::equal(planes, plain.permute({0, 3, 1, 2}) - at::tensor({1.f, 2.f, 3.f}).view({1, 3, 1, 1})));
  EXPECT_EQ(open("idx:" + path + ",resize=5x4,layout=NCHW")->read(range(2)).inputs[0].sizes(),
            (at::IntArrayRef{2, 3, 5, 4}));
  at::Tensor sideways = open("idx:" + path + ",layout=NCWH")->read(range(2)).inputs[0];
  EXPECT_TRUE(at::equal(sideways, plain.permute({0, 3, 2, 1})));
  EXPECT_EQ(open("idx:" + path + ",resize=5x4,layout=NWHC")->read(range(2)).inputs[0].sizes(),
            (at::IntArrayRef{2, 5, 4, 3}));
  EXPECT_EQ(moved->display(0).pixels, (std::vector<uint8_t>{0, 7, 14, 21, 28, 35, 42, 49, 56, 63, 70, 77}));
  EXPECT_TRUE(mentions(error_of([&] { open("idx:" + path + ",mean=1:2"); }), "2 numbers"));
  std::string rows = folder.write("rows", idx_bytes(8, {2, 3}, pixels(6)));
  EXPECT_TRUE(mentions(error_of([&] { open("idx:" + rows + ",resize=2x2"); }), "not images"));
  EXPECT_EQ(floats(open("idx:" + rows + ",mean=0:7:14")->read(range(2)).inputs[0]),
            (std::vector<float>{0, 0, 0, 21, 21, 21}));
}

TEST(Labels, WhatCannotBeAClassIsNamed) {
  TemporaryFolder folder;
  std::string x = folder.write("x.npy", npy_bytes("<f4", "(3, 1)", raw_bytes<float>({1, 2, 3})));
  auto with = [&](const std::string& y, const std::string& options = "") {
    return open("npy:" + x + ",y=" + folder.write("y.npy", y) + options);
  };
  EXPECT_TRUE(mentions(error_of([&] {
                         with(npy_bytes("<i8", "(3,)", raw_bytes<int64_t>({0, -1, 1})));
                       }),
                       "sample 1 is -1"));
  EXPECT_TRUE(mentions(error_of([&] {
                         with(npy_bytes("<f4", "(3,)", raw_bytes<float>({0, 1, 0.5})));
                       }),
                       "sample 2 is 0.5"));
  EXPECT_TRUE(mentions(error_of([&] {
                         with(npy_bytes("<f4", "(3,)", raw_bytes<float>({0, NAN, 0})));
                       }),
                       "sample 1 is nan"));
  EXPECT_TRUE(mentions(error_of([&] {
                         with(npy_bytes("<i8", "(3,)", raw_bytes<int64_t>({0, 1, 1ll << 60})));
                       }),
                       "sample 2"));
  EXPECT_TRUE(mentions(error_of([&] {
                         with(npy_bytes("<i8", "(2,)", raw_bytes<int64_t>({0, 1})));
                       }),
                       "2 labels for 3 samples"));
  EXPECT_TRUE(mentions(error_of([&] {
                         with(npy_bytes("<i8", "(3,)", raw_bytes<int64_t>({0, 1, 2})), ",classes=a:b");
                       }),
                       "class numbers go up to 2"));
  auto numbers = with(npy_bytes("<f4", "(3,)", raw_bytes<float>({0.5, -1, 2})), ",kind=number");
  EXPECT_EQ(numbers->info().labels, LabelKind::kNumber);
  EXPECT_EQ(floats(numbers->read(range(3)).labels), (std::vector<float>{0.5, -1, 2}));
  auto one_hot = with(npy_bytes("|u1", "(3, 2)", {1, 0, 0, 1, 1, 0}));
  EXPECT_EQ(one_hot->info().labels, LabelKind::kClass);
  EXPECT_EQ(floats(one_hot->read(range(3)).labels), (std::vector<float>{0, 1, 0}));
  auto several = with(npy_bytes("|b1", "(3, 2)", {1, 1, 0, 0, 1, 0}), ",classes=red:round");
  EXPECT_EQ(several->info().labels, LabelKind::kMulti);
  EXPECT_EQ(several->info().label_width, 2);
  EXPECT_EQ(several->read(range(3)).labels.sizes(), (at::IntArrayRef{3, 2}));
  EXPECT_TRUE(mentions(error_of([&] {
                         with(npy_bytes("<f4", "(3, 2)", raw_bytes<float>({1, 2, 3, 4, 5, 6})));
                       }),
                       "kind=number"));
}

TEST(Npy, TypesOrdersAndVersions) {
  TemporaryFolder folder;
  auto values = [&](const std::string& bytes) {
    return floats(open("npy:" + folder.write("f.npy", bytes) + ",type=float")->read(range(2)).inputs[0]);
  };
  const std::vector<float> expected = {1, 2, 3, 4};
  for (int version : {1, 2, 3})
    EXPECT_EQ(values(npy_bytes("<f4", "(2, 2)", raw_bytes<float>({1, 2, 3, 4}), false, version)), expected);
  EXPECT_EQ(values(npy_bytes("<f8", "(2, 2)", raw_bytes<double>({1, 2, 3, 4}))), expected);
  EXPECT_EQ(values(npy_bytes("<i8", "(2L, 2L)", raw_bytes<int64_t>({1, 2, 3, 4}))), expected);
  EXPECT_EQ(values(npy_bytes("<i2", "(2,2)", raw_bytes<int16_t>({1, 2, 3, 4}))), expected);
  EXPECT_EQ(values(npy_bytes("<u4", "(2, 2)", raw_bytes<uint32_t>({1, 2, 3, 4}))), expected);
  EXPECT_EQ(values(npy_bytes("<u2", "(2, 2)", raw_bytes<uint16_t>({1, 2, 3, 4}))), expected);
  EXPECT_EQ(values(npy_bytes("|i1", "(2, 2)", {1, 2, 3, 4})), expected);
  EXPECT_EQ(values(npy_bytes("<f2", "(2, 2)", raw_bytes<c10::Half>({1, 2, 3, 4}))), expected);
  EXPECT_EQ(values(npy_bytes(">i4", "(2, 2)", big(1) + big(2) + big(3) + big(4))), expected);
  EXPECT_EQ(values(npy_bytes("<f4", "(2, 2)", raw_bytes<float>({1, 3, 2, 4}), true)), expected);
  EXPECT_EQ(values(npy_bytes("|b1", "(2, 2)", {1, 0, 0, 5})), (std::vector<float>{1, 0, 0, 1}));
  EXPECT_EQ(values(npy_bytes("<f4", "(2,)", raw_bytes<float>({1, 2}))), (std::vector<float>{1, 2}));
}

TEST(Npy, FortranOrderWithManyAxes) {
  TemporaryFolder folder;
  at::Tensor wanted = at::arange(3 * 4 * 5 * 2, at::kFloat).view({3, 4, 5, 2});
  std::string turned = raw_bytes(floats(wanted.permute({3, 2, 1, 0})));
  auto data = open("npy:" + folder.write("f.npy", npy_bytes("<f4", "(3, 4, 5, 2)", turned, true)));
  EXPECT_TRUE(at::equal(data->read(range(3)).inputs[0], wanted));
}

TEST(Npy, NotANumberIsNoError) {
  TemporaryFolder folder;
  auto data = open("npy:" + folder.write("f.npy", npy_bytes("<f4", "(1, 2)", raw_bytes<float>({NAN, INFINITY}))));
  at::Tensor x = data->read(range(1)).inputs[0];
  EXPECT_TRUE(std::isnan(x[0][0].item<float>()));
  EXPECT_TRUE(std::isinf(x[0][1].item<float>()));
}

TEST(Npy, PicturesOfAnyFloats) {
  TemporaryFolder folder;
  auto shown = [&](const std::vector<float>& values) {
    return open("npy:" + folder.write("f.npy", npy_bytes("<f4", "(1, 1, 2, 2)", raw_bytes(values))))->display(0).pixels;
  };
  EXPECT_EQ(shown({0, 0.5, 1, 0.25}), (std::vector<uint8_t>{0, 128, 255, 64}));
  EXPECT_EQ(shown({0, 100, 255, 7}), (std::vector<uint8_t>{0, 100, 255, 7}));
  EXPECT_EQ(shown({-3e38f, 3e38f, NAN, 0}), (std::vector<uint8_t>{0, 255, 0, 128}));
  EXPECT_EQ(shown({-2, -2, -2, -INFINITY}), (std::vector<uint8_t>{0, 0, 0, 0}));
}

TEST(Npy, HostileHeadersAreRefused) {
  TemporaryFolder folder;
  auto refused = [&](const std::string& bytes, const std::string& why) {
    std::string path = folder.write("f.npy", bytes);
    EXPECT_TRUE(mentions(error_of([&] { open("npy:" + path); }), why));
  };
  const std::string four = raw_bytes<float>({1, 2, 3, 4});
  refused("", "not an NPY");
  refused("\x93NUMPY", "version 0");
  refused("\x93NUMPY\x09\x01__", "version 9");
  refused(npy_bytes("<f4", "(2, 2)", four).substr(0, 30), "cut short");
  refused(npy_bytes("<f4", "(2, 2)", four.substr(1)), "cut short");
  refused(npy_bytes("<f4", "(9223372036854775807, 9223372036854775807)", four), "impossible");
  refused(npy_bytes("<f4", "(-1, 2)", four), "impossible");
  refused(npy_bytes("<f4", "(99999999999999999999,)", four), "not a number");
  refused(npy_bytes("<f4", "()", four), "single number");
  refused(npy_bytes("<f4", "(2, ", four), "header");
  refused(npy_bytes("|O", "(2,)", four), "Python objects");
  refused(npy_bytes("<c8", "(1,)", four), "'<c8'");
  refused(npy_bytes("", "(1,)", four), "''");
  refused(npy_bytes("<f4', 'descr", "(1,)", four), "header");
  refused("\x93NUMPY\x01" + std::string(1, '\0') + little(30, 2) + "{'descr': [('a','<f4')], 'shape'",
          "several fields");
}

TEST(Npz, StoredDeflatedAndWide) {
  TemporaryFolder folder;
  std::string x = npy_bytes("<f4", "(2, 3)", raw_bytes<float>({1, 2, 3, 4, 5, 6}));
  std::string ids = npy_bytes("<i8", "(2, 2)", raw_bytes<int64_t>({7, 8, 9, 10}));
  std::string y = npy_bytes("<i8", "(2,)", raw_bytes<int64_t>({1, 0}));
  for (bool deflated : {false, true})
    for (bool wide : {false, true}) {
      std::string path = folder.write(
          "f.npz", zip_bytes({{"x.npy", x, deflated}, {"ids.npy", ids, deflated}, {"labels.npy", y, deflated}}, wide));
      Batch batch = open("npz:" + path + ",x=ids:x,y=labels")->read(range(2));
      ASSERT_EQ(batch.inputs.size(), 2u);
      EXPECT_EQ(batch.inputs[0].scalar_type(), at::kLong);
      EXPECT_EQ(floats(batch.inputs[0]), (std::vector<float>{7, 8, 9, 10}));
      EXPECT_EQ(floats(batch.inputs[1]), (std::vector<float>{1, 2, 3, 4, 5, 6}));
      EXPECT_EQ(floats(batch.labels), (std::vector<float>{1, 0}));
      EXPECT_EQ(open("npz:" + path)->info().features[0].name, "x");
      EXPECT_TRUE(mentions(error_of([&] { open("npz:" + path + ",x=idx"); }), "did you mean ids?"));
    }
}

TEST(Npz, HostileArchivesAreRefused) {
  TemporaryFolder folder;
  std::string good = zip_bytes({{"x.npy", npy_bytes("<f4", "(2, 3)", raw_bytes<float>({1, 2, 3, 4, 5, 6})), true}});
  auto refused = [&](std::string bytes) {
    std::string path = folder.write("f.npz", bytes);
    EXPECT_NE(error_of([&] { open("npz:" + path)->read(range(2)); }), "no error");
  };
  refused("");
  refused("PK");
  for (size_t cut = 1; cut < good.size(); cut += 7) refused(good.substr(0, cut));
  refused(zip_bytes({}));
  refused(zip_bytes({{"readme.txt", "hello"}}));
  std::string damaged = good;
  damaged[60] ^= 0x10;
  refused(damaged);
  for (size_t at = 0; at < good.size(); ++at)  // any single broken byte: refused or read, never a crash
    for (int bit : {0x01, 0x80, 0xff}) {
      std::string broken = good;
      broken[at] ^= char(bit);
      std::string path = folder.write("f.npz", broken);
      error_of([&] { open("npz:" + path)->read(range(1)); });
    }
}

TEST(Cifar, RecordsOverSeveralFiles) {
  TemporaryFolder folder;
  auto record = [](char label, char value) { return std::string(1, label) + std::string(3072, value); };
  folder.write("data_batch_1.bin", record(3, 10) + record(4, 20));
  folder.write("data_batch_2.bin.gz", gzipped(record(9, 30)));
  folder.write("test_batch.bin", record(0, 40));
  folder.write("batches.meta.txt", "airplane\n");
  auto train = open("cifar:" + folder.path() + ",split=train");
  EXPECT_EQ(train->size(), 3);
  Batch batch = train->read(range(3));
  EXPECT_EQ(floats(batch.labels), (std::vector<float>{3, 4, 9}));
  EXPECT_EQ(batch.inputs[0].sizes(), (at::IntArrayRef{3, 3, 32, 32}));
  EXPECT_EQ(batch.inputs[0][2][0][0][0].item<float>(), 30);
  EXPECT_EQ(train->info().classes[3], "cat");
  EXPECT_EQ(open("cifar:" + folder.path())->size(), 1);
  EXPECT_EQ(open("cifar:" + folder.path() + ",split=all")->size(), 4);
  EXPECT_TRUE(mentions(error_of([&] { open("cifar:" + folder.write("odd.bin", "abc")); }), "not a CIFAR-10"));
  EXPECT_TRUE(mentions(error_of([&] { open("cifar:" + folder.write("bad.bin", record(77, 1)))->read(range(1)); }),
                       "class numbers go up to 77"));
}

TEST(Dataset, LimitAndSubset) {
  TemporaryFolder folder;
  std::string path = folder.write("f", idx_bytes(8, {4, 1}, {10, 20, 30, 40}));
  std::shared_ptr<Dataset> data = open("idx:" + path + ",limit=3");
  EXPECT_EQ(data->size(), 3);
  EXPECT_THROW(data->read(std::vector<int64_t>{3}), std::logic_error);
  auto part = subset(data, {2, 0});
  EXPECT_EQ(part->size(), 2);
  Batch batch = part->read(std::vector<int64_t>{0, 1, 0});
  EXPECT_EQ(floats(batch.inputs[0]), (std::vector<float>{30, 10, 30}));
  EXPECT_EQ(batch.samples, (std::vector<int64_t>{0, 1, 0}));
  EXPECT_EQ(part->id(0), "2");
  EXPECT_EQ(data->info().spec, "idx:" + path + ",limit=3");
  EXPECT_EQ(data->read({}).count(), 0);
  EXPECT_TRUE(mentions(error_of([&] { open("idx:" + path + ",limit=0"); }), "limit=0"));
}

TEST(RowValues, AreNamedByTheFeatureOrNumbered) {
  Feature feature;
  feature.shape = {2};
  using Values = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(row_values(feature, {0.5, -3}), (Values{{"value 0", "0.5"}, {"value 1", "-3"}}));
  feature.columns = {"age", "sex=F"};
  EXPECT_EQ(row_values(feature, {31, 1}), (Values{{"age", "31"}, {"sex=F", "1"}}));
  EXPECT_TRUE(row_values(feature, {1}).empty()) << "not all of its values";
  feature.shape = {1, 2};
  EXPECT_TRUE(row_values(feature, {1, 2}).empty()) << "no row";
}

}  // namespace
}  // namespace netmend::dataset
