#include <fmt/format.h>

#include <chrono>

#include "base/error.h"
#include "base/text.h"
#include "checkup/trial_checks.h"
#include "inputs/campaign.h"

namespace netmend::checkup {
namespace {

using findings::Sureness;
using inputs::Kind;

/// Changes that no person would mind, and what they are called.
struct Mild {
  const char* method;
  const char* words;
  double eps;   ///< of the range, of tokens, of a column's deviation; the method's own where below 0
  double many;  ///< of right answers that change: worth a word
  int kinds;
};
constexpr Mild kMild[] = {
    {"white-noise", "a little noise", 0.03, 0.1, int(Kind::kImage) | int(Kind::kNumbers)},
    {"brightness", "another brightness", -1, 0.1, int(Kind::kImage)},
    {"contrast", "another contrast", -1, 0.1, int(Kind::kImage)},
    {"translate", "a shift by up to three pixels", -1, 0.3, int(Kind::kImage)},
    {"column-noise", "a little noise on the numbers", 0.05, 0.1, int(Kind::kTable)},
    {"token-drop", "leaving out one word in twenty", 0.05, 0.15, int(Kind::kTokens)},
    {"token-swap", "exchanging one pair of neighbouring words in twenty", 0.05, 0.15, int(Kind::kTokens)},
};
constexpr int64_t kInputs = 600;
constexpr double kFarTooMany = 0.6;  ///< serious

}  // namespace

void check_robustness(const Context& context, double seconds, Found& found) {
  const auto& settings = context.settings;
  if (!settings.by_class()) return found.skipped.push_back({"small changes of inputs", "answers that are classes"});
  if (context.subject.batching.kind != executor::Batching::kAny)
    return found.skipped.push_back({"small changes of inputs", "a model that takes any number of inputs at once"});
  inputs::Chosen chosen;
  std::vector<const observers::SampleRow*> right;
  for (const observers::SampleRow& row : context.test.rows)
    if (row.right != observers::SampleRow::kWrong && row.predicted >= 0) right.push_back(&row);
  for (int64_t i : stream::spread(int64_t(right.size()), kInputs, 0.5)) {
    chosen.samples.push_back(right[size_t(i)]->sample);
    chosen.answers.push_back(int64_t(right[size_t(i)]->predicted));
  }
  if (chosen.count() < 20) return found.skipped.push_back({"small changes of inputs", "at least 20 right answers"});
  try {
    const inputs::Subject changed = inputs::find_subject(context.test.data->info());
    std::optional<inputs::Range> range;
    if (changed.kind != Kind::kTokens) range.emplace(*context.test.data, changed.feature);
    inputs::Network network(context.subject, settings, changed, range ? &*range : nullptr);
    // Rows to borrow from, and whose spread says what a little is.
    at::Tensor pool = context.test.data->read(stream::spread(context.test.data->size(), 512)).inputs[changed.feature];
    if (range) pool = range->units(pool);
    pool = pool.contiguous();
    int64_t tried = 0, told = 0;
    double worst = 0;
    const auto start = std::chrono::steady_clock::now();
    for (const Mild& mild : kMild) {
      if (!(mild.kinds & int(changed.kind))) continue;
      const inputs::Method& method = inputs::find_method(mild.method);
      inputs::Settings how;
      how.seed = context.seed;
      if (mild.eps > 0) how.eps = mild.eps;
      how = inputs::settle(method, changed, how);
      if (!inputs::unsuited(method, network, how).empty()) continue;
      how.pool = pool;
      const double left = seconds - std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      if (left <= 0) {
        found.skipped.push_back({std::string("robustness to ") + mild.words, "a larger --budget"});
        continue;
      }
      inputs::CampaignResult result =
          inputs::run_campaign(network, context.subject, chosen, method, how, {context.jobs, true, false, 1, left});
      ++tried;
      int64_t flipped = 0, made = 0;
      findings::Finding finding;
      std::vector<findings::Shown> shown;
      for (const inputs::Attempt& attempt : result.attempts) {
        made += attempt.made;
        if (!attempt.success()) continue;
        ++flipped;
        if (shown.size() < 8) shown.push_back({"test", attempt.sample});
      }
      if (made < 20) continue;
      const stats::Estimate share = stats::rate(flipped, made);
      worst = std::max(worst, share.value);
      if (share.value < mild.many) continue;
      ++told;
      // Networks that never saw such inputs change some answers; only far too many are a fault of their own.
      const findings::Effect effect{0, share.value >= kFarTooMany ? share.value : std::min(share.value, 0.049)};
      finding = findings::make(
          "fragile", mild.method, words_of(context, {{"change", mild.words}, {"method", mild.method}}), effect,
          Sureness::kSure, fmt::format("{:.0f} % of {} right answers change", 100 * share.value, made),
          fmt::format("Of {} right answers {} ({:.0f} %, {:.0f}–{:.0f}) change under {}.", made, flipped,
                      100 * share.value, 100 * share.low, 100 * share.high, mild.words));
      finding.inputs = std::move(shown);
      found.add(std::move(finding));
    }
    if (tried > 0 && told == 0)
      found.passed.push_back({"small changes of inputs",
                              fmt::format("at most {:.1f} % of answers change ({} kinds)", 100 * worst, tried)});
    if (tried == 0) found.skipped.push_back({"small changes of inputs", "images, a table or tokens"});
  } catch (const InputError& error) {
    found.skipped.push_back({"small changes of inputs", error.what()});
  }
}

}  // namespace netmend::checkup
