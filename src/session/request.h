// What a user asks for, before anything is opened: the flags that mean the same everywhere. No tensors: commands,
// bindings and other people's programs fill it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace netmend::session {

struct Request {
  std::string model;              ///< ONNX file; "": the one that netmend.toml names
  std::string data, test, train;  ///< data specs; `data` alone means its test split, and its training split too
  std::string output, metric;     ///< "": as netmend.toml says, else inferred
  std::string config;             ///< netmend.toml; "": looked for beside the model, then upwards
  std::string budget;             ///< quick, normal, deep, or a time; "": normal
  int64_t limit = 0;              ///< only the first inputs of the tests; 0 for all
  bool all = false;               ///< all inputs, whatever the budget says
  uint64_t seed = 42;
  int jobs = 0;                        ///< worker threads; 0 for one per core. Never changes a result
  std::string device = "cpu";          ///< auto: decided when the tests are opened, by their size and `passes`
  std::string precision = "float32";   ///< on a GPU that auto chooses
  double passes = 1;                   ///< roughly how often the command sends the tests through the network
  bool quiet = false;                  ///< no progress bars
  std::string out;                     ///< the run folder; "": netmend-runs/<time>-<command>
  std::vector<std::string> arguments;  ///< the command line, for the run's record
  std::function<void(const std::string&)> note;  ///< told what the user should know while it happens; may be empty
};

}  // namespace netmend::session
