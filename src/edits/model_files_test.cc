#include "edits/model_files.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "edits/edit_file.h"
#include "executor/layers.h"
#include "model/numpy_type.h"
#include "onnx/reader.h"
#include "onnx/writer.h"
#include "zoo/zoo.h"

namespace netmend::edits {
namespace {

namespace fs = std::filesystem;

/// Two models that differ in one unit, in a folder of their own.
struct TwoModels {
  fs::path before = fs::current_path(), path;
  model::Graph a = zoo::make("mlp:6-4-3", {.seed = 1}), b = a;
  TwoModels() {
    std::string name = (fs::temp_directory_path() / "edits-XXXXXX").string();
    path = mkdtemp(name.data());
    fs::current_path(path);
    const model::Layer layer = executor::find_layers(b)[0];
    at::Tensor weight = b.constant(layer.weight).clone();
    weight.select(weight.size(0) == 4 ? 0 : 1, 2).add_(1);
    b.replace(layer.weight, weight);
    onnx::write_model(a, "a.onnx"), onnx::write_model(b, "b.onnx");
  }
  ~TwoModels() {
    fs::current_path(before);
    fs::remove_all(path);
  }
};

TEST(ModelFiles, DifferenceNamesTheUnitAndItsEditsLeadThere) {
  TwoModels models;
  const Difference found = compare_files("a.onnx", "b.onnx");
  ASSERT_EQ(found.units.size(), 1u);
  EXPECT_EQ(found.units[0].name, "fc1/2");
  EXPECT_EQ(found.total.changed, 6);
  EXPECT_EQ(compare_files("a.onnx", "a.onnx").changed.size(), 0u);
  EXPECT_GT(write_edits_between("a.onnx", "b.onnx", "edits.json"), 0);
  const AppliedEdits done = apply_file("a.onnx", "edits.json", "c.onnx");
  EXPECT_EQ(done.units, std::set<std::string>{"fc1/2"});
  EXPECT_EQ(compare_files("b.onnx", "c.onnx").changed.size(), 0u);
  apply_file("c.onnx", "edits.json", "d.onnx", true);
  EXPECT_EQ(compare_files("a.onnx", "d.onnx").changed.size(), 0u);
}

TEST(ModelFiles, EditsOfAnotherModelAreRefused) {
  TwoModels models;
  write_edits_between("a.onnx", "b.onnx", "edits.json");
  try {
    apply_file("b.onnx", "edits.json", "c.onnx");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("checksum"), std::string::npos);
  }
  EXPECT_FALSE(fs::exists("c.onnx"));
  EXPECT_THROW(apply_file("none.onnx", "edits.json", "c.onnx"), InputError);
}

TEST(ModelFiles, WeightsAreAllThere) {
  TwoModels models;
  const WrittenWeights done = write_weights("a.onnx", "weights.npz");
  EXPECT_EQ(done.parameters, 4);
  EXPECT_EQ(done.values, 6 * 4 + 4 + 4 * 3 + 3);
  const std::string bytes = read_file("weights.npz");
  EXPECT_EQ(bytes.substr(0, 2), "PK");
  EXPECT_NE(bytes.find("<f4"), std::string::npos);
}

TEST(NumpyTypes, AreThoseOfNumpy) {
  using model::Element;
  const std::pair<Element, const char*> known[] = {
      {Element::kFloat, "<f4"},  {Element::kDouble, "<f8"}, {Element::kFloat16, "<f2"}, {Element::kUint8, "|u1"},
      {Element::kInt8, "|i1"},   {Element::kBool, "|b1"},   {Element::kUint16, "<u2"},  {Element::kInt32, "<i4"},
      {Element::kUint64, "<u8"}, {Element::kInt64, "<i8"},  {Element::kBFloat16, ""},   {Element::kString, ""}};
  for (const auto& [type, name] : known) EXPECT_EQ(model::numpy_type(type), name) << int(type);
}

}  // namespace
}  // namespace netmend::edits
