// The report's table of inputs: which are in it, and what is shown of them.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "evidence/evidence.h"

namespace netmend::evidence {

class InputTable {
 public:
  InputTable(const checks::Checkup& checkup, const EvidenceOptions& options);

  /// The row of an input; makes one where there is none yet.
  int64_t row(const std::string& split, int64_t sample);
  /// The row, or -1.
  int64_t find(const std::string& split, int64_t sample) const;
  /// Failures first, then what fits.
  void add_tests();
  /// Wants to be seen; the first come first.
  void show(int64_t row);
  /// Failures that have rows, highest loss first, as far as there is room; some is kept for their neighbours.
  void show_failures();

  /// Tests that belong to a slice, by its number in the report.
  void add_slice(size_t slice, const std::vector<size_t>& tests);

  /// A 2-D map of the last hidden layer's features (PCA), and the nearest rows of those that are shown.
  void add_map(nlohmann::ordered_json& json) const;

  nlohmann::ordered_json to_json() const;
  int64_t shown() const { return int64_t(order_.size()); }

 private:
  struct Entry {
    int split;
    int64_t sample;
  };
  const checks::ObservedSplit& part(int split) const {
    return split == 0 ? *checkup_.seen->test : *checkup_.seen->train;
  }
  void add_columns(nlohmann::ordered_json& json) const;
  void add_groups(nlohmann::ordered_json& json) const;
  std::vector<int64_t> failures() const;
  void add_displays(nlohmann::ordered_json& json, const std::vector<int64_t>& shown) const;
  std::vector<int64_t> with_neighbours(const nlohmann::ordered_json& json) const;
  void add_neighbours(nlohmann::ordered_json& json) const;
  void add_answers(nlohmann::ordered_json& json) const;
  void add_heat(nlohmann::ordered_json& json) const;
  void add_before(nlohmann::ordered_json& json) const;
  void add_table(nlohmann::ordered_json& json, const dataset::Info& info, const std::vector<int64_t>& shown) const;
  void add_similar(nlohmann::ordered_json& json, const std::vector<int64_t>& rows, const at::Tensor& centred) const;

  const checks::Checkup& checkup_;
  const EvidenceOptions& options_;
  int64_t room_;  ///< how many inputs can be shown
  std::vector<Entry> entries_;
  std::map<std::pair<int, int64_t>, int64_t> rows_;
  std::vector<int64_t> order_;  ///< rows that are shown
  std::map<int64_t, bool> wanted_;
  std::vector<std::vector<size_t>> slices_;  ///< by test
};

}  // namespace netmend::evidence
