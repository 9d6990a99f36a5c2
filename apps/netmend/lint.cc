// netmend lint: mistakes that can be seen in the text of a training program.
#include "diagnosis/lint.h"

#include <algorithm>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "netmend/terminal.h"

namespace netmend::app {

using Seen = diagnosis::LintFinding;

int lint(const Common& common, const LintOptions& options) {
  if (options.fail_on != "never") findings::parse_level(options.fail_on);
  const std::vector<Seen> all = diagnosis::lint_files(options.files, options.python);
  if (!options.sarif.empty()) write_file(options.sarif, diagnosis::lint_sarif(all));
  const bool failed = options.fail_on != "never" && std::any_of(all.begin(), all.end(), [&](const Seen& one) {
                        return one.finding.level >= findings::parse_level(options.fail_on);
                      });
  if (common.json) {
    Json list = Json::array();
    for (const Seen& one : all) {
      Json row = findings::to_json(one.finding);
      row["file"] = one.file, row["line"] = one.line;
      list.push_back(row);
    }
    print_json({{"findings", list}});
    return failed;
  }
  for (const Seen& one : all) {
    print("{}:{}: {}: {} [{}]\n", printable(one.file), one.line, level_name(one.finding.level),
          printable(one.finding.title), one.finding.kind);
  }
  if (all.empty()) print("  Nothing was found in {}.\n", counted(int64_t(options.files.size()), "file"));
  return failed;
}

}  // namespace netmend::app
