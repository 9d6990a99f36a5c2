#include "programs/outcome.h"

#include <regex>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace netmend::programs {
namespace {

constexpr size_t kLongestLine = 4096;  ///< std::regex takes stack by the length of what it looks at

/// The traceback's last lines: the statement that raised, and `Error: message`.
struct Raised {
  std::string exception, message, statement;
};

Raised last_exception(const std::string& errors) {
  static const std::regex kError(
      R"(^((?:\w+\.)*\w*(?:Error|Exception|Interrupt|Iteration|Exit|Warning|Empty))(?::\s?(.*))?$)");
  Raised raised;
  std::vector<std::string> lines = split(errors, '\n');
  for (size_t i = lines.size(); i-- > 0;) {
    std::smatch hit;
    if (lines[i].size() > kLongestLine || !std::regex_match(lines[i], hit, kError)) continue;
    raised.exception = hit[1], raised.message = hit[2];
    raised.exception = raised.exception.substr(raised.exception.rfind('.') + 1);
    for (size_t above = i; above-- > 0;) {
      const std::string_view text = trim(lines[above]);
      if (text.empty() || text.find_first_not_of("^~ ") == std::string_view::npos) continue;
      raised.statement = text;
      break;
    }
    break;
  }
  return raised;
}

bool has(const std::string& text, std::initializer_list<const char*> words) {
  const std::string small = lower(text);
  for (const char* word : words)
    if (small.find(word) != std::string::npos) return true;
  return false;
}

std::string cause_of(const Raised& raised, bool in_condition) {
  if (has(raised.message,
          {"shape", "size", "dimension", "mat1", "out of range", "out of bounds", "broadcast", "channels"}))
    return "dimension-mismatch";
  if (raised.exception == "IndexError") return "dimension-mismatch";
  if (raised.exception == "AssertionError" || raised.statement.starts_with("raise ") ||
      raised.statement.starts_with("assert "))
    return "raise-or-assert";
  if (raised.exception == "TypeError" &&
      has(raised.message, {"unsupported operand", "not supported between", "bad operand"}))
    return "type-error";
  if (raised.exception == "NameError" || raised.exception == "UnboundLocalError" || raised.exception == "KeyError" ||
      has(raised.message, {"nonetype"}))
    return in_condition ? "assignment-in-if" : "assignment";
  return "";
}

bool ran_out(const sandbox::Outcome& run, const Raised& raised) {
  return run.ending == sandbox::Ending::kMemory || raised.exception == "MemoryError" ||
         has(run.errors.substr(run.errors.size() > 4000 ? run.errors.size() - 4000 : 0),
             {"std::bad_alloc", "can't allocate memory", "cannot allocate memory", "out of memory"});
}

}  // namespace

RunOutcome classify(const sandbox::Outcome& run, std::optional<double> metric, bool in_condition) {
  RunOutcome out;
  out.seconds = run.seconds, out.peak = run.peak;
  const Raised raised = last_exception(run.errors);
  if (run.ending == sandbox::Ending::kTimeout) {
    out.outcome = "hang";
  } else if (run.ending == sandbox::Ending::kOutput) {
    out.outcome = "killed", out.message = "it printed more than is allowed";
  } else if (run.ending == sandbox::Ending::kExited && run.status == 0) {
    out.metric = metric;
    out.outcome = out.metric ? "normal" : "no-metric";
  } else if (ran_out(run, raised)) {
    out.outcome = "out-of-memory";
  } else if (run.ending == sandbox::Ending::kSignal && raised.exception.empty()) {
    out.outcome = "killed", out.message = fmt::format("signal {}", run.status);
  } else {
    out.outcome = "crash";
    out.exception = raised.exception, out.cause = cause_of(raised, in_condition);
    out.message =
        raised.exception.empty() ? fmt::format("exit status {}", run.status) : printable(raised.message.substr(0, 300));
  }
  return out;
}

}  // namespace netmend::programs
