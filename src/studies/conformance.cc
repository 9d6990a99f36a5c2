#include "studies/conformance.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/text.h"
#include "executor/executor.h"
#include "onnx/reader.h"

namespace netmend::studies {
namespace fs = std::filesystem;

namespace {

constexpr double kRelative = 1e-3, kAbsolute = 1e-5;  // as the ONNX project's own runner

std::vector<at::Tensor> read_tensors(const fs::path& folder, const std::string& prefix,
                                     std::vector<model::Element>* types) {
  std::vector<at::Tensor> tensors;
  for (int i = 0; fs::exists(folder / fmt::format("{}_{}.pb", prefix, i)); ++i) {
    onnx::NamedTensor tensor = onnx::read_tensor((folder / fmt::format("{}_{}.pb", prefix, i)).string());
    if (types) types->push_back(tensor.stored);
    tensors.push_back(tensor.value);
  }
  return tensors;
}

/// "" when equal within tolerance.
std::string difference(const at::Tensor& raw, const at::Tensor& expected, model::Element stored) {
  if (raw.scalar_type() != expected.scalar_type())
    return fmt::format("type {} instead of {}", at::toString(raw.scalar_type()), at::toString(expected.scalar_type()));
  if (raw.sizes() != expected.sizes())
    return fmt::format("shape {} instead of {}", shape_text({raw.sizes().data(), raw.sizes().size()}),
                       shape_text({expected.sizes().data(), expected.sizes().size()}));
  at::Tensor got = model::rounded(stored, raw);
  if (at::allclose(got.to(at::kDouble), expected.to(at::kDouble), kRelative, kAbsolute, /*equal_nan=*/true)) return "";
  return fmt::format("values differ by up to {:.3g}",
                     (got.to(at::kDouble) - expected.to(at::kDouble)).abs().max().item<double>());
}

std::string run_case(const std::string& folder) {
  model::Graph graph = onnx::read_model(folder + "/model.onnx");
  executor::Executor executor(graph);
  int sets = 0;
  for (; fs::exists(fs::path(folder) / fmt::format("test_data_set_{}", sets)); ++sets) {
    fs::path data = fs::path(folder) / fmt::format("test_data_set_{}", sets);
    std::vector<model::Element> types;
    std::vector<at::Tensor> inputs = read_tensors(data, "input", nullptr),
                            expected = read_tensors(data, "output", &types);
    if (inputs.size() != graph.inputs.size())
      return fmt::format("{} inputs for {}", inputs.size(), graph.inputs.size());
    std::vector<at::Tensor> got = executor.run(inputs);
    if (got.size() != expected.size()) return fmt::format("{} outputs instead of {}", got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i)
      if (std::string apart = difference(got[i], expected[i], types[i]); !apart.empty())
        return fmt::format("output {}: {}", i, apart);
  }
  return sets ? "" : "no test_data_set_0";
}

}  // namespace

std::vector<std::string> find_conformance_cases(const std::string& folder, const std::string& filter) {
  std::vector<std::string> cases;
  if (fs::exists(fs::path(folder) / "model.onnx")) return {folder};
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (fs::exists(entry.path() / "model.onnx") && entry.path().filename().string().find(filter) != std::string::npos)
      cases.push_back(entry.path().string());
  if (error) fail("cannot read the folder {}: {}", folder, error.message());
  if (cases.empty()) fail("{} holds no test folders (model.onnx with test_data_set_*)", folder);
  std::sort(cases.begin(), cases.end());
  return cases;
}

ConformanceCase run_conformance_case(const std::string& folder) {
  ConformanceCase result;
  result.name = fs::path(folder).filename().string();
  try {
    result.reason = run_case(folder);
    result.status = result.reason.empty() ? "passed" : "failed";
  } catch (const Unsupported& error) {
    result.status = "unsupported", result.reason = error.what();
  } catch (const std::exception& error) {
    result.status = "failed", result.reason = error.what();
  }
  return result;
}

}  // namespace netmend::studies
