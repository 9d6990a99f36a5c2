// What `train` and `demo` print of an epoch.
#pragma once

#include "training/epoch.h"

namespace netmend::app {

void print_epoch_head();
void print_epoch(const training::Epoch& epoch);

}  // namespace netmend::app
