#include "report/page.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "report/template.h"

namespace netmend::report {
namespace {

constexpr const char* kFormat = "netmend.report/1";
constexpr JsonLimits kLimits{.bytes = int64_t(256) << 20};

constexpr const char* kAgain = "Run netmend check again; it writes the file again.";

/// What the page cannot do without; everything else it leaves out when it is missing.
void require_report(const JsonView& top, const std::string& name) {
  if (!top.has("format") || !top.at("format").is_text())
    throw InputError(fmt::format("{} is JSON, but not a report: `format` is missing", name),
                     "Is this the run folder of netmend check?");
  if (const std::string format = top.at("format").text(); format != kFormat)
    throw InputError(fmt::format("{} has the format `{}`, but this netmend draws `{}`", name,
                                 printable(format.substr(0, 60)), kFormat),
                     "Draw it with the netmend that wrote it, or run netmend check again.");
  top.at("run").object();
  top.at("verdict").text();
  top.at("findings").size();
  top.at("skipped").size();
}

/// In JSON a `<` can only stand inside a string, where `\u003c` means the same: so no `</script>` and no `<!--` is
/// left.
std::string without_markup(std::string_view document) {
  std::string out;
  out.reserve(document.size() + document.size() / 64);
  for (char c : document) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
  return out;
}

}  // namespace

std::string draw_page(std::string_view document, const std::string& name) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";  // some editors put it before everything
  if (document.substr(0, kMark.size()) == kMark) document.remove_prefix(kMark.size());
  require_report(JsonDocument(document, name, kLimits, kAgain).top(), name);
  std::string page(template_head());
  page += without_markup(document);
  page += template_tail();
  return page;
}

void write_page(const std::string& run_folder) {
  std::string evidence = run_folder + "/" + kEvidence;
  std::error_code error;
  if (!std::filesystem::exists(evidence, error))
    throw InputError(fmt::format("{} has no {}: there is nothing to draw a report from", run_folder, kEvidence),
                     "netmend check writes it; give the folder of such a run.");
  write_file(run_folder + "/" + kPage, draw_page(read_file(evidence, kLimits.bytes), evidence));
}

}  // namespace netmend::report
