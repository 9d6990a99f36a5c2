#include <ATen/ATen.h>

#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>
#include <thread>

#include "base/npy.h"
#include "dataset/dataset.h"
#include "dataset/image_file.h"
#include "dataset/summary.h"
#include "dataset/test_files.h"

namespace netmend::dataset {
namespace {

using Json = nlohmann::json;

std::vector<int64_t> range(int64_t count) {
  std::vector<int64_t> out(static_cast<size_t>(count));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

template <typename T>
std::string member(const char* type, std::vector<int64_t> shape, const std::vector<T>& values) {
  return npy_header(type, shape) + raw_bytes(values);
}

using Members = std::map<std::string, std::string>;

void add_words(Members& members, const std::string& name, const std::vector<std::string>& words) {
  std::string bytes;
  std::vector<int64_t> ends;
  for (const std::string& word : words) bytes += word, ends.push_back(int64_t(bytes.size()));
  members[name + ".bytes"] = npy_header("|u1", std::vector{int64_t(bytes.size())}) + bytes;
  members[name + ".ends"] = member("<i8", {int64_t(ends.size())}, ends);
}

/// A saved set that tests write, and break before they write it.
struct Saved {
  TemporaryFolder folder;
  Json index = {{"format", "netmend-saved"}, {"version", 1},
                {"complete", true},          {"samples", 0},
                {"inputs", Json::array()},   {"labels", {{"kind", "none"}, {"width", 1}}},
                {"classes", Json::array()},  {"groups", Json::array()},
                {"display", "none"},         {"parts", Json::array()},
                {"writer", "a test"}};

  void input(const char* name, const char* type, const std::vector<int64_t>& shape) {
    index["inputs"].push_back({{"name", name}, {"type", type}, {"shape", shape}});
  }
  void part(int64_t samples, const Members& members, bool deflated = false) {
    std::ostringstream plain;
    ZipWriter zip(plain);
    std::vector<ZipEntry> entries;
    for (const auto& [name, content] : members) {
      zip.add(name + ".npy", content);
      entries.push_back({name + ".npy", content, true});
    }
    zip.finish();
    std::string bytes = deflated ? zip_bytes(entries) : plain.str();
    std::string file = fmt::format("part-{:05}.npz", index["parts"].size());
    auto sum = crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), uInt(bytes.size()));
    folder.write(file, bytes);
    index["parts"].push_back(
        {{"file", file}, {"samples", samples}, {"bytes", bytes.size()}, {"crc32", fmt::format("{:08x}", sum)}});
    index["samples"] = index["samples"].get<int64_t>() + samples;
  }
  std::unique_ptr<Dataset> open(const std::string& options = "") {
    folder.write("data.json", index.dump());
    return dataset::open("saved:" + folder.path() + options);
  }
  std::string error(const std::string& options = "") {
    return error_of([&] {
      auto data = open(options);
      data->read(range(data->size()));
    });
  }
};

/// Two images and a number of tokens each, in parts of two and one samples.
void fill(Saved& saved, bool deflated = false) {
  saved.input("pixels", "float32", {1, 2, 2});
  saved.input("tokens", "int32", {-1});
  saved.index["labels"] = {{"kind", "class"}, {"width", 1}};
  saved.index["classes"] = {"cat", "dog", "owl"};
  saved.index["groups"] = {"camera"};
  saved.index["display"] = "text";
  Members first = {{"input.pixels", member<float>("<f4", {2, 1, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7})},
                   {"input.tokens", member<int32_t>("<i4", {4}, {7, 8, 9, 5})},
                   {"length.tokens", member<int64_t>("<i8", {2}, {3, 1})},
                   {"label", member<int64_t>("<i8", {2}, {1, 0})}};
  add_words(first, "id", {"a.png", "b.png"});
  add_words(first, "group.camera", {"", ""});
  add_words(first, "display", {"seven eight nine", "five"});
  Members second = {{"input.pixels", member<float>("<f4", {1, 1, 2, 2}, {8, 9, 10, 11})},
                    {"input.tokens", member<int32_t>("<i4", {2}, {3, 4})},
                    {"length.tokens", member<int64_t>("<i8", {1}, {2})},
                    {"label", member<int64_t>("<i8", {1}, {2})}};
  add_words(second, "id", {"c.png"});
  add_words(second, "group.camera", {"left"});
  add_words(second, "display", {"three four"});
  saved.part(2, first, deflated);
  saved.part(1, second, deflated);
}

TEST(Saved, SeveralInputsLengthsAndNames) {
  for (bool deflated : {false, true}) {
    Saved saved;
    fill(saved, deflated);
    auto data = saved.open();
    const Info& info = data->info();
    EXPECT_EQ(info.size, 3);
    EXPECT_EQ(info.features[0].name, "pixels");
    EXPECT_TRUE(info.features[0].image);
    EXPECT_EQ(info.features[1].name, "tokens");
    EXPECT_EQ(info.features[1].type, at::kLong);
    EXPECT_EQ(info.features[1].shape, (std::vector<int64_t>{-1}));
    EXPECT_EQ(info.classes, (std::vector<std::string>{"cat", "dog", "owl"}));
    EXPECT_EQ(info.groups, (std::vector<std::string>{"camera"}));
    Batch batch = data->read(std::vector<int64_t>{2, 0, 1});
    EXPECT_TRUE(at::equal(batch.inputs[0].view({3, 4})[0], at::tensor({8.f, 9.f, 10.f, 11.f})));
    EXPECT_TRUE(at::equal(batch.inputs[1], at::tensor({3, 4, 0, 7, 8, 9, 5, 0, 0}, at::kLong).view({3, 3})));
    EXPECT_FALSE(batch.masks[0].defined());
    EXPECT_TRUE(at::equal(batch.masks[1], batch.inputs[1] != 0));
    EXPECT_EQ(batch.masks[1].scalar_type(), at::kBool);
    EXPECT_TRUE(at::equal(batch.labels, at::tensor({2, 1, 0}, at::kLong)));
    EXPECT_EQ(data->read(std::vector<int64_t>{1}).inputs[1].size(1), 1);
    EXPECT_EQ(data->id(2), "c.png");
    EXPECT_EQ(data->groups(0), (std::vector<std::string>{""}));
    EXPECT_EQ(data->groups(2), (std::vector<std::string>{"left"}));
    EXPECT_EQ(data->display(1).text, "five");
  }
}

TEST(Saved, LengthIsPaddedAndCutAndSaysSo) {
  Saved saved;
  fill(saved);
  auto data = saved.open(",length=2");
  EXPECT_EQ(data->info().features[1].shape, (std::vector<int64_t>{2}));
  ASSERT_EQ(data->info().notes.size(), 1u);
  EXPECT_TRUE(mentions(data->info().notes[0], "samples that are longer and are truncated: 1 of 3"));
  Batch batch = data->read(range(3));
  EXPECT_TRUE(at::equal(batch.inputs[1], at::tensor({7, 8, 5, 0, 3, 4}, at::kLong).view({3, 2})));
  EXPECT_TRUE(at::equal(batch.masks[1], at::tensor({1, 1, 1, 0, 1, 1}).view({3, 2}).to(at::kBool)));
}

TEST(Saved, EqualLengthsAreFixedAndEmptyOnesAreNot) {
  Saved equal;
  equal.input("x", "float32", {-1, 2});
  equal.part(2, {{"input.x", member<float>("<f4", {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8})},
                 {"length.x", member<int64_t>("<i8", {2}, {2, 2})}});
  auto data = equal.open();
  EXPECT_EQ(data->info().features[0].shape, (std::vector<int64_t>{2, 2}));
  Batch batch = data->read(range(2));
  EXPECT_FALSE(batch.masks[0].defined());
  EXPECT_EQ(batch.inputs[0].sizes(), (at::IntArrayRef{2, 2, 2}));
  EXPECT_EQ(data->id(1), "1");

  Saved ragged;
  ragged.input("x", "float32", {-1, 2});
  ragged.part(2, {{"input.x", member<float>("<f4", {3, 2}, {1, 2, 3, 4, 5, 6})},
                  {"length.x", member<int64_t>("<i8", {2}, {1, 2})}});
  auto rows = ragged.open();
  EXPECT_EQ(rows->read(range(2)).inputs[0][0][1].sum().item<float>(), 0);
  EXPECT_EQ(summarize(*rows).features[0].values.finite.low(), 1);  // what pads is not counted
  EXPECT_EQ(summarize(*rows).features[0].values.finite.count(), 6);

  Saved empty;
  empty.input("x", "int64", {-1});
  empty.part(
      2, {{"input.x", npy_header("<i8", std::vector<int64_t>{0})}, {"length.x", member<int64_t>("<i8", {2}, {0, 0})}});
  EXPECT_EQ(empty.open()->read(range(2)).masks[0].sum().item<int64_t>(), 0);
}

TEST(Saved, LabelsOfAllKinds) {
  auto with = [](Saved& saved, const char* kind, int64_t width, const std::string& label) {
    saved.input("x", "float32", {1});
    saved.index["labels"] = {{"kind", kind}, {"width", width}};
    saved.part(2, {{"input.x", member<float>("<f4", {2, 1}, {1, 2})}, {"label", label}});
    return saved.open()->read(range(2)).labels;
  };
  Saved number, numbers, multi, classes;
  EXPECT_TRUE(at::equal(with(number, "number", 1, member<float>("<f4", {2}, {.5f, 2})), at::tensor({.5f, 2.f})));
  EXPECT_TRUE(at::equal(with(numbers, "number", 2, member<float>("<f4", {2, 2}, {1, 2, 3, 4})),
                        at::tensor({1.f, 2.f, 3.f, 4.f}).view({2, 2})));
  EXPECT_TRUE(at::equal(with(multi, "multi", 2, member<uint8_t>("|u1", {2, 2}, {1, 0, 1, 1})),
                        at::tensor({1.f, 0.f, 1.f, 1.f}).view({2, 2})));
  EXPECT_EQ(multi.open()->info().classes, (std::vector<std::string>{"0", "1"}));
  with(classes, "class", 1, member<int64_t>("<i8", {2}, {4, 0}));
  EXPECT_EQ(classes.open()->info().classes.size(), 5u);
  EXPECT_TRUE(mentions(classes.error(",classes=a:b"), "2 class names"));
  Saved negative;
  negative.input("x", "float32", {1});
  negative.index["labels"] = {{"kind", "class"}, {"width", 1}};
  negative.part(1, {{"input.x", member<float>("<f4", {1, 1}, {1})}, {"label", member<int64_t>("<i8", {1}, {-1})}});
  EXPECT_TRUE(mentions(negative.error(), "label of sample 0 is -1"));
}

TEST(Saved, LabelsAndLengthsThatCannotBe) {
  Saved multi;
  multi.input("x", "float32", {1});
  multi.index["labels"] = {{"kind", "multi"}, {"width", 2}};
  multi.part(1, {{"input.x", member<float>("<f4", {1, 1}, {1})}, {"label", member<uint8_t>("|u1", {1, 2}, {0, 2})}});
  EXPECT_TRUE(mentions(multi.error(), "label of sample 0 is 2, which is neither 0 nor 1"));
  Saved nothing;
  nothing.input("x", "float32", {-1, 1 << 30});
  nothing.part(1, {{"input.x", npy_header("<f4", std::vector<int64_t>{0, 1 << 30})},
                   {"length.x", member<int64_t>("<i8", {1}, {0})}});
  EXPECT_TRUE(mentions(nothing.error(), "would be padded to more than"));
  EXPECT_TRUE(mentions(nothing.error(",length=1000000"), "would be padded to more than"));
}

TEST(Saved, PicturesForPeopleAndPreprocessing) {
  Saved saved;
  saved.input("x", "float32", {3, 1, 2});
  saved.index["display"] = "image";
  Members members = {{"input.x", member<float>("<f4", {1, 3, 1, 2}, {0, 1, 2, 3, 4, 5})}};
  add_words(members, "display", {encode_png(1, 2, 3, {9, 8, 7, 6, 5, 4})});
  saved.part(1, members);
  auto data = saved.open(",scale=2,mean=1");
  EXPECT_TRUE(at::equal(data->read(range(1)).inputs[0].view({-1}), at::tensor({-1.f, 1.f, 3.f, 5.f, 7.f, 9.f})));
  Display display = data->display(0);
  EXPECT_EQ(display.kind, Display::kImage);
  EXPECT_EQ(display.pixels, (std::vector<uint8_t>{9, 8, 7, 6, 5, 4}));
}

TEST(Saved, ManyPartsFromManyThreads) {
  Saved saved;
  saved.input("x", "int64", {});
  for (int64_t part = 0; part < 150; ++part)
    saved.part(2, {{"input.x", member<int64_t>("<i8", {2}, {part * 2, part * 2 + 1})}}, part % 2);
  auto data = saved.open();
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int64_t t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int64_t i = 0; i < 300; ++i) {
        const int64_t sample = (i * 37 + t * 11) % 300;
        wrong += data->read(std::vector{sample, (sample + 5) % 300}).inputs[0][0].item<int64_t>() != sample;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Saved, BrokenFilesAreNamed) {
  auto broken = [](const std::function<void(Saved&)>& damage) {
    Saved saved;
    fill(saved);
    damage(saved);
    return saved.error();
  };
  using S = Saved&;
  EXPECT_EQ(broken([](S) {}), "no error");
  EXPECT_TRUE(mentions(broken([](S s) { s.index["complete"] = false; }), "is not finished"));
  EXPECT_TRUE(mentions(broken([](S s) { s.index["version"] = 2; }), "version 2"));
  EXPECT_TRUE(
      mentions(broken([](S s) { s.index["format"] = "other"; }), "`format` is 'other', expected netmend-saved"));
  EXPECT_TRUE(mentions(broken([](S s) { s.index["samples"] = 4; }), "3 samples together, but `samples` says 4"));
  EXPECT_TRUE(mentions(broken([](S s) { s.index["samples"] = 1e300; }), "`samples` is"));
  EXPECT_TRUE(mentions(broken([](S s) { s.index["samples"] = UINT64_MAX; }), "`samples` is"));
  EXPECT_TRUE(mentions(broken([](S s) { s.index["parts"] = 7; }), "`parts` is 7, expected a list"));
  EXPECT_TRUE(
      mentions(broken([](S s) { s.index["parts"][0] = "x"; }), "`parts[0]` is the string 'x', expected an object"));
  EXPECT_TRUE(mentions(broken([](S s) { s.index["parts"][0]["samples"] = 5000; }),
                       "`parts[0].samples` is 5000, expected 1 to 1024"));
  EXPECT_TRUE(
      mentions(broken([](S s) { s.index["parts"][0]["file"] = "../part-00000.npz"; }), "not a plain file name"));
  EXPECT_TRUE(mentions(broken([](S s) { s.index["parts"][0]["file"] = "/etc/passwd"; }), "not a plain file name"));
  EXPECT_TRUE(mentions(broken([](S s) { s.index["parts"][1]["file"] = "part-00000.npz"; }), "listed twice"));
  EXPECT_TRUE(mentions(broken([](S s) { s.index["parts"][0]["crc32"] = "12"; }), "eight hex digits"));
  EXPECT_TRUE(mentions(broken([](S s) { s.index["parts"][0]["crc32"] = "00000000"; }), "is damaged: its checksum"));
  EXPECT_TRUE(mentions(broken([](S s) { s.index["inputs"][0]["shape"] = {1, -1, 2}; }), "only the first size"));
  EXPECT_TRUE(mentions(broken([](S s) { s.index["inputs"][0]["shape"] = {1 << 30, 1 << 30, 1 << 30}; }), "impossible"));
  EXPECT_TRUE(mentions(broken([](S s) { s.index["inputs"][0]["shape"] = {1, 2, 3}; }), "data.json promises 2×1×2×3"));
  EXPECT_TRUE(mentions(broken([](S s) { s.index["inputs"][0]["type"] = "float64"; }), "data.json promises"));
  EXPECT_TRUE(mentions(broken([](S s) { s.index["inputs"][0]["type"] = "complex64"; }), "complex64"));
  EXPECT_TRUE(mentions(broken([](S s) { s.index["inputs"][1]["name"] = "pixels"; }), "occurs twice"));
  EXPECT_TRUE(mentions(broken([](S s) { s.index["inputs"][1]["name"] = "token"; }), "has no array 'length.token'"));
  EXPECT_TRUE(mentions(broken([](S s) { s.index["labels"]["kind"] = "classes"; }), "expected one of none, class"));
  EXPECT_TRUE(mentions(broken([](S s) { s.index["labels"]["kind"] = "number"; }), "float32"));
  EXPECT_TRUE(mentions(broken([](S s) { s.index["classes"] = {"cat", "dog"}; }), "2 class names"));
  EXPECT_TRUE(mentions(broken([](S s) { s.index.erase("groups"); }), "`groups` is missing"));
  EXPECT_TRUE(
      mentions(broken([](S s) { std::filesystem::remove(s.folder.path() + "/part-00001.npz"); }), "is missing"));
  EXPECT_TRUE(mentions(broken([](S s) { std::filesystem::resize_file(s.folder.path() + "/part-00001.npz", 100); }),
                       "it is cut short"));
  Saved nothing;
  EXPECT_TRUE(mentions(error_of([&] { open("saved:" + nothing.folder.path()); }), "not a saved data set"));
  nothing.folder.write("data.json", "{\"format\": ");
  EXPECT_TRUE(
      mentions(error_of([&] { open("saved:" + nothing.folder.path()); }), "line 1, column 12: this is not JSON"));
  nothing.folder.write("data.json", std::string(200000, '['));
  EXPECT_TRUE(mentions(error_of([&] { open("saved:" + nothing.folder.path()); }), "nested more than 16 deep"));
}

TEST(Saved, PartsThatDisagreeWithThemselves) {
  auto broken = [](const std::function<void(Members&)>& damage) {
    Saved saved;
    saved.input("t", "int64", {-1});
    Members members = {{"input.t", member<int64_t>("<i8", {3}, {1, 2, 3})},
                       {"length.t", member<int64_t>("<i8", {2}, {2, 1})}};
    add_words(members, "id", {"a", "b"});
    damage(members);
    saved.part(2, members);
    return saved.error();
  };
  using M = Members&;
  EXPECT_EQ(broken([](M) {}), "no error");
  EXPECT_TRUE(mentions(broken([](M m) { add_words(m, "id", {"a", "a"}); }), "0 and 1 have the same id 'a'"));
  EXPECT_TRUE(mentions(broken([](M m) { add_words(m, "id", {"a"}); }), "where 2 of int64 were expected"));
  EXPECT_TRUE(mentions(broken([](M m) { m["id.ends"] = member<int64_t>("<i8", {2}, {-1, 2}); }), "ends at -1"));
  EXPECT_TRUE(mentions(broken([](M m) { m["id.ends"] = member<int64_t>("<i8", {2}, {1, INT64_MAX}); }), "ends at"));
  EXPECT_TRUE(mentions(broken([](M m) { m["length.t"] = member<int64_t>("<i8", {2}, {2, 2}); }), "promises 4"));
  EXPECT_TRUE(mentions(broken([](M m) { m["length.t"] = member<int64_t>("<i8", {2}, {-2, 5}); }), "the length -2"));
  EXPECT_TRUE(mentions(broken([](M m) { m["length.t"] = member<int64_t>("<i8", {2}, {1, INT64_MAX}); }), "the length"));
  EXPECT_TRUE(mentions(broken([](M m) { m.erase("input.t"); }), "has no array 'input.t'"));
  EXPECT_TRUE(mentions(broken([](M m) { m["input.t"] = "nonsense"; }), "not an NPY file"));
  EXPECT_TRUE(
      mentions(broken([](M m) { m["input.t"] = npy_header("<i8", std::vector<int64_t>{1}) + "x"; }), "cut short"));
}

}  // namespace
}  // namespace netmend::dataset
