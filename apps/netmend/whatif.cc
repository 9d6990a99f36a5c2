// netmend whatif: what edits would do, without writing a model.
#include <fmt/format.h>

#include <algorithm>

#include "base/escape.h"
#include "base/text.h"
#include "findings/phrases.h"
#include "netmend/show.h"
#include "observers/figures.h"
#include "repair/repair_run.h"

namespace netmend::app {

int whatif_edits(const Common& common, const WhatIfOptions& options) {
  constexpr size_t kShown = 20;
  session::Session session(request_of(common, options));
  const repair::WhatIfResult result = repair::what_if(session, options.edits);
  const Shell next = Shell::of("netmend apply {} {} -o changed.onnx", session.model_name(), options.edits);
  if (common.json) {
    Json json = repair::to_json(result);
    json["next"] = Json::array({next});
    return print_json(json), 0;
  }
  print("{} with {}  on {}\n  {} {} → {}   {} fixes, {} regressions, {}\n", printable(result.model),
        printable(options.edits), printable(result.data), result.metric,
        observers::figure_text(result.metric, result.before.value),
        observers::figure_text(result.metric, result.after.value), with_commas(result.fixes),
        with_commas(result.regressions), findings::p_text(result.p));
  for (size_t i = 0; i < std::min(kShown, result.alone.size()); ++i)
    print("  {:<24} alone   {:+d} correct   loss {:.4g} → {:.4g}\n", printable(result.alone[i].unit),
          result.alone[i].more_correct, result.loss, result.alone[i].loss);
  print("  next      {}\n", next.text());
  return 0;
}

}  // namespace netmend::app
