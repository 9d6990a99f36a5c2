// One function a kind of data; `open` picks by the spec's head.
#pragma once

#include <memory>

#include "dataset/dataset.h"

namespace netmend::dataset {

std::unique_ptr<Dataset> open_glyphs(const Spec& spec);
std::unique_ptr<Dataset> open_mnist(const Spec& spec);  ///< and fashion-mnist, which looks the same
std::unique_ptr<Dataset> open_cifar10(const Spec& spec);
std::unique_ptr<Dataset> open_idx(const Spec& spec);
std::unique_ptr<Dataset> open_cifar(const Spec& spec);

}  // namespace netmend::dataset
