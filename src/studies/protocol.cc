#include "studies/protocol.h"

#include "base/error.h"
#include "base/text.h"
#include "explain/rule.h"

namespace netmend::studies {
namespace {

Protocol published(const std::string& name) {
  Protocol p;
  p.name = name;
  p.idc.rounded = true, p.idc.zeros = IdcForm::kOut, p.idc.swapped = true;
  if (name == "head") p.idc.zeros = IdcForm::kOutOfDense, p.idc.swapped = false, p.idc.layer_before = true;
  p.plain_convolutions = true, p.spread_bias = false;
  p.flip_by_value = true, p.flip_percentile = 98;
  p.noise = 0.75, p.layer_percentile = 90;
  p.copies = 10, p.nc_copies = 5;
  p.cleverhans = p.surprise_alone = p.published_criteria = p.accumulated = true;
  p.layers = p.idc, p.layers.clusters = 3, p.layer_classes = 5;
  return p;
}

}  // namespace

const std::vector<std::string>& protocol_names() {
  static const std::vector<std::string> names{"corrected", "df63927", "head"};
  return names;
}

Protocol find_protocol(const std::string& name) {
  if (name.empty() || name == "corrected") return {};
  for (const std::string& one : protocol_names())
    if (name == one) return published(name);
  throw InputError(fmt::format("--as-published {}: there is no such state of the authors' program{}", printable(name),
                               did_you_mean(name, protocol_names())),
                   "df63927 is the state of the paper, head the newest one; corrected is the default.");
}

Protocol changed(Protocol protocol, const ProtocolChanges& changes) {
  auto choose = [](const char* flag, const std::string& word, const char* no, const char* yes, bool& to) {
    if (word.empty()) return;
    if (word != no && word != yes)
      throw InputError(fmt::format("{} {}: expected {} or {}", flag, printable(word), no, yes));
    to = word == yes;
  };
  if (changes.copies > 0) protocol.copies = protocol.nc_copies = changes.copies;
  if (changes.noise > 0) protocol.noise = changes.noise;
  if (changes.percentile > 0) protocol.percentile = changes.percentile;
  choose("--order", changes.order, "fresh", "accumulated", protocol.accumulated);
  choose("--bias", changes.bias, "keep", "spread", protocol.spread_bias);
  choose("--attacks", changes.attacks, "own", "cleverhans", protocol.cleverhans);
  return protocol;
}

std::string Protocol::text() const {
  const Protocol usual = find_protocol(name);
  std::string text = name;
  if (copies != usual.copies) text += fmt::format(", copies {}", copies);
  if (noise != usual.noise) text += fmt::format(", noise {:g}", noise);
  if (percentile != usual.percentile) text += fmt::format(", percentile {:g}", percentile);
  if (accumulated != usual.accumulated) text += accumulated ? ", accumulated" : ", fresh";
  if (spread_bias != usual.spread_bias) text += spread_bias ? ", biases spread" : ", biases kept";
  if (cleverhans != usual.cleverhans) text += cleverhans ? ", CleverHans" : ", own attacks";
  return text;
}

std::vector<IdcSwitch> idc_switches() {
  std::vector<IdcSwitch> all{{"corrected", {}}};
  auto add = [&](const std::string& name, auto change) {
    IdcSwitch one{name, {}};
    change(one);
    all.push_back(std::move(one));
  };
  add("inputs: all classes at once", [](IdcSwitch& s) { s.form.by_class = false; });
  add("inputs: clusters from wrong ones too", [](IdcSwitch& s) { s.form.right_only = false; });
  add("zeros left out", [](IdcSwitch& s) { s.form.zeros = IdcForm::kOut; });
  add("clusters: rounded, as the program cuts them", [](IdcSwitch& s) { s.form.rounded = true; });
  add("clusters: three a unit", [](IdcSwitch& s) { s.form.clusters = 3; });
  add("clusters swapped between units", [](IdcSwitch& s) { s.form.swapped = true; });
  add("layer: tests read one before", [](IdcSwitch& s) { s.form.layer_before = true; });
  add("relevance: by the program's copy", [](IdcSwitch& s) { s.published_relevance = true; });
  for (const char* name : {"df63927", "head"})
    add("all of " + std::string(name),
        [&](IdcSwitch& s) { s.form = find_protocol(name).idc, s.published_relevance = true; });
  return all;
}

}  // namespace netmend::studies
