#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "onnx/reader.h"
#include "onnx/writer.h"
#include "onnx_file.pb.h"

namespace netmend::onnx {
namespace {

using model::Element;
using model::Graph;

std::string folder() {
  static std::string path = [] {
    char name[] = "/tmp/netmend-onnx-XXXXXX";
    return std::string(mkdtemp(name));
  }();
  return path;
}

std::string save(const onnx_file::Model& message, const std::string& name = "m.onnx") {
  write_file(folder() + "/" + name, message.SerializeAsString());
  return folder() + "/" + name;
}

void describe(onnx_file::ValueInfo* info, const std::string& name, std::vector<int64_t> shape,
              Element type = Element::kFloat) {
  info->set_name(name);
  auto* tensor = info->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(int(type));
  for (int64_t size : shape) tensor->mutable_shape()->add_dim()->set_dim_value(size);
}

onnx_file::Tensor* add_weight(onnx_file::Model& m, const std::string& name, std::vector<int64_t> shape, Element type) {
  auto* tensor = m.mutable_graph()->add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(int(type));
  int64_t count = 1;
  for (int64_t size : shape) tensor->add_dims(size), count *= size;
  tensor->set_raw_data(model::encode(type, at::arange(count, at::kFloat).div(8)));
  return tensor;
}

onnx_file::Node* add_node(onnx_file::Model& m, const std::string& op, std::vector<std::string> in,
                          std::vector<std::string> out) {
  auto* node = m.mutable_graph()->add_node();
  node->set_op_type(op);
  node->set_name(out.at(0) + "_node");
  for (const auto& name : in) node->add_input(name);
  for (const auto& name : out) node->add_output(name);
  return node;
}

/// y = x · w, with everything that must survive: metadata, documentation, a field from the future.
onnx_file::Model small(Element type = Element::kFloat) {
  onnx_file::Model m;
  m.set_ir_version(9);
  m.add_opset_import()->set_version(17);
  describe(m.mutable_graph()->add_input(), "x", {1, 4});
  describe(m.mutable_graph()->add_output(), "y", {1, 3});
  add_weight(m, "w", {4, 3}, type);
  add_node(m, "MatMul", {"x", "w"}, {"y"});
  auto* entry = m.add_metadata_props();
  entry->set_key("author"), entry->set_value("somebody");
  m.mutable_unknown_fields()->append(
      "\xfa\x3f\x03"
      "abc");  // field 1023, which no format knows yet
  return m;
}

at::Tensor weight(const Graph& graph) { return graph.constant(graph.find("w")); }

std::string refusal(const std::string& path) {
  try {
    read_model(path);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Reader, ReadsWhatIsThere) {
  Graph graph = read_model(save(small()));
  EXPECT_EQ(graph.nodes.size(), 1u);
  EXPECT_EQ(graph.metadata["author"], "somebody");
  EXPECT_EQ(graph.opsets[""], 17);
  EXPECT_EQ(graph.constant(graph.find("w")).sizes(), (at::IntArrayRef{4, 3}));
}

TEST(Writer, AnUnchangedModelIsCopiedByteForByte) {
  std::string path = save(small()), copy = folder() + "/copy.onnx";
  write_model(read_model(path), copy);
  EXPECT_EQ(read_file(path), read_file(copy));
}

TEST(Writer, AChangeTouchesItsOwnInitializerAlone) {
  onnx_file::Model before = small();
  std::string path = save(before), out = folder() + "/changed.onnx";
  Graph graph = read_model(path);
  at::Tensor value = graph.constant(graph.find("w")).clone();
  value[1][2] = 42;
  graph.replace(graph.find("w"), value);
  write_model(graph, out);
  onnx_file::Model after;
  ASSERT_TRUE(after.ParseFromString(read_file(out)));
  EXPECT_EQ(after.graph().initializer(0).raw_data(), model::encode(Element::kFloat, value));
  *after.mutable_graph()->mutable_initializer(0) = before.graph().initializer(0);
  EXPECT_EQ(after.SerializeAsString(), before.SerializeAsString());
}

TEST(Writer, HalfPrecisionIsRoundedBeforeItIsUsed) {
  for (Element type : {Element::kFloat16, Element::kBFloat16}) {
    Graph graph = read_model(save(small(type)));
    model::ValueId id = graph.find("w");
    EXPECT_EQ(graph.constant(id).scalar_type(), at::kFloat);
    graph.replace(id, at::full({4, 3}, 0.1));
    at::Tensor rounded = graph.constant(id);
    EXPECT_NE(rounded[0][0].item<float>(), 0.1f);
    std::string out = folder() + "/half.onnx";
    write_model(graph, out);
    Graph again = read_model(out);
    EXPECT_EQ(again.constants[again.find("w")].stored, type);
    EXPECT_TRUE(at::equal(again.constant(again.find("w")), rounded));
  }
}

TEST(Writer, EveryElementTypeSurvives) {
  for (Element type :
       {Element::kFloat, Element::kUint8, Element::kInt8, Element::kUint16, Element::kInt16, Element::kInt32,
        Element::kInt64, Element::kFloat16, Element::kDouble, Element::kUint32, Element::kUint64, Element::kBFloat16}) {
    at::Tensor values = at::arange(12, at::kFloat);
    at::Tensor carried = model::decode(type, std::vector<int64_t>{3, 4}, model::encode(type, values));
    EXPECT_TRUE(at::equal(carried.to(at::kFloat), values.view({3, 4}))) << model::element_name(type);
  }
}

TEST(Writer, EveryCodeOfSmallTypesSurvives) {
  for (Element type :
       {Element::kFloat8E4M3FN, Element::kFloat8E4M3FNUZ, Element::kFloat8E5M2, Element::kFloat8E5M2FNUZ,
        Element::kFloat8E8M0, Element::kFloat4E2M1, Element::kUint4, Element::kInt4, Element::kUint2, Element::kInt2}) {
    std::string bytes(256, '\0');
    for (int i = 0; i < 256; ++i) bytes[size_t(i)] = char(i);
    const std::vector<int64_t> sizes{256 * 8 / model::stored_bits(type)};
    at::Tensor values = model::decode(type, sizes, bytes);
    EXPECT_TRUE(at::allclose(model::rounded(type, values).to(at::kDouble), values.to(at::kDouble), 0, 0, true));
    std::string again = model::encode(type, values);
    for (int64_t i = 0; i < 256; ++i) {
      const bool exact = model::stored_bits(type) < 8 || !std::isnan(values[i].item<double>());
      if (exact) {
        EXPECT_EQ(again[size_t(i)], bytes[size_t(i)]) << model::element_name(type) << " " << i;
      }
    }
  }
  const std::vector<int64_t> three{3};  // two to a byte, the low half first; the last byte is half empty
  EXPECT_TRUE(at::equal(model::decode(Element::kInt4, three, "\x8f\x07"), at::tensor({-1, -8, 7}, at::kChar)));
  EXPECT_THROW(model::decode(Element::kInt4, three, "\x8f"), InputError);
}

TEST(Writer, SmallFloatsRoundToEvenAndSaturateAsAsked) {
  auto narrowed = [](Element type, double value, bool saturate) {
    return model::narrowed(type, at::tensor({value}, at::kDouble), {.saturate = saturate}).item<double>();
  };
  EXPECT_EQ(narrowed(Element::kFloat8E4M3FN, 17, true), 16);  // between 16 and 18
  EXPECT_EQ(narrowed(Element::kFloat8E4M3FN, 19, true), 20);
  EXPECT_EQ(narrowed(Element::kFloat8E4M3FN, 464, true), 448);  // halfway to what would be 480
  EXPECT_EQ(narrowed(Element::kFloat8E4M3FN, 464, false), 448);
  EXPECT_TRUE(std::isnan(narrowed(Element::kFloat8E4M3FN, 465, false)));
  EXPECT_EQ(narrowed(Element::kFloat8E5M2, 1e9, true), 57344);
  EXPECT_TRUE(std::isinf(narrowed(Element::kFloat8E5M2, 1e9, false)));
  EXPECT_EQ(narrowed(Element::kFloat8E5M2, std::ldexp(1, -17), true), 0);  // half of the least, to even
  EXPECT_EQ(narrowed(Element::kFloat8E5M2, std::ldexp(1.01, -17), true), std::ldexp(1, -16));
  EXPECT_EQ(narrowed(Element::kFloat8E5M2FNUZ, -1e9, true), -57344);
  EXPECT_EQ(narrowed(Element::kFloat8E8M0, 1.1, true), 2);
  EXPECT_EQ(narrowed(Element::kFloat4E2M1, -2.5, true), -2);
}

TEST(Reader, TypedDataIsReadLikeRawData) {
  onnx_file::Model m = small();
  auto* tensor = m.mutable_graph()->mutable_initializer(0);
  tensor->clear_raw_data();
  for (int i = 0; i < 12; ++i) tensor->add_float_data(float(i) / 8);
  EXPECT_TRUE(at::equal(weight(read_model(save(m))), weight(read_model(save(small(), "raw.onnx")))));
}

onnx_file::Model external(const std::string& location, int64_t offset, int64_t length) {
  onnx_file::Model m = small();
  auto* tensor = m.mutable_graph()->mutable_initializer(0);
  write_file(folder() + "/weights.bin", std::string(16, '\0') + tensor->raw_data());
  tensor->clear_raw_data();
  tensor->set_data_location(1);
  for (auto [key, value] : {std::pair<std::string, std::string>{"location", location},
                            {"offset", std::to_string(offset)},
                            {"length", std::to_string(length)}}) {
    auto* entry = tensor->add_external_data();
    entry->set_key(key), entry->set_value(value);
  }
  return m;
}

TEST(Reader, ExternalDataLiesBesideTheModelAndNowhereElse) {
  Graph graph = read_model(save(external("weights.bin", 16, 48)));
  EXPECT_TRUE(at::equal(graph.constant(graph.find("w")), weight(read_model(save(small(), "raw.onnx")))));
  std::filesystem::create_directories(folder() + "/other");
  write_model(graph, folder() + "/other/inline.onnx");
  EXPECT_TRUE(at::equal(weight(read_model(folder() + "/other/inline.onnx")), weight(graph)));
  for (const char* place : {"../weights.bin", "/etc/passwd", "", "a/../../weights.bin"})
    EXPECT_NE(refusal(save(external(place, 0, 48))).find("folder"), std::string::npos) << place;
  std::filesystem::remove(folder() + "/link.bin");
  std::filesystem::create_symlink("/etc/passwd", folder() + "/link.bin");
  EXPECT_NE(refusal(save(external("link.bin", 0, 48))).find("folder"), std::string::npos);
  EXPECT_NE(refusal(save(external("weights.bin", 17, 48))), "");
  EXPECT_NE(refusal(save(external("weights.bin", -1, 48))), "");
  EXPECT_NE(refusal(save(external("weights.bin", 16, 47))), "");
  EXPECT_NE(refusal(save(external("missing.bin", 0, 48))), "");
}

TEST(Reader, FunctionsAreUnfoldedAndStayInTheFile) {
  onnx_file::Model m = small();
  m.add_opset_import()->set_domain("my");
  m.mutable_opset_import(1)->set_version(1);
  auto* node = m.mutable_graph()->mutable_node(0);
  node->set_op_type("Leaky"), node->set_domain("my");
  auto* alpha = node->add_attribute();
  alpha->set_name("slope"), alpha->set_type(1), alpha->set_f(0.5);
  auto* function = m.add_functions();
  function->set_name("Leaky"), function->set_domain("my");
  function->add_input("a"), function->add_input("b"), function->add_output("c"), function->add_attribute("slope");
  function->add_opset_import()->set_version(17);
  auto* product = function->add_node();
  product->set_op_type("MatMul");
  product->add_input("a"), product->add_input("b"), product->add_output("t");
  auto* leaky = function->add_node();
  leaky->set_op_type("LeakyRelu");
  leaky->add_input("t"), leaky->add_output("c");
  auto* reference = leaky->add_attribute();
  reference->set_name("alpha"), reference->set_type(1), reference->set_ref_attr_name("slope");
  Graph graph = read_model(save(m));
  ASSERT_EQ(graph.nodes.size(), 2u);
  EXPECT_EQ(graph.nodes[1].op, "LeakyRelu");
  EXPECT_EQ(std::get<float>(graph.nodes[1].attributes["alpha"]), 0.5f);
  leaky->set_op_type("Leaky"), leaky->set_domain("my");  // calls itself
  EXPECT_NE(refusal(save(m)), "");
}

/// y = x · w or x · (w + 1), by a condition; the second branch has a constant and a branch of its own.
onnx_file::Model branching() {
  onnx_file::Model m = small();
  describe(m.mutable_graph()->add_input(), "which", {}, Element::kBool);
  auto* choice = m.mutable_graph()->mutable_node(0);
  onnx_file::Node product = *choice;
  choice->set_op_type("If"), choice->clear_input(), choice->add_input("which");
  auto branch = [](onnx_file::Node* node, const char* name) {
    auto* attribute = node->add_attribute();
    attribute->set_name(name), attribute->set_type(5);
    return attribute->mutable_g();
  };
  product.set_output(0, "inner");
  auto* yes = branch(choice, "then_branch");
  *yes->add_node() = product;
  describe(yes->add_output(), "inner", {1, 3});
  auto* no = branch(choice, "else_branch");
  auto* one = no->add_initializer();
  one->set_name("one"), one->set_data_type(1), one->add_float_data(1);
  auto* sum = no->add_node();
  sum->set_op_type("Add"), sum->add_input("w"), sum->add_input("one"), sum->add_output("w2");
  auto* nested = no->add_node();
  nested->set_op_type("If"), nested->add_input("which"), nested->add_output("inner");
  for (const char* name : {"then_branch", "else_branch"}) {
    auto* deep = branch(nested, name);
    *deep->add_node() = product;
    deep->mutable_node(0)->set_input(1, "w2");
    describe(deep->add_output(), "inner", {1, 3});
  }
  describe(no->add_output(), "inner", {1, 3});
  return m;
}

TEST(Reader, BodiesReadFromOutsideThroughTheirNode) {
  Graph graph = read_model(save(branching()));
  ASSERT_EQ(graph.nodes.size(), 1u);
  const model::Node& choice = graph.nodes[0];
  EXPECT_EQ(choice.captured, choice.inputs.size() - 1);
  std::set<std::string> names;
  for (model::ValueId id : choice.inputs) names.insert(graph.values[size_t(id)].name);
  for (const char* name : {"which", "x", "w"}) EXPECT_TRUE(names.count(name)) << name;
  ASSERT_EQ(graph.constants.size(), 2u);  // w and the branch's own
  const auto& no = std::get<model::Subgraph>(choice.attributes.at("else_branch"));
  EXPECT_TRUE(no.graph->constants.empty());
  EXPECT_EQ(no.graph->inputs.size(), no.reads.size());
  EXPECT_EQ(no.graph->nodes.size(), 2u);
}

TEST(Reader, ABranchThatIsAlwaysTakenIsUnfolded) {
  for (const char which : {'\0', '\1'}) {
    onnx_file::Model m = branching();
    m.mutable_graph()->mutable_input()->RemoveLast();
    auto* condition = m.mutable_graph()->add_initializer();
    condition->set_name("which"), condition->set_data_type(9), condition->set_raw_data(std::string(1, which));
    Graph graph = read_model(save(m));
    ASSERT_EQ(graph.nodes.size(), which ? 1u : 2u);
    EXPECT_EQ(graph.nodes.back().op, "MatMul");
    EXPECT_EQ(graph.nodes.back().outputs, graph.outputs);
    EXPECT_EQ(graph.inputs.size(), 1u);
  }
}

TEST(Reader, BodiesThatDoNotFitAreRefused) {
  onnx_file::Model m = branching();
  auto* yes = m.mutable_graph()->mutable_node(0)->mutable_attribute(0)->mutable_g();
  yes->mutable_node(0)->set_input(1, "nowhere");
  EXPECT_NE(refusal(save(m)).find("nowhere"), std::string::npos);
  yes->mutable_node(0)->set_input(1, "w"), yes->mutable_output(0)->set_name("nothing");
  EXPECT_NE(refusal(save(m)).find("nothing"), std::string::npos);
  yes->mutable_output(0)->set_name("inner"), *yes->add_node() = yes->node(0);
  EXPECT_NE(refusal(save(m)).find("twice"), std::string::npos);
}

TEST(Reader, NodesInAnyOrderAreSortedAndCyclesRefused) {
  onnx_file::Model m = small();
  m.mutable_graph()->mutable_node(0)->set_input(0, "t");
  add_node(m, "Relu", {"x"}, {"t"});
  EXPECT_EQ(read_model(save(m)).nodes[0].op, "Relu");
  m.mutable_graph()->mutable_node(1)->set_input(0, "y");
  EXPECT_NE(refusal(save(m)).find("cycle"), std::string::npos);
}

TEST(Reader, HostileFilesAreRefusedInOneSentence) {
  struct Case {
    const char* what;
    std::function<void(onnx_file::Model&)> spoil;
  };
  auto stored = [](onnx_file::Model& m) { return m.mutable_graph()->mutable_initializer(0); };
  Case cases[] = {
      {"huge dims", [&](auto& m) { stored(m)->set_dims(0, INT64_MAX), stored(m)->set_dims(1, INT64_MAX); }},
      {"large dims", [&](auto& m) { stored(m)->set_dims(0, int64_t(1) << 40); }},
      {"negative dims", [&](auto& m) { stored(m)->set_dims(0, -4); }},
      {"short raw data", [&](auto& m) { stored(m)->mutable_raw_data()->resize(47); }},
      {"long raw data", [&](auto& m) { stored(m)->mutable_raw_data()->resize(52); }},
      {"no data", [&](auto& m) { stored(m)->clear_raw_data(); }},
      {"strange type", [&](auto& m) { stored(m)->set_data_type(99); }},
      {"string type", [&](auto& m) { stored(m)->set_data_type(8); }},
      {"many axes",
       [&](auto& m) {
         for (int i = 0; i < 200; ++i) stored(m)->add_dims(1);
       }},
      {"missing initializer", [&](auto& m) { m.mutable_graph()->clear_initializer(); }},
      {"duplicate initializer", [&](auto& m) { *m.mutable_graph()->add_initializer() = *stored(m); }},
      {"two nodes make one value", [&](auto& m) { add_node(m, "Relu", {"x"}, {"y"}); }},
      {"no output", [&](auto& m) { m.mutable_graph()->clear_output(); }},
      {"unknown output", [&](auto& m) { m.mutable_graph()->mutable_output(0)->set_name("z"); }},
      {"no graph", [&](auto& m) { m.clear_graph(); }},
      {"negative input",
       [&](auto& m) {
         m.mutable_graph()
             ->mutable_input(0)
             ->mutable_type()
             ->mutable_tensor_type()
             ->mutable_shape()
             ->mutable_dim(0)
             ->set_dim_value(-7);
       }},
      {"sequence input", [&](auto& m) { m.mutable_graph()->mutable_input(0)->clear_type(); }},
  };
  for (const Case& c : cases) {
    onnx_file::Model m = small();
    c.spoil(m);
    std::string text = refusal(save(m));
    EXPECT_NE(text, "") << c.what;
    EXPECT_EQ(text.find('\n'), std::string::npos) << c.what;
  }
  write_file(folder() + "/empty.onnx", "");
  write_file(folder() + "/text.onnx", "this is not a model");
  EXPECT_NE(refusal(folder() + "/empty.onnx"), "");
  EXPECT_NE(refusal(folder() + "/text.onnx"), "");
  EXPECT_NE(refusal(folder() + "/none.onnx"), "");
}

TEST(Reader, DamagedBytesNeverCrash) {
  std::string bytes = read_file(save(small()));
  Random random(1);
  for (int round = 0; round < 3000; ++round) {
    std::string broken = round % 3 ? bytes : bytes.substr(0, random.below(bytes.size()));
    for (uint64_t i = 0, count = random.below(6); i < count && !broken.empty(); ++i)
      broken[random.below(broken.size())] = char(random.bits());
    write_file(folder() + "/broken.onnx", broken);
    refusal(folder() + "/broken.onnx");
  }
}

}  // namespace
}  // namespace netmend::onnx
