// TensorBoard's event files (TensorFlow 1 and 2, PyTorch's SummaryWriter) as a record: scalars only.
#pragma once

#include <string>

#include "records/record.h"

namespace netmend::records {

/// `path` is an event file (`events.out.tfevents…`). Throws InputError when it is none, or holds no scalar that is a
/// loss.
Record read_tensorboard(const std::string& path);

/// `Loss/train`, `epoch_loss`, `train_loss` → loss; `val/acc` → val_accuracy; "" for anything else. `validation`: all
/// of them are of held-out data.
std::string scalar_name(std::string tag, bool validation);

}  // namespace netmend::records
