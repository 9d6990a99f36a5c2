// The report of a run as one HTML file that needs nothing else: drawn from the run folder alone, without any engine.
#pragma once

#include <string>
#include <string_view>

namespace netmend::report {

/// What the page is drawn from, and what it is called, inside a run folder.
inline constexpr const char* kEvidence = "evidence.json";
inline constexpr const char* kPage = "report.html";

/// The page around a report document (docs/formats.md, evidence.json). The text may come from a stranger: throws
/// InputError when it is no JSON, nested too deeply, or not a report that this version can draw; `name` is what the
/// errors call it. Nothing in the document can end the element that holds it.
std::string draw_page(std::string_view document, const std::string& name);

/// Reads evidence.json of the folder and writes report.html beside it. Throws InputError as above.
void write_page(const std::string& run_folder);

}  // namespace netmend::report
