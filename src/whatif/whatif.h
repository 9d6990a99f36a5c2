// What would be, if: the predictions of a network under many changes, without running it from the start for each.
// Inputs go block by block and all changes are tried on a block while its activations are at hand. A change to a few
// units of a layer costs their own new values and what the next operator makes of the difference; anything else costs
// the part of the network that depends on it.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "edits/edit.h"
#include "observers/predictions.h"
#include "stream/pass.h"
#include "whatif/judge.h"

namespace netmend::whatif {

/// A change to try. Without edits and unit it is the network as it is.
struct Question {
  std::vector<edits::Edit> edits;
  /// Instead of edits: one unit's value where the next operator reads it, behind activation and pooling, set to a
  /// number for every input and position.
  int layer = -1;  ///< in the list of layers given to WhatIf
  int64_t unit = -1;
  double held = 0;
  /// Instead of both: a network with the values of Subject::batching's graph that differs from it only in what depends
  /// on the value `from`, which stays what it is.
  std::shared_ptr<const model::Graph> graph = nullptr;
  model::ValueId from = model::kAbsent;
};

struct Options {
  int jobs = 0;        ///< 0 for one per core; changes nothing
  bool keep = false;   ///< keep activations between calls, for searches that come back
  int64_t memory = 0;  ///< bytes that kept activations may take; 0 for a quarter of the budget
  bool plain = false;  ///< no shortcuts: every change runs all that depends on it
};

/// Rows of inputs first … first + rows.size() − 1 under one question. Called block by block in the order of the data,
/// one call at a time.
using Sink = std::function<void(size_t question, int64_t first, std::span<const Judgement> rows)>;

class WhatIf {
 public:
  /// All of `subject`'s data is used. `layers` as stream::find_layers gives them. All three must outlive this.
  WhatIf(const stream::Subject& subject, const observers::PredictionSettings& settings,
         const std::vector<model::Layer>& layers, Options options = {});
  ~WhatIf();

  /// Throws InputError: edits that do not fit, a layer whose units cannot be set. Throws Interrupted on Ctrl-C.
  void ask(std::span<const Question> questions, const Sink& sink);
  /// Whether units of this layer can be set to a number and are changed the short way.
  bool has_shortcut(int layer);
  /// The mean over all inputs of what can be set, by layer and unit; empty for layers without shortcut.
  std::vector<std::vector<double>> means();
  int64_t kept_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// What a question comes to.
struct Tally {
  int64_t inputs = 0, right = 0;
  double loss = 0;                                       ///< sum
  std::vector<int64_t> right_by_class, called_by_class;  ///< of classes

  double accuracy() const { return inputs ? double(right) / double(inputs) : 0; }
  double mean_loss() const { return inputs ? loss / double(inputs) : 0; }
};
/// Asks and adds up.
std::vector<Tally> tally(WhatIf& whatif, const observers::PredictionSettings& settings,
                         std::span<const Question> questions);

}  // namespace netmend::whatif
