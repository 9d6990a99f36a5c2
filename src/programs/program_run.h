// A program or a changed version of it, run once in the sandbox: its outcome, its metric from wherever it comes, the
// processor time it took, its training's record.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "programs/inject.h"
#include "programs/metric.h"

namespace netmend::programs {

/// A file that is changed and what stands in its place; both empty for the program as it is.
struct Version {
  std::string path, by;
  bool in_condition = false;  ///< the change stands in an if or while
};

class ProgramRun {
 public:
  /// Throws InputError: there is no such program, it is no Python, the interpreter cannot be read.
  ProgramRun(sandbox::Sandbox& sandbox, const InjectRequest& request);

  /// `number`: which of the clean runs it is, or is compared with; `{seed}` in the arguments is the request's seed and
  /// this together. Throws Interrupted.
  RunOutcome run(const Version& version, int64_t number, const sandbox::Limits& limits,
                 sandbox::Outcome* raw = nullptr) const;
  /// The record of a run under the recorder, as a file of ours; "" where nothing was recorded.
  std::string record(const Version& version, int64_t number, const sandbox::Limits& limits) const;
  /// What the recorder of executed lines reports.
  sandbox::Outcome trace(const std::vector<std::string>& also, const sandbox::Limits& limits) const;
  /// Our own script beside the program, outside the sandbox: it parses and writes, and runs nothing of others. Throws
  /// InputError with its words.
  JsonDocument ask(const std::vector<std::string>& words, const std::string& input = "") const;

  bool seeded() const { return seeded_; }  ///< the arguments hold {seed}
  const std::string& folder() const { return folder_; }
  const std::string& source() const { return source_; }    ///< what is parsed
  const std::string& program() const { return program_; }  ///< what is run
  const std::vector<std::string>& readable() const { return reads_; }
  const JsonDocument& about() const { return about_; }

 private:
  sandbox::Command command(const Version& version, int64_t number) const;
  sandbox::Outcome start(const sandbox::Command& what, const sandbox::Limits& limits) const;
  JsonDocument inspect();
  /// Puts a command under the recorder; the file that it will leave.
  std::string watch(sandbox::Command& what) const;
  std::string fresh_name() const;
  std::string kept(const std::string& text) const;  ///< as a file; "" for none

  sandbox::Sandbox& sandbox_;
  const InjectRequest& request_;
  MetricSource metric_;
  bool seeded_ = false;
  std::string folder_, source_, program_;
  JsonDocument about_;
  std::vector<std::string> reads_;
};

}  // namespace netmend::programs
