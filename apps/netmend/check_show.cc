#include "netmend/check_show.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <map>

#include "base/text.h"
#include "netmend/show.h"

namespace netmend::app {
namespace {

using findings::Finding;
using findings::Level;

constexpr size_t kShown = 5;  ///< findings on the first screen

/// Narrower terminals lose columns, not words.
size_t width() {
  winsize size{};
  if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20) return size.ws_col;
  return 100;
}

bool colours() { return isatty(STDOUT_FILENO) && !std::getenv("NO_COLOR"); }

std::string level_text(Level level) {
  std::string text = fmt::format("{:<8}", level_name(level));
  if (!colours()) return text;
  return (level == Level::kBlocker || level == Level::kSerious ? "\033[1m" : "\033[2m") + text + "\033[0m";
}

/// How many columns a text takes; our own words hold only characters of one column.
size_t columns(const std::string& text) {
  size_t count = 0;
  for (char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return count;
}

std::string padded(const std::string& text, size_t to) {
  const size_t now = columns(text);
  return now < to ? text + std::string(to - now, ' ') : text;
}

void print_findings(const CheckView& view) {
  const std::vector<Finding>& found = view.findings;
  std::vector<const Finding*> shown;
  std::map<Level, int64_t> rest;
  for (const Finding& finding : found)
    if (finding.level > Level::kNote && shown.size() < kShown)
      shown.push_back(&finding);
    else
      ++rest[finding.level];
  size_t ids = 0, briefs = 0;
  for (const Finding* finding : shown)
    ids = std::max(ids, columns(printable(finding->id()))),
    briefs = std::max(briefs, columns(printable(finding->brief)));
  ids = std::min<size_t>(ids, 40), briefs = std::min<size_t>(briefs, 52);
  const bool with_brief = 11 + ids + 2 + briefs <= width(), with_sureness = 11 + ids + 2 + briefs + 8 <= width();
  for (const Finding* finding : shown) {
    fmt::print("  {} {}", level_text(finding->level), padded(printable(finding->id()), ids));
    if (with_brief)
      fmt::print("  {}", with_sureness ? padded(printable(finding->brief), briefs) : printable(finding->brief));
    if (with_sureness) fmt::print("  {}", sureness_name(finding->sureness));
    fmt::print("\n");
  }
  std::vector<std::string> more;
  for (Level level : {Level::kSerious, Level::kMinor, Level::kNote})
    if (rest[level] > 0)
      more.push_back(level == Level::kNote ? counted(rest[level], "note")
                                           : fmt::format("{} more {}", rest[level], level_name(level)));
  if (!view.known.accepted.empty()) more.push_back(fmt::format("{} accepted", view.known.accepted.size()));
  if (!view.known.stale.empty())
    more.push_back(fmt::format("{} accepted that no longer occur: accept --prune", view.known.stale.size()));
  if (!more.empty()) fmt::print("  {}{}\n", shown.empty() ? "" : "+ ", join(more, ", "));
  for (const findings::Returned& one : view.known.returned)
    fmt::print("  back: {} ({})\n", printable(one.acceptance.id), one.why);
  if (!found.empty() || !more.empty()) fmt::print("\n");
}

/// What needs the same thing stands together.
std::vector<std::string> grouped(const std::vector<checkup::Skipped>& skipped) {
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
  for (const checkup::Skipped& one : skipped) {
    auto hit = std::find_if(groups.begin(), groups.end(), [&](const auto& group) { return group.first == one.enable; });
    if (hit == groups.end())
      groups.push_back({one.enable, {one.what}});
    else
      hit->second.push_back(one.what);
  }
  std::vector<std::string> lines;
  for (const auto& [enable, what] : groups) lines.push_back(fmt::format("{} (needs {})", join(what, ", "), enable));
  return lines;
}

}  // namespace

std::string numbers_line(const observers::PredictionSettings& settings, const observers::PredictionResult& result) {
  if (result.metrics.empty()) return "";
  std::string text =
      fmt::format("{} {}", result.metrics[0].name, figure_text(result.metrics[0].name, result.metrics[0].estimate));
  const observers::ClassResult* worst = nullptr;
  for (const observers::ClassResult& about : result.per_class)
    if (about.samples > 0 && (!worst || about.recall < worst->recall)) worst = &about;
  if (worst && result.per_class.size() > 1)
    text += fmt::format("   worst class {}: {:.1f} %", printable(worst->name), 100 * worst->recall);
  if (settings.task != observers::Task::kNumber || settings.tolerance >= 0)
    text += "   " + counted(result.samples - result.correct, "failure");
  return text;
}

void print_view(const CheckView& view, const std::string& numbers, const std::string& tests) {
  fmt::print("\n  {}\n", printable(view.verdict));
  if (!numbers.empty()) fmt::print("  {}\n", numbers);
  fmt::print("\n");
  print_findings(view);
  if (!tests.empty()) fmt::print("  tests     {}\n", tests);
  if (!view.passed.empty()) fmt::print("  passed    {}\n", counted(int64_t(view.passed.size()), "check"));
  bool first = true;
  for (const std::string& line : grouped(view.skipped)) {
    fmt::print("  {}   {}\n", first ? "skipped" : "       ", printable(line));
    first = false;
  }
  if (!view.findings.empty() && view.findings[0].level > Level::kNote) {
    const Finding& top = view.findings[0];
    fmt::print("\n  next      netmend why {}{}\n", printable(findings::shell_word(top.id())),
               top.next.empty() ? "" : "\n            " + printable(top.next[0]));
  }
  if (!view.report.empty()) fmt::print("  report    {}\n", view.report);
}

Json findings_json(const std::vector<Finding>& found) {
  Json list = Json::array();
  for (const Finding& finding : found) {
    list.push_back(findings::to_json(finding));
    if (finding.numbers.contains("toml")) list.back()["toml"] = finding.numbers["toml"];  // what to write down
  }
  return list;
}

Json skipped_json(const std::vector<checkup::Skipped>& skipped) {
  Json list = Json::array();
  for (const checkup::Skipped& one : skipped) list.push_back({{"what", one.what}, {"enable", one.enable}});
  return list;
}

}  // namespace netmend::app
