// netmend's own trainer as something that can be put right.
#pragma once

#include "healing/heal.h"
#include "training/train_run.h"

namespace netmend::healing {

/// `request` as run.json of a training has it; `numbers`: its targets are numbers, not classes. The attempts' models
/// are `model.onnx` in their folders.
std::unique_ptr<Training> own_training(training::TrainRequest request, bool numbers);

}  // namespace netmend::healing
