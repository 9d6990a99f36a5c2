#include "compare/gate_limits.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/escape.h"
#include "base/text.h"
#include "observers/figures.h"

namespace netmend::compare {
namespace {

/// `recall[truck]` → recall, truck
std::pair<std::string, std::string> cut(const std::string& name) {
  size_t open = name.find('[');
  if (open == std::string::npos || name.back() != ']') return {name, ""};
  return {name.substr(0, open), name.substr(open + 1, name.size() - open - 2)};
}

void unknown(const Criterion& criterion, const std::string& head) {
  std::vector<std::string> names = observers::metric_names();
  for (const char* more : {"recall", "precision", "overall_drop", "class_drop", "must_pass", "latency"})
    names.emplace_back(more);
  throw InputError(
      fmt::format("{}: there is no such criterion{}", criterion.line, did_you_mean(head, names)),
      fmt::format("Choose from {}, recall[CLASS], precision[CLASS], METRIC[COLUMN=VALUE], overall_drop, class_drop, "
                  "must_pass and latency.",
                  join(observers::metric_names(), ", ")));
}

bool is_drop(const Criterion& criterion) {
  return criterion.kind == Criterion::kOverallDrop || criterion.kind == Criterion::kClassDrop;
}

bool is_share(const Criterion& criterion) {
  return criterion.kind == Criterion::kRecall || criterion.kind == Criterion::kPrecision ||
         (criterion.kind == Criterion::kMetric && !observers::is_error(criterion.metric));
}

Limit read_limit(const Criterion& criterion) {
  const bool latency = criterion.kind == Criterion::kLatency;
  const char* example = latency               ? "\"<= 5 ms\", the median of one input at a time"
                        : is_drop(criterion)  ? "\"<= 0.5\", in points"
                        : is_share(criterion) ? "\">= 0.90\" or \">= 90 %\""
                                              : "\"<= 2.5\"";
  std::string_view text = trim(criterion.limit);
  Limit limit;
  const std::pair<const char*, Limit::Sign> signs[] = {
      {">=", Limit::kAtLeast}, {"<=", Limit::kAtMost}, {">", Limit::kAbove}, {"<", Limit::kBelow}};
  auto sign = std::find_if(std::begin(signs), std::end(signs), [&](auto& s) { return text.starts_with(s.first); });
  bool read = sign != std::end(signs);
  bool percent = text.ends_with("%");
  double unit = 1;
  if (latency && text.ends_with("ms"))
    text.remove_suffix(2);
  else if (latency && text.ends_with("s"))
    text.remove_suffix(1), unit = 1000;
  if (read) {
    limit.sign = sign->second;
    text.remove_prefix(std::string_view(sign->first).size());
    if (percent) text.remove_suffix(1);
    read = parse_double(trim(text), limit.number) && std::isfinite(limit.number);
  }
  limit.number *= unit;
  if (percent && is_share(criterion)) limit.number /= 100;
  read = read && !(percent && !is_share(criterion));
  if (!read || (is_share(criterion) && (limit.number < 0 || limit.number > 1)))
    fail("{} = \"{}\" should be a limit such as {}", criterion.line, printable(criterion.limit), example);
  return limit;
}

Criterion read_criterion(const session::Config& config, const std::string& name, const std::string& text) {
  auto [head, of] = cut(name);
  Criterion criterion;
  criterion.name = name;
  criterion.limit = text;
  auto line = config.gate_lines.find(name);
  criterion.line =
      fmt::format("{}, line {}: gate.{}", config.decides, line == config.gate_lines.end() ? 0 : line->second, name);
  criterion.of = of;
  const auto& metrics = observers::metric_names();
  if (std::find(metrics.begin(), metrics.end(), head) != metrics.end())
    criterion.kind = Criterion::kMetric, criterion.metric = head;
  else if ((head == "recall" || head == "precision") && !of.empty())
    criterion.kind = head == "recall" ? Criterion::kRecall : Criterion::kPrecision;
  else if (head == "recall" || head == "precision")
    throw InputError(criterion.line + " needs a class", fmt::format("Write \"{}[CLASS]\" = \">= 0.90\".", head));
  else if (name == "overall_drop" || name == "class_drop")
    criterion.kind = head == "overall_drop" ? Criterion::kOverallDrop : Criterion::kClassDrop;
  else if (name == "must_pass")
    criterion.kind = Criterion::kMustPass;
  else if (name == "latency")
    criterion.kind = Criterion::kLatency;
  else
    unknown(criterion, head);
  if (criterion.kind == Criterion::kMetric && !of.empty() && of.find('=') == std::string::npos)
    throw InputError(fmt::format("{}: `{}` is not COLUMN=VALUE", criterion.line, printable(of)),
                     fmt::format("For a class, write recall[{0}] or precision[{0}].", printable(of)));
  if (criterion.kind != Criterion::kMustPass) criterion.bound = read_limit(criterion);
  return criterion;
}

}  // namespace

bool Limit::holds(double value) const {
  switch (sign) {
    case kAtLeast:
      return value >= number;
    case kAbove:
      return value > number;
    case kAtMost:
      return value <= number;
    case kBelow:
      return value < number;
  }
  return false;
}

double Limit::worse_end(const stats::Estimate& estimate) const {
  return sign == kAtLeast || sign == kAbove ? estimate.low : estimate.high;
}

std::vector<Criterion> read_gate(const session::Config& config) {
  if (config.gate.empty() && config.undecided.find("gate") != std::string::npos)
    throw InputError(
        fmt::format("the limits of {} do not count here: a model's folder may be a stranger's", config.path),
        "If they are yours: " + Shell::of("--config {}", config.path).text() + ", or work in that folder.");
  if (config.gate.empty())
    throw InputError(
        config.path.empty() ? "there is no netmend.toml, so there are no limits" : config.path + " sets no limits",
        "Set them in netmend.toml, for example: gate = { accuracy = \">= 0.90\" }");
  std::vector<Criterion> criteria;
  for (const auto& [name, limit] : config.gate) criteria.push_back(read_criterion(config, name, limit));
  return criteria;
}

Ruling decide(const Criterion& criterion, const stats::Estimate& figure, int64_t inputs, bool strict,
              std::string about) {
  Ruling ruling{criterion, figure, inputs, std::move(about)};
  const double limit = criterion.bound.number;
  ruling.pass = criterion.bound.holds(strict ? criterion.bound.worse_end(figure) : figure.value);
  ruling.unclear = criterion.bound.holds(figure.low) != criterion.bound.holds(figure.high);
  // An interval narrows with the root of the inputs: so many times more until its end comes to lie at the limit.
  double away = std::abs(figure.value - limit);
  double reach = limit < figure.value ? figure.value - figure.low : figure.high - figure.value;
  if (ruling.unclear && away > 0) {
    double more = double(inputs) * (std::pow(reach / away, 2) - 1);
    if (more < 1e12) ruling.more = std::max<int64_t>(1, int64_t(std::ceil(more)));
  }
  return ruling;
}

std::string figure_words(const Ruling& ruling) {
  const stats::Estimate& e = ruling.figure;
  if (ruling.criterion.kind == Criterion::kMustPass)
    return fmt::format("{} of {} wrong", with_commas(int64_t(e.value)), with_commas(ruling.inputs));
  if (ruling.criterion.kind == Criterion::kLatency)
    return fmt::format("{:.3g} ms ({:.3g}–{:.3g})", e.value, e.low, e.high);
  if (is_drop(ruling.criterion)) {
    const bool points = !observers::is_error(ruling.criterion.metric);
    return points ? fmt::format("{:.2f} points ({:.2f} to {:.2f})", e.value, e.low, e.high)
                  : fmt::format("{:.4g} ({:.4g} to {:.4g})", e.value, e.low, e.high);
  }
  return observers::figure_text(is_share(ruling.criterion) ? "accuracy" : ruling.criterion.metric, e);
}

std::string doubt_words(const Ruling& ruling) {
  if (!ruling.unclear) return "";
  if (ruling.more == 0)
    return ruling.criterion.kind == Criterion::kLatency ? "unclear: the interval contains the limit"
                                                        : "unclear: the value equals the limit";
  // Two digits are all that such an estimate has.
  double scale = std::pow(10, std::max(0.0, std::floor(std::log10(double(ruling.more))) - 1));
  return fmt::format("unclear: about {} more inputs would decide it",
                     with_commas(int64_t(std::ceil(double(ruling.more) / scale) * scale)));
}

std::string accepted_words(const Ruling& ruling) {
  if (ruling.accepted == 0) return "";
  const std::string count = with_commas(ruling.accepted), verb = ruling.accepted == 1 ? "is" : "are";
  if (ruling.criterion.kind == Criterion::kMustPass)
    return fmt::format("{} more {} wrong and accepted as known", count, verb);
  return fmt::format("{} of the wrong inputs {} accepted as known, but counted here anyway", count, verb);
}

}  // namespace netmend::compare
