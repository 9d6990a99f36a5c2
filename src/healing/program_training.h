// A Python program that exposes its settings (netmend.watch.settings, docs/training.md) as something that can be put
// right: it runs again under `netmend watch`, in a copy of its folder, with other settings.
#pragma once

#include "healing/heal.h"

namespace netmend::healing {

struct ProgramRequest {
  std::vector<std::string> command;
  std::string folder;     ///< where it ran
  double seconds = 600;   ///< most that an attempt may take
  bool in_place = false;  ///< run where it is: its folder is too large to copy, or it writes nothing
};

/// The settings that a record shows; empty where the program exposes none.
Knobs exposed_settings(const records::Record& record);
/// Throws InputError when its folder is gone, or too large to be copied.
std::unique_ptr<Training> program_training(ProgramRequest request, Knobs knobs);
/// `NETMEND_SETTINGS='{…}' python train.py`
std::string settings_command(const std::vector<std::string>& command, const Settings& from, const Settings& to);

}  // namespace netmend::healing
