// broken-trainings: python/netmend/study.py, started with this program and the package that belongs to it.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/child.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/pool.h"
#include "base/python_package.h"
#include "base/text.h"
#include "studies/study_runs.h"
#include "studies/tables.h"

namespace netmend::studies {

nlohmann::ordered_json run_broken_trainings_study(const StudyContext& context, const BrokenTrainingsRequest& request) {
  const std::vector<std::string> parts = {"planted", "heal", "real", "forest"};
  if (std::find(parts.begin(), parts.end(), request.part) == parts.end())
    throw InputError(fmt::format("there is no part {}{}", request.part, did_you_mean(request.part, parts)),
                     "Parts are " + join(parts, ", ") + ".");
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  make_folders(context.folder);
  std::vector<std::string> words = {request.python,
                                    "-m",
                                    "netmend.study",
                                    request.part,
                                    "--json",
                                    "--netmend",
                                    (self.parent_path() / "netmend").string(),
                                    "--out",
                                    context.folder,
                                    "--jobs",
                                    std::to_string(context.jobs > 0 ? context.jobs : cores())};
  if (!request.keras_python.empty()) words.insert(words.end(), {"--keras-python", request.keras_python});
  words.insert(words.end(), request.more.begin(), request.more.end());
  if (context.progress) context.progress(join(words, " "));
  std::string output;
  const char* before = std::getenv("PYTHONPATH");
  const std::string path = python_package_folder() + (before && *before ? std::string(":") + before : "");
  const int status = run_child(words, {{"PYTHONPATH", path}}, &output);
  if (interrupted()) throw Interrupted{};
  if (status != 0)
    throw InputError(
        fmt::format("the study ended with status {}", status),
        "It needs a Python with NumPy, and PyTorch or Keras for what is planted in them: --python names it.");
  if (request.part == "forest") return {{"study", "forest"}, {"text", output}};
  const JsonDocument document(output, "netmend/study.py");
  nlohmann::ordered_json json(document.json());
  write_numbers(request.part, json, context.folder + "/trials.csv");
  return json;
}

}  // namespace netmend::studies
