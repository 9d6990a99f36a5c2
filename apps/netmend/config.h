// netmend.toml: what an ONNX file cannot tell. Looked for beside the model, then upwards from the working directory.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace netmend::app {

struct Config {
  std::string path;         ///< "" when there is none
  std::string output;       ///< model.output
  std::string train, test;  ///< data specs
  std::vector<std::string> classes;
  std::map<std::string, std::string>
      input;  ///< preprocessing as spec options: scale, mean, std, layout, color, resize, crop …
};

/// `named` is the file of --config, or "". Throws InputError: an unknown key suggests the nearest, a wrong type names
/// key, line and what was expected.
Config read_config(const std::string& named, const std::string& model);

}  // namespace netmend::app
