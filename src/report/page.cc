#include "report/page.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "report/template.h"

namespace netmend::report {
namespace {

using Json = nlohmann::json;

constexpr const char* kFormat = "netmend.report/1";
constexpr int64_t kLargest = int64_t(256) << 20;
constexpr int kDeepest = 64;

constexpr const char* kAgain = "Run netmend check again; it writes the file again.";

/// Parses without trusting: depth is bounded, so that nothing that walks the document can run out of stack.
Json parse(std::string_view document, const std::string& name) {
  bool too_deep = false;
  auto shallow = [&](int depth, Json::parse_event_t, Json&) {
    too_deep |= depth > kDeepest;
    return !too_deep;
  };
  Json json;
  try {
    json = Json::parse(document, shallow);
  } catch (const Json::exception& error) {
    std::string reason = error.what();
    size_t words = reason.find("] ");
    throw InputError(fmt::format("{} is not JSON, or it is damaged: {}", name,
                                 words == std::string::npos ? reason : reason.substr(words + 2)),
                     kAgain);
  }
  if (too_deep) throw InputError(fmt::format("{} is nested more than {} deep", name, kDeepest), kAgain);
  return json;
}

/// What the page cannot do without; everything else it leaves out when it is missing.
void require_report(const Json& json, const std::string& name) {
  auto format = json.is_object() ? json.find("format") : json.end();
  if (!json.is_object() || format == json.end() || !format->is_string())
    throw InputError(fmt::format("{} is JSON, but not a report: `format` is missing", name),
                     "Is this the run folder of netmend check?");
  if (*format != kFormat)
    throw InputError(fmt::format("{} has the format `{}`, but this netmend draws `{}`", name,
                                 format->get<std::string>().substr(0, 60), kFormat),
                     "Draw it with the netmend that wrote it, or run netmend check again.");
  auto is = [&](const char* key, bool (Json::*kind)() const noexcept) {
    auto found = json.find(key);
    if (found == json.end() || !((*found).*kind)())
      throw InputError(fmt::format("{} lacks `{}`, or it has the wrong type", name, key), kAgain);
  };
  is("run", &Json::is_object);
  is("verdict", &Json::is_string);
  is("findings", &Json::is_array);
  is("skipped", &Json::is_array);
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
  require_report(parse(document, name), name);
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
  write_file(run_folder + "/" + kPage, draw_page(read_file(evidence, kLargest), evidence));
}

}  // namespace netmend::report
