// The whole of a repair: search by one method or by all, choose on the selection split, confirm on the hold-out
// split, which no search saw, and say plainly whether it helped.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "observers/flips.h"
#include "repair/methods.h"

namespace netmend::repair {

enum class Verdict {
  kRepaired,      ///< better on unseen data, and not by chance
  kNoRealChange,  ///< what changed may be chance
  kRefuse,        ///< worse, or it pays with a class
};
std::string verdict_name(Verdict verdict);

/// A method, what it found, and how that does on the hold-out split.
struct Tried {
  std::string method;
  std::optional<Candidate> best;
  std::string why_not;            ///< when there is no candidate
  Evaluation selection, holdout;  ///< of the candidate
  int64_t fixed = 0, broken = 0;
  double seconds = 0;
  int64_t weights = 0;    ///< values that the candidate changes
  int64_t looked_at = 0;  ///< states that the method judged on the selection split
};

struct Flipped {
  int64_t sample;
  bool fixed;
  double label, before, after;
};

struct Outcome {
  std::vector<Tried> tried;         ///< cheap alternatives among them
  int chosen = -1;                  ///< in `tried`
  double work = 0;                  ///< multiply-adds that all searches spent
  bool interrupted = false;         ///< by Ctrl-C: methods behind the last one were not tried
  bool cheap_does_as_well = false;  ///< and the one chosen is another
  std::string cheap;                ///< which
  std::string smaller;              ///< why a smaller change than the best-scoring one was taken, a sentence; else ""
  std::string larger;               ///< why a smaller change that comes close was not taken, a sentence; else ""
  Verdict verdict = Verdict::kNoRealChange;
  std::string reason;        ///< of the verdict, a sentence
  Evaluation before, after;  ///< on the hold-out split
  observers::FlipCount flips;
  std::vector<observers::FlipCount> per_class;
  std::vector<Flipped> list;
  double p = 1;            ///< McNemar's exact test
  stats::Estimate change;  ///< of the share that is right (or of the error), after − before
};

/// After Ctrl-C: whether a candidate that one of the methods has found is worth a judgement.
enum class OnInterrupt {
  kThrow,  ///< no: half a search says nothing, and whoever asked has to stop as well
  kJudge,  ///< yes, and no more is searched for; throws where there is none
};
/// `method` is a name of methods() or `auto`. `progress` is told what is being done. Throws Interrupted.
Outcome mend(const Problem& problem, const std::string& method, const std::function<void(const std::string&)>& progress,
             OnInterrupt on_interrupt = OnInterrupt::kThrow);
/// The same with edits that were found elsewhere.
Outcome judge_edits(const Problem& problem, const Candidate& candidate);

}  // namespace netmend::repair
