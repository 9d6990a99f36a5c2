// Healing from a run folder to a document: which kind of training it is, what was tried, what came of it. No tensors:
// commands call it.
#pragma once

#include "healing/heal.h"

namespace netmend::healing {

struct HealRunRequest {
  std::string run;  ///< folder of `netmend train` or `netmend watch`
  /// A program and its arguments. What the run folder says of them must be the same: no file decides what is run.
  std::vector<std::string> program;
  HealRequest heal;                ///< its folder is the run folder of this healing
  bool random = false;             ///< random search at equal cost beside it
  bool in_place = false;           ///< programs: not in a copy of their folder
  double seconds = 600;            ///< programs: most that an attempt may take
  std::string product;             ///< own trainer: the healed model; "" for none
  std::string python = "python3";  ///< reads programs that expose no settings
  int jobs = 0;
};

/// `way` is "trainer", "program" or "proposal"; `healed`, tables and products as docs/training.md tells. Throws
/// InputError.
Json heal_run(const HealRunRequest& request);

}  // namespace netmend::healing
