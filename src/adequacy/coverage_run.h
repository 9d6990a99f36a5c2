// Test adequacy of a session: a profile of the training data, learned or read, all criteria in one pass over the tests,
// and what the tests leave untried. No tensors: commands and other programs call it.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "session/evaluate.h"

namespace netmend::adequacy {

struct CoverageRequest {
  std::string criteria = "all";         ///< names with commas, as parse_criteria takes them
  std::string important = "6,8,10,12";  ///< how many important units IDC combines
  std::string on;                       ///< only these tests; "" for all
  std::string unit;                     ///< channel or element; "": what `published` does, else channel
  std::string profile;                  ///< file of what was learned: read where it exists, else written; "" for none
  std::string published;                ///< whose figures; "" for the corrected ones
  std::string tap;                      ///< pre or post; "": what `published` does, else post
  bool zero_cluster = false;
  std::vector<std::string> layers;  ///< empty: all but the output layer (as NLC's program has it, with that one)
  std::vector<std::string> parts;   ///< files of cover_shard(), in place of a pass over the tests
};
/// What can be said without a model. Throws InputError.
void check_request(const CoverageRequest& request);

class CoverageRun {
 public:
  /// Learns and assesses. Throws InputError.
  CoverageRun(session::Session& session, CoverageRequest request);
  ~CoverageRun();

  /// Everything that was found; lists are cut to the first ten.
  nlohmann::ordered_json document() const;
  int64_t inputs() const;  ///< tests that count
  double seconds() const;
  bool interrupted() const;
  /// units.csv, surprise.csv, subset.txt and core.txt go into a folder.
  void write_tables(const std::string& folder);
  /// The tests worth keeping, one number per line. Throws InputError when there is no such list.
  void write_subset(const std::string& path);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Part `i/n` of the pass over the tests, kept as a file of states; a CoverageRun with all `parts` gives what one pass
/// gives, bit for bit. Nothing is learned: a profile must be there already. Throws InputError, also when the pass was
/// stopped.
session::Shard cover_shard(session::Session& session, CoverageRequest request, const std::string& shard,
                           const std::string& path);

}  // namespace netmend::adequacy
