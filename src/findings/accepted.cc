#include "findings/accepted.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <map>
#include <set>

#include "base/text.h"
#include "findings/phrases.h"

namespace netmend::findings {

bool clearly_worse(double value, const Acceptance& acceptance) {
  return value > acceptance.value * acceptance.factor && value > acceptance.value + 0.002;
}

SplitFindings split_accepted(std::vector<Finding> findings, const std::vector<Acceptance>& acceptances,
                             const std::string& today) {
  std::map<std::string, const Acceptance*> by_id;
  for (const Acceptance& acceptance : acceptances) by_id[acceptance.id] = &acceptance;
  std::set<std::string> there;
  SplitFindings split;
  for (Finding& finding : findings) {
    there.insert(finding.id());
    there.insert(finding.related.begin(), finding.related.end());
    auto hit = by_id.find(finding.id());
    std::string why;
    if (hit != by_id.end()) {
      const Acceptance& acceptance = *hit->second;
      if (!acceptance.until.empty() && acceptance.until < today)
        why = "accepted until " + acceptance.until;
      else if (clearly_worse(finding.value, acceptance))
        why =
            fmt::format("it is {} now and was {} when it was accepted", plain(finding.value), plain(acceptance.value));
      if (!why.empty()) split.returned.push_back({acceptance, why});
    }
    (hit != by_id.end() && why.empty() ? split.accepted : split.open).push_back(std::move(finding));
  }
  for (const auto& [id, acceptance] : by_id)
    if (!there.count(id)) split.stale.push_back(*acceptance);
  return split;
}

bool is_day(const std::string& text) {
  int64_t year = 0, month = 0, day = 0;
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return false;
  for (size_t i : {0, 1, 2, 3, 5, 6, 8, 9})
    if (text[i] < '0' || text[i] > '9') return false;
  parse_int(text.substr(0, 4), year), parse_int(text.substr(5, 2), month), parse_int(text.substr(8, 2), day);
  return std::chrono::year_month_day(std::chrono::year(int(year)), std::chrono::month(unsigned(month)),
                                     std::chrono::day(unsigned(day)))
      .ok();
}

std::string today() {
  std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  return fmt::format("{:04}-{:02}-{:02}", local.tm_year + 1900, local.tm_mon + 1, local.tm_mday);
}

}  // namespace netmend::findings
