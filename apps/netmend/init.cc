// netmend init: netmend.toml from what model and data tell, each value with its source.
#include "preflight/init.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "base/error.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/text.h"
#include "evidence/json.h"
#include "netmend/show.h"
#include "netmend/terminal.h"

namespace netmend::app {
namespace {

using preflight::ConfigDraft;
using session::Fact;

Json draft_json(const ConfigDraft& draft) {
  Json json = {{"file", draft.file}, {"values", Json::array()}};
  for (const Fact& fact : draft.facts)
    json["values"].push_back({{"key", fact.key}, {"value", fact.value}, {"source", fact.source}});
  if (draft.preflight) json["preflight"] = evidence::preflight_json(*draft.preflight);
  if (draft.blocked()) json["findings"] = Json::array({findings::to_json(draft.finding())});
  return json;
}

/// A long list by its beginning.
std::string shown(const std::string& value) {
  constexpr size_t kMost = 90;
  const size_t cut = value.size() > kMost ? value.rfind(',', kMost) : value.npos;
  return cut == value.npos ? value : value.substr(0, cut) + ", …]";
}

void print_unknown(const ConfigDraft& draft) {
  const std::vector<std::string>& rivals = draft.preflight->rivals;
  print("\n  netmend does not know {}.\n", draft.preflight->unknown);
  print("{}\n\n", rivals.empty() ? "  If you know it, add it to netmend.toml, for example:"
                                 : "  If you know it, add the right line to netmend.toml, probably one of these:");
  if (rivals.empty())
    print("    input.{} = {{ scale = \"1/255\", mean = [0.485, 0.456, 0.406], std = [0.229, 0.224, 0.225] }}\n",
          draft.input);
  for (const std::string& line : rivals) print("    {}\n", printable(line));
}

void print_draft(const ConfigDraft& draft, bool updated, const Shell& next) {
  print("{} {}\n", draft.file, updated ? "updated" : "written");
  for (const Fact& fact : draft.facts)
    if (!fact.source.empty()) {
      print("  {} = {}\n", printable(fact.key), printable(shown(fact.value)));
      print_wrapped("source: " + fact.source, 6);
    }
  for (const preflight::Blocker& adopted : draft.adopted) {
    print("\n");
    print_wrapped(fmt::format("{} {}.", adopted.title, adopted.evidence), 2);
    print_wrapped("This is in netmend.toml now; remove it if it is wrong.", 2);
  }
  if (draft.preflight) {
    print("\n");
    print_preflight(*draft.preflight, draft.metric, OnBlocker::kAsk);
  }
  if (draft.preflight && !draft.preflight->unknown.empty()) print_unknown(draft);
  if (!draft.blocked()) print("\nnext: {}\n", next.text());
}

}  // namespace

int init(const Common& common, const InitOptions& options) {
  const std::filesystem::path folder = std::filesystem::path(options.model).parent_path();
  std::error_code error;
  if (const auto file = folder / "netmend.toml";
      std::filesystem::exists(file, error) && !options.update && !options.force && !options.print)
    throw InputError(fmt::format("{} already exists", file.string()),
                     "--update adds what is missing and keeps the rest, --force replaces it, --print only prints it.");
  const ConfigDraft draft = preflight::draft_config({options.model, options.data, options.train, options.test,
                                                     options.output, common.config, options.update, common.jobs});
  if (options.print) return std::fwrite(draft.text.data(), 1, draft.text.size(), stdout), 0;
  session::parse_config(draft.text, draft.file);  // what is written can be read, or nothing is written
  write_file(draft.file, draft.text);
  if (common.json)
    print_json(draft_json(draft));
  else
    print_draft(draft, draft.existed && options.update,
                folder.empty() ? Shell::of("netmend check") : Shell::of("netmend check {}", options.model));
  return draft.blocked() ? 1 : 0;
}

}  // namespace netmend::app
