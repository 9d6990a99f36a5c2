// Points of the plane, read by a network whose logits are their coordinates: what is seen of them can be computed by
// hand.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/random.h"
#include "checks/checks_for_test.h"
#include "dataset/memory_dataset.h"
#include "evidence/input_table.h"

namespace netmend::evidence {

/// Data whose inputs have names, pictures and texts of their own.
class NamedData : public dataset::MemoryDataset {
 public:
  using MemoryDataset::MemoryDataset;
  std::vector<std::string> ids, texts;
  std::vector<dataset::Display> pictures;

  std::string id(int64_t sample) const override {
    return ids.empty() ? MemoryDataset::id(sample) : ids[size_t(sample)];
  }
  dataset::Display display(int64_t sample) const override {
    if (!pictures.empty()) return pictures[size_t(sample)];
    dataset::Display shown;
    if (!texts.empty()) shown.kind = dataset::Display::kText, shown.text = texts[size_t(sample)];
    return shown;
  }
};

struct PointCase {
  at::Tensor x, y;
  std::vector<std::string> classes{"below", "above"};
  std::shared_ptr<NamedData> data, train;
  model::Graph graph = checks::passing_columns();
  std::string out;  ///< the run folder
  std::unique_ptr<session::Session> session;
  checks::Checkup checkup;
  EvidenceOptions options;

  /// Some carry the wrong label, so that the network fails on them.
  explicit PointCase(int64_t inputs, double wrong = 0.2, uint64_t seed = 1) {
    Random random(seed);
    x = at::empty({inputs, 2}, at::kFloat), y = at::empty({inputs}, at::kLong);
    for (int64_t i = 0; i < inputs; ++i) {
      x[i][0] = 2 * random.normal(), x[i][1] = random.normal();
      y[i] = int64_t(x[i][1].item<float>() > x[i][0].item<float>()) ^ int64_t(random.uniform() < wrong);
    }
    remake();
  }
  /// After x, y or classes were changed.
  void remake() {
    data = std::make_shared<NamedData>(dataset::table_feature({"a", "b"}), x, y, classes, "memory:test");
  }
  session::Session& open() {
    session::Request request = checks::typed_request();
    request.out = out, request.jobs = 1, request.budget = "quick";
    session = std::make_unique<session::Session>(request, "model.onnx", graph, data, train);
    return *session;
  }
  /// What the passes saw, without any check.
  InputTable table() {
    checkup.seen = std::make_unique<checks::Observed>(
        checks::observe(open(), nullptr, checks::kWatchPredictions | checks::kWatchUnits | checks::kWatchCensus));
    return InputTable(checkup, options);
  }
  const std::vector<observers::SampleRow>& rows() const { return checkup.seen->test->rows; }
  bool fails(int64_t sample) const { return rows()[size_t(sample)].right == observers::SampleRow::kWrong; }
};

inline std::string from_base64(const std::string& text) {
  static const std::string kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  uint32_t word = 0;
  int bits = 0;
  for (char letter : text) {
    if (letter == '=') break;
    word = word << 6 | uint32_t(kLetters.find(letter)), bits += 6;
    if (bits >= 8) bits -= 8, out += char(word >> bits & 255);
  }
  return out;
}

/// A folder for what a check-up writes; it goes away with the test.
struct RunFolderForTest {
  std::string path;
  RunFolderForTest() {
    std::string name = (std::filesystem::temp_directory_path() / "netmend-test-XXXXXX").string();
    path = mkdtemp(name.data());
  }
  ~RunFolderForTest() { std::filesystem::remove_all(path); }
  std::string text(const std::string& file) const { return read_file(path + "/" + file, 1 << 28); }
};

}  // namespace netmend::evidence
