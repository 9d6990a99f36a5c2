#include "stream/reference.h"

#include <ATen/ATen.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "dataset/test_files.h"
#include "stream/layer_pairs.h"

namespace netmend::stream {
namespace {

using dataset::error_of;
using dataset::mentions;
using dataset::npy_bytes;
using dataset::raw_bytes;
using Json = nlohmann::json;

/// A reference of two inputs that tests break before they write it.
struct File {
  dataset::TemporaryFolder folder;
  Json meta = {{"format", "netmend-reference"},
               {"version", 1},
               {"framework", "test"},
               {"samples", {4, 2}},
               {"inputs", {"x"}},
               {"outputs", {"scores"}},
               {"layers", {"conv"}}};
  std::map<std::string, std::string> members = {
      {"input.x", npy_bytes("<f4", "(2, 2)", raw_bytes<float>({1, 2, 3, 4}))},
      {"output.scores", npy_bytes("<f8", "(2, 1)", raw_bytes<double>({.5, .25}))},
      {"layer.conv", npy_bytes("<i8", "(2, 1)", raw_bytes<int64_t>({7, 8}))}};

  Reference read() {
    std::vector<dataset::ZipEntry> entries;
    const std::string text = meta.dump();
    if (!meta.is_null())
      entries.push_back({"meta.bytes.npy", npy_bytes("|u1", fmt::format("({},)", text.size()), text)});
    for (const auto& [name, content] : members) entries.push_back({name + ".npy", content, true});
    return read_reference(folder.write("ref.npz", dataset::zip_bytes(entries)));
  }
};

std::string error(const std::function<void(File&)>& damage) {
  File file;
  damage(file);
  return error_of([&] { file.read(); });
}

TEST(Reference, IsRead) {
  File file;
  Reference reference = file.read();
  EXPECT_EQ(reference.count(), 2);
  EXPECT_EQ(reference.framework, "test");
  EXPECT_EQ(reference.samples, (std::vector<int64_t>{4, 2}));
  EXPECT_TRUE(at::equal(reference.inputs[0].rows(1, 1), at::tensor({3.f, 4.f}).view({1, 2})));
  EXPECT_TRUE(at::equal(reference.outputs[0].rows(0, 2), at::tensor({.5, .25}, at::kDouble).view({2, 1})));
  EXPECT_TRUE(at::equal(reference.layers[0].rows(0, 2), at::tensor({7, 8}, at::kLong).view({2, 1})));
}

TEST(Reference, BrokenOnesAreNamed) {
  EXPECT_TRUE(mentions(error([](File& f) { f.meta = nullptr; }), "no member meta.bytes"));
  EXPECT_TRUE(mentions(error([](File& f) { f.meta = 7; }), "the document is 7, expected an object"));
  EXPECT_TRUE(mentions(error([](File& f) { f.meta["format"] = 3; }), "`format` is 3, expected a string"));
  EXPECT_TRUE(mentions(error([](File& f) { f.meta["version"] = 9; }), "`version` is 9, expected 1"));
  EXPECT_TRUE(mentions(error([](File& f) { f.meta["inputs"] = Json::array(); }), "names no inputs"));
  EXPECT_TRUE(mentions(error([](File& f) { f.meta["outputs"] = {{1, 2}}; }), "expected a string"));
  EXPECT_TRUE(mentions(error([](File& f) { f.meta["outputs"] = {"score"}; }), "did you mean output.scores"));
  EXPECT_TRUE(mentions(error([](File& f) { f.meta["inputs"] = {"x", "x"}; }), "holds x twice"));
  EXPECT_TRUE(mentions(error([](File& f) { f.meta["samples"] = {1}; }), "1 positions for 2 inputs"));
  EXPECT_TRUE(mentions(error([](File& f) { f.meta["samples"] = {1, 1e300}; }), "expected a whole number"));
  EXPECT_TRUE(mentions(error([](File& f) { f.members["output.scores"] = npy_bytes("<f4", "(1,)", "1234"); }),
                       "`scores` holds 1 inputs, `x` holds 2"));
  EXPECT_TRUE(mentions(error([](File& f) { f.members["input.x"] = npy_bytes("<f4", "(2, 9)", "1234"); }), "cut short"));
  File odd;
  odd.members["layer.conv"] = npy_bytes("<f4", "(1,)", "1234");
  Reference reference = odd.read();
  EXPECT_TRUE(reference.layers.empty());
  EXPECT_EQ(reference.notes.size(), 1u);
}

TEST(Differences, BrokenNumbers) {
  DifferenceSum sum;
  sum.add(at::tensor({1., NAN, INFINITY}, at::kDouble), at::tensor({1.5, NAN, INFINITY}, at::kDouble));
  EXPECT_EQ(sum.finish().max, .5);
  EXPECT_NEAR(sum.finish().relative, 1 / 3., 1e-9);
  sum.add(at::tensor({NAN}, at::kDouble), at::tensor({0.}, at::kDouble));
  EXPECT_TRUE(std::isinf(sum.finish().max));
}

TEST(Alignments, UndoIsTheWayBack) {
  at::Tensor value = at::arange(2 * 3 * 4 * 5).view({2, 3, 4, 5});
  for (const std::vector<int64_t>& theirs : {std::vector<int64_t>{2, 4, 5, 3}, {2, 5, 3, 4}, {2, 3, 4, 5}}) {
    std::vector<Alignment> found = alignments(value.sizes(), theirs);
    ASSERT_EQ(found.size(), 1u);
    at::Tensor there = found[0].apply(value, theirs);
    EXPECT_EQ(there.sizes(), at::IntArrayRef(theirs));
    EXPECT_TRUE(at::equal(found[0].undo(there, value.sizes()), value));
  }
  EXPECT_EQ(alignments({2, 8, 1, 1}, {2, 8}).size(), 1u);
  EXPECT_TRUE(alignments({2, 8}, {2, 9}).empty());
  EXPECT_EQ(alignments({2, 4, 4}, {2, 4, 4}).size(), 2u);
}

TEST(ModulePath, LosesWhatExportersAdd) {
  auto path = [](const char* name, const char* op) {
    model::Node node;
    node.name = name, node.op = op;
    return module_path(node);
  };
  EXPECT_EQ(path("/layer1/layer1.0/conv1/Conv", "Conv"), "layer1.0.conv1");
  EXPECT_EQ(path("/layer1/layer1.0/Add", "Add"), "layer1.0");
  EXPECT_EQ(path("Relu_7", "Relu"), "");
  EXPECT_EQ(path("model/dense_1/MatMul", "MatMul"), "model.dense_1");
}

}  // namespace
}  // namespace netmend::stream
