// netmend lab conformance: the ONNX project's backend tests. The cases run in a child process, so that one that crashes
// is counted and the rest go on.
#include <ATen/ATen.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iostream>

#include "base/error.h"
#include "base/text.h"
#include "executor/executor.h"
#include "netmend/shared.h"
#include "onnx/reader.h"

namespace netmend::app {
namespace fs = std::filesystem;

namespace {

constexpr double kRelative = 1e-3, kAbsolute = 1e-5;  // as the ONNX project's own runner
const char* const kWorkerVariable = "NETMEND_CONFORMANCE_FROM";

std::vector<std::string> find_cases(const ConformanceOptions& options) {
  std::vector<std::string> cases;
  if (fs::exists(fs::path(options.folder) / "model.onnx")) return {options.folder};
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(options.folder, error))
    if (fs::exists(entry.path() / "model.onnx") &&
        entry.path().filename().string().find(options.filter) != std::string::npos)
      cases.push_back(entry.path().string());
  if (error) fail("cannot read the folder {}: {}", options.folder, error.message());
  if (cases.empty()) fail("{} holds no test folders (model.onnx with test_data_set_*)", options.folder);
  std::sort(cases.begin(), cases.end());
  return cases;
}

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

Json judge(const std::string& folder) {
  std::string status, reason;
  try {
    reason = run_case(folder);
    status = reason.empty() ? "passed" : "failed";
  } catch (const Unsupported& error) {
    status = "unsupported", reason = error.what();
  } catch (const std::exception& error) {
    status = "failed", reason = error.what();
  }
  return {{"name", fs::path(folder).filename().string()}, {"status", status}, {"reason", reason}};
}

int work(const std::vector<std::string>& cases, size_t from) {
  for (size_t i = from; i < cases.size(); ++i)
    std::cout << judge(cases[i]).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
  return 0;
}

/// Starts this program again for the cases from `from` on; appends what it says. Returns how many answered.
void run_worker(const Common& common, size_t from, Json& results) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("no pipe");
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]), close(ends[1]);
    setenv(kWorkerVariable, std::to_string(from).c_str(), 1);
    std::vector<char*> arguments;
    for (const std::string& argument : common.arguments) arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    execv("/proc/self/exe", arguments.data());
    _exit(127);
  }
  close(ends[1]);
  std::FILE* lines = fdopen(ends[0], "r");
  char* line = nullptr;
  size_t room = 0;
  while (getline(&line, &room, lines) > 0) {
    Json answer = Json::parse(line, nullptr, false);
    if (answer.is_object()) results.push_back(answer);
  }
  free(line);
  fclose(lines);
  int status = 0;
  waitpid(child, &status, 0);
}

}  // namespace

int lab_conformance(const Common& common, const ConformanceOptions& options) {
  std::vector<std::string> cases = find_cases(options);
  if (const char* from = std::getenv(kWorkerVariable)) return work(cases, size_t(std::atoll(from)));
  Json results = Json::array();
  while (results.size() < cases.size()) {
    run_worker(common, results.size(), results);
    if (results.size() < cases.size())
      results.push_back({{"name", fs::path(cases[results.size()]).filename().string()},
                         {"status", "crashed"},
                         {"reason", "the process died"}});
  }
  std::map<std::string, int64_t> counts;
  for (const auto& result : results) {
    std::string status = result["status"];
    ++counts[status];
    bool shown = options.each || status == "failed" || status == "crashed";
    if (!common.json && shown)
      fmt::print("{:<12} {}  {}\n", status, result["name"].get<std::string>(), result["reason"].get<std::string>());
  }
  if (common.json)
    print_json({{"passed", counts["passed"]},
                {"failed", counts["failed"]},
                {"unsupported", counts["unsupported"]},
                {"crashed", counts["crashed"]},
                {"cases", results}});
  else
    fmt::print("{} cases: {} passed, {} failed, {} unsupported, {} crashed\n", cases.size(), counts["passed"],
               counts["failed"], counts["unsupported"], counts["crashed"]);
  return counts["failed"] + counts["crashed"] > 0 ? 1 : 0;
}

}  // namespace netmend::app
