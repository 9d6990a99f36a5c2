// Every reader of files that may come from strangers, by name. A reader gets any bytes and reads or refuses them: an
// InputError is an answer, anything else is a find.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace netmend::fuzz {

using Input = std::string_view;

struct Reader {
  const char* name;
  void (*read)(Input input);
};

std::span<const Reader> data_readers();     ///< idx npy npz csv png jpeg saved reference text
std::span<const Reader> text_readers();     ///< toml and the JSON files, one reader each
std::span<const Reader> own_readers();      ///< state profile checkpoint queue
std::span<const Reader> run_readers();      ///< record epochs events trials output
std::span<const Reader> network_readers();  ///< onnx, external, and graphs: valid networks, run in two ways

/// All of them.
std::vector<Reader> readers();
/// Null when there is none of that name.
const Reader* find_reader(std::string_view name);
/// Reads or refuses; whatever else happens is thrown or ends the program.
void read_any(const Reader& reader, Input input);

/// A file in memory (/dev/shm) that holds `content`; its path. The same name is the same file.
std::string scratch(const std::string& name, Input content);
/// A file that fuzz/seeds.py made.
std::string seed_file(const std::string& name);

/// The two parts of an input that stands for two files.
inline std::pair<Input, Input> two_files(Input input) {
  constexpr Input kBetween = "\n====\n";
  const size_t at = input.find(kBetween);
  if (at == Input::npos) return {input, {}};
  return {input.substr(0, at), input.substr(at + kBetween.size())};
}

}  // namespace netmend::fuzz
