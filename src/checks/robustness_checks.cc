#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "checks/observed.h"
#include "checks/results.h"
#include "checks/rows.h"
#include "findings/phrases.h"
#include "inputs/campaign.h"
#include "inputs/mutators.h"

namespace netmend::checks {
namespace {

using findings::Certainty;
using inputs::Kind;

/// Perturbations that no person would mind, and what they are called.
struct Mild {
  const char* method;
  const char* words;
  double eps;   ///< of the range, of tokens, of a column's deviation; the method's own where below 0
  double many;  ///< of correct predictions that change: worth a finding
  int kinds;
};
constexpr Mild kMild[] = {
    {"white-noise", "Gaussian noise with a standard deviation of 3 % of the range", 0.03, 0.1,
     int(Kind::kImage) | int(Kind::kNumbers)},
    {"brightness", "a change of brightness of up to 20 of 255 levels", -1, 0.1, int(Kind::kImage)},
    {"contrast", "a change of contrast by a factor of 0.5 to 1.2", -1, 0.1, int(Kind::kImage)},
    {"translate", "a shift", -1, 0.3, int(Kind::kImage)},
    {"column-noise", "noise of 5 % of each column's standard deviation", 0.05, 0.1, int(Kind::kTable)},
    {"token-drop", "dropping one token in twenty", 0.05, 0.15, int(Kind::kTokens)},
    {"token-swap", "swapping one in twenty pairs of neighbouring tokens", 0.05, 0.15, int(Kind::kTokens)},
};
constexpr int64_t kInputs = 600, kFewestInputs = 100;
constexpr double kMethods = 4;       ///< of those that suit one kind of data
constexpr double kFarTooMany = 0.6;  ///< serious

}  // namespace

void check_robustness(Observed& seen, Results& found) {
  const auto& settings = seen.settings;
  const char* what = "robustness to small perturbations";
  inputs::Chosen chosen;
  std::vector<const observers::SampleRow*> right;
  for (const observers::SampleRow& row : seen.test->rows)
    if (row.right != observers::SampleRow::kWrong && row.predicted >= 0) right.push_back(&row);
  const bool judged = std::any_of(right.begin(), right.end(),
                                  [](const auto* row) { return row->right == observers::SampleRow::kRight; });
  const std::string predictions = judged ? "correct predictions" : "predictions";  // without labels nobody knows
  if (judged) std::erase_if(right, [](const auto* row) { return row->right != observers::SampleRow::kRight; });
  const double cost = seen.subject().cost;
  const int64_t most =
      std::max<int64_t>(kFewestInputs, seen.session.budget().part(0.2).times(2 * kMethods * cost, kInputs));
  for (int64_t i : stream::spread(int64_t(right.size()), most, 0.5)) {
    chosen.samples.push_back(right[size_t(i)]->sample);
    chosen.predictions.push_back(int64_t(right[size_t(i)]->predicted));
  }
  if (chosen.count() < 20) return found.skip(what, "at least 20 " + predictions);
  try {
    const inputs::Subject changed = inputs::find_subject(seen.test->data->info());
    std::optional<stream::RawRange> range;
    if (changed.kind != Kind::kTokens) range.emplace(*seen.test->data, changed.feature);
    inputs::Network network(seen.subject(), settings, changed, range ? &*range : nullptr);
    // Rows to borrow from, and whose spread says what a little is.
    at::Tensor pool = seen.test->data->read(stream::spread(seen.test->data->size(), 512)).inputs[changed.feature];
    if (range) pool = range->units(pool);
    pool = pool.contiguous();
    int64_t tried = 0, told = 0;
    double worst = 0;
    for (const Mild& mild : kMild) {
      if (!(mild.kinds & int(changed.kind))) continue;
      const inputs::Method& method = inputs::find_method(mild.method);
      inputs::Settings how;
      how.seed = seen.seed();
      if (mild.eps > 0) how.eps = mild.eps;
      how = inputs::settle(method, changed, how);
      if (!inputs::unsuited(method, network, how).empty()) continue;
      how.pool = pool;
      inputs::CampaignResult result =
          inputs::run_campaign(network, seen.subject(), chosen, method, how, {seen.jobs(), true, false, 1});
      ++tried;
      std::string change = mild.words;
      if (mild.method == std::string_view("translate")) {
        const auto& shape = changed.about.shape;  // three axes, channels first or last
        const size_t rows = changed.about.channels_last ? 0 : 1;
        const double pixels = inputs::largest_shift(shape.at(rows), shape.at(rows + 1));
        change += fmt::format(" of up to {:.2g} pixel{}", pixels, pixels == 1 ? "" : "s");
      }
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
      // Networks that never saw such inputs change some predictions; only far too many are a fault of their own.
      const findings::Effect effect{0, share.value >= kFarTooMany ? share.value : std::min(share.value, 0.049)};
      finding = findings::make("not-robust", mild.method, seen.words({{"change", change}, {"method", mild.method}}),
                               effect, Certainty::kConfirmed,
                               fmt::format("{} of {} {} change under {}", findings::percent(share.value),
                                           with_commas(made), predictions, change),
                               fmt::format("Of {} {}, {} ({}; 95 % interval {}) change under {}.", with_commas(made),
                                           predictions, with_commas(flipped), findings::percent(share.value),
                                           findings::percent_range(share.low, share.high), change));
      finding.inputs = std::move(shown);
      found.add(std::move(finding));
    }
    seen.session.budget().spend(2 * double(tried * chosen.count()) * cost);
    seen.session.record(seen.session.test(), "small perturbations", tried * chosen.count());
    if (tried > 0 && told == 0)
      found.pass(what, fmt::format("at most {} of the {} change ({} tried)", findings::percent(worst), predictions,
                                   findings::counted(tried, "perturbation")));
    if (tried == 0) found.skip(what, "images, a table or tokens");
  } catch (const InputError& error) {
    found.skip(what, fmt::format("another model or other data: {}", error.what()));
  }
}

}  // namespace netmend::checks
