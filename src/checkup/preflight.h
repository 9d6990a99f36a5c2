// Are we running the user's model as it was meant? Asked before anything is said about the model. Where the answer is
// no, the usual ways of preparing data are tried on some labelled inputs, and the one that explains the gap is named;
// none is ever applied silently.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "observers/predictions.h"
#include "stats/intervals.h"
#include "stream/pass.h"

namespace netmend::checkup {

/// What the user said should be so.
struct Expected {
  double metric = -1;  ///< what training reported on this data; below 0 when it is not known
  std::string gives;   ///< logits, probabilities, or ""
};

/// Other data that the user may have meant: the name of the split and how to open it.
struct OtherData {
  std::string line;  ///< for netmend.toml: `data = { test = "mnist:test" }`
  std::string words;
  std::function<std::shared_ptr<const dataset::Dataset>()> open;
};

struct PreflightOptions {
  double seconds = 20;  ///< the most that trying set-ups may take when nothing is suspicious
  int jobs = 0;
  std::vector<OtherData> others;
};

/// A set-up that was tried.
struct Tried {
  std::string about, words;  ///< `scale`, `scaled to 0…1`
  std::string line;          ///< to put into netmend.toml; "" when it cannot be said there
  stats::Estimate accuracy;  ///< or the mean error, for numbers
  bool runs = true;          ///< the model takes such inputs at all
};

struct Line {
  std::string text;
  bool holds = true;
};

/// Why nothing can be said about the model.
struct Blocker {
  std::string id;     ///< kind:where, `preprocessing:scale`
  std::string title;  ///< one sentence
  std::string evidence;
  std::string line;   ///< to put into netmend.toml, one line or two; may be empty
  std::string brief;  ///< the evidence in a few words, where a set-up was tried
};

struct Preflight {
  std::vector<Line> lines;   ///< what was looked at, in words
  std::vector<Tried> tried;  ///< as it is first, then the best
  std::optional<Blocker> blocker;
  int64_t inputs = 0;  ///< that set-ups were tried on
};

/// Throws InputError when the model cannot run on the data at all.
Preflight preflight(const stream::Subject& subject, const observers::PredictionSettings& settings,
                    const Expected& expected, const PreflightOptions& options);

}  // namespace netmend::checkup
