// What `netmend coverage` prints for people.
#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"
#include "netmend/coverage.h"
#include "netmend/show.h"

namespace netmend::app {
namespace {

using adequacy::Assessment;
using adequacy::Region;
using observers::Figure;

std::string percent(double value) {
  if (value > 0 && value < 0.0005) return "< 0.1 %";
  return fmt::format("{:.1f} %", 100 * value);
}

std::string amount(double value) { return value < 1e15 ? with_commas(int64_t(value)) : fmt::format("{:.2g}", value); }

/// A label and what is to say about it, folded to the width of a page.
void print_item(const std::string& label, const std::string& text) {
  constexpr size_t kWidth = 98, kIndent = 13;
  std::string line = fmt::format("  {:<11}", label);
  size_t used = kIndent;
  bool first = true;
  for (const std::string& word : split(text, ' ')) {
    size_t width = 0;  // characters, not bytes
    for (char c : word) width += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    if (!first && used + 1 + width > kWidth) {
      fmt::print("{}\n", line);
      line = std::string(kIndent, ' ') + word;
      used = kIndent + width;
      continue;
    }
    line += (first ? "" : " ") + word;
    used += width + !first;
    first = false;
  }
  fmt::print("{}\n", line);
}

void print_figures(const CoverageFindings& f) {
  fmt::print("\n    {:<6}{:<54}{:>19}\n", "", "what it wants tried", "tried");
  for (const Figure& figure : f.found.figures) {
    std::string asks(adequacy::criterion_row(figure.name).asks);
    if (figure.name == "IDC")
      asks = fmt::format("combinations of the {:.0f} most important units of {}", figure.parameters[0].number,
                         printable(f.layer));
    std::string tried = figure.name == "NLC" ? "" : amount(figure.covered);
    if (figure.total >= 0) tried += " of " + amount(figure.total);
    std::string share = figure.total >= 0      ? percent(figure.value)
                        : figure.name == "NLC" ? fmt::format("{:.4g}", figure.value)
                                               : "";
    std::string line = fmt::format("    {:<6}{:<54}{:>19}  {:>9}", figure.name,
                                   asks.size() > 53 ? asks.substr(0, 50) + "..." : asks, tried, share);
    line.resize(line.find_last_not_of(' ') + 1);
    fmt::print("{}\n", line);
  }
}

std::string some_ids(const CoverageFindings& f, const std::vector<int64_t>& samples) {
  std::vector<std::string> ids;
  for (size_t i = 0; i < std::min<size_t>(3, samples.size()); ++i) ids.push_back(printable(f.train_id(samples[i])));
  return join(ids, ", ");
}

std::vector<const Region*> untried_regions(const CoverageFindings& f) {
  std::vector<const Region*> untried;
  for (const Region& region : f.found.regions)
    if (region.tests == 0 && region.training > 0) untried.push_back(&region);
  std::stable_sort(untried.begin(), untried.end(), [](auto* a, auto* b) { return a->training > b->training; });
  return untried;
}

/// How much of what training shows the tests show too, in a sentence.
std::string verdict(const CoverageFindings& f) {
  if (f.found.important.empty()) return "";
  const adequacy::Combinations& all = f.found.important.front().combinations;
  const size_t untried = untried_regions(f).size();
  const double share = all.training > 0 ? double(all.both) / double(all.training) : 1;
  const std::string missing =
      untried == 0 ? "" : fmt::format("; {} of important units untried", counted(int64_t(untried), "value region"));
  const char* how = share >= 0.9 ? "nearly all" : share >= 0.6 ? "most" : share >= 0.3 ? "part" : "little";
  if (share >= 1 && untried == 0) return "Tests show what training shows.";
  return fmt::format("Tests show {} of what training shows{}.", how, missing);
}

void print_untried(const CoverageFindings& f) {
  const std::vector<const Region*> untried = untried_regions(f);
  if (!f.found.regions.empty() && untried.empty())
    print_item("regions",
               fmt::format("tests reach all {} value regions of the {} most important units of {}",
                           f.found.regions.size(), f.found.important.back().units.size(), printable(f.layer)));
  for (size_t i = 0; i < std::min<size_t>(3, untried.size()); ++i)
    print_item(i == 0 ? "regions" : "",
               fmt::format("{} from {:.3g} to {:.3g}: no test, {} training inputs (such as {})",
                           printable(f.important_unit(untried[i]->unit)), untried[i]->low, untried[i]->high,
                           with_commas(untried[i]->training), some_ids(f, untried[i]->samples)));
  if (untried.size() > 3) print_item("", fmt::format("and {} more", counted(int64_t(untried.size()) - 3, "region")));
  if (f.found.important.empty()) return;
  const Assessment::Important& first = f.found.important.front();
  const adequacy::Combinations& all = first.combinations;
  print_item("combined",
             fmt::format("training shows {} of {} units, tests show {} of them{}", counted(all.training, "combination"),
                         first.units.size(), with_commas(all.both),
                         all.tests > all.both ? fmt::format(" and {} new", with_commas(all.tests - all.both)) : ""));
  for (size_t i = 0; i < std::min<size_t>(2, all.untried.size()); ++i)
    print_item("", fmt::format("untried: {} like {}", counted(all.untried[i].training, "training input"),
                               some_ids(f, all.untried[i].samples)));
}

/// `conv1/3`, or `conv1/3 at 31` where each position counts.
std::string unit_words(const CoverageFindings& f, int64_t unit) {
  return f.space->name(unit) + (f.space->choice().elements ? fmt::format(" at {}", f.space->position(unit)) : "");
}

void print_low_units(const CoverageOptions& options, const CoverageFindings& f) {
  if (!f.profile || !options.on.empty()) return;
  if (!f.found.highs_judged)
    return print_item("highs", "too few tests to tell whether they drive units as high as training does");
  const auto& low = f.found.low_units;
  if (low.empty())
    return print_item("highs",
                      fmt::format("all {} are driven about as high as in training", counted(f.space->units(), "unit")));
  print_item("highs", fmt::format("{} of {} {} never driven as high as in training", low.size(),
                                  counted(f.space->units(), "unit"), low.size() == 1 ? "is" : "are"));
  for (size_t i = 0; i < std::min<size_t>(2, low.size()); ++i)
    print_item("", fmt::format("{}: tests up to {:.3g}, {}{} training inputs above that (such as {})",
                               printable(unit_words(f, low[i].unit)), low[i].tests,
                               low[i].higher == observers::Peaks::kKept ? "at least " : "", low[i].higher,
                               some_ids(f, low[i].samples)));
}

std::string first_kept(const CoverageFindings& f, const std::vector<adequacy::Kept>& kept) {
  std::vector<std::string> ids;
  for (size_t i = 0; i < std::min<size_t>(5, kept.size()); ++i)
    ids.push_back(printable(f.test_id(f.found.rows[size_t(kept[i].input)].sample)));
  return join(ids, ", ");
}

void print_inputs(const CoverageFindings& f) {
  if (f.found.subset && !f.found.subset->kept.empty()) {
    const auto& kept = f.found.subset->kept;
    const int64_t spare = f.found.inputs - int64_t(kept.size());
    const std::string what =
        spare == 0 ? fmt::format("all {} add something", with_commas(f.found.inputs))
                   : fmt::format("{} of {} try all that the others do; {} add nothing new",
                                 with_commas(int64_t(kept.size())), with_commas(f.found.inputs), with_commas(spare));
    print_item("tests", what + ". Most is added by " + first_kept(f, kept));
  }
  if (f.found.core && !f.found.core->kept.empty())
    print_item("", fmt::format("for {} alone {} are enough", join(f.found.core->criteria, ", "),
                               with_commas(int64_t(f.found.core->kept.size()))));
  const auto& kinds = f.found.surprise;
  auto chosen = std::find_if(kinds.begin(), kinds.end(), [](const auto& kind) { return kind.name == "DSA"; });
  if (chosen == kinds.end()) chosen = kinds.begin();
  if (chosen != kinds.end()) {
    const adequacy::Surprise& surprise = *chosen;
    std::vector<std::string> ids;
    for (size_t row : most_surprising(surprise.scores))
      if (ids.size() < 5 && surprise.scores[row] != 0)
        ids.push_back(fmt::format("{} ({:.3g})", printable(f.test_id(f.found.rows[row].sample)), surprise.scores[row]));
    if (!ids.empty()) print_item("surprise", "least like training: " + join(ids, ", "));
  }
}

void print_skipped(const CoverageFindings& f) {
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const adequacy::Skipped& skipped : f.found.skipped) by_reason[skipped.why].push_back(skipped.what);
  for (const auto& [why, what] : by_reason) print_item("skipped", printable(why) + ": " + join(what, ", "));
}

}  // namespace

void print_coverage(const CoverageOptions& options, const CoverageFindings& f) {
  std::string against = f.profile ? fmt::format("   training {} ({})", with_commas(f.profile->facts.inputs),
                                                printable(f.profile->facts.data))
                                  : "";
  fmt::print("  {} · {}   tests {} ({}){}\n", counted(int64_t(f.space->layers().size()), "layer"),
             counted(f.space->units(), "unit"), with_commas(f.found.inputs), printable(f.tests->info().spec), against);
  if (!options.published.empty()) fmt::print("  figures as {} publishes them\n", lower(options.published));
  if (std::string sentence = verdict(f); !sentence.empty()) fmt::print("\n  {}\n", sentence);
  print_figures(f);
  fmt::print("\n");
  print_untried(f);
  print_low_units(options, f);
  print_inputs(f);
  for (const std::string& note : f.found.notes) print_item("note", printable(note));
  print_skipped(f);
  fmt::print("\n");
  print_item("files", fmt::format("{}/: units.csv{}{}", f.run, f.found.subset ? ", subset.txt (tests to keep)" : "",
                                  f.found.surprise.empty() ? "" : ", surprise.csv"));
  if (!f.next.empty()) fmt::print("  next       {}\n", f.next);
}

}  // namespace netmend::app
