// One function per kind of data; `open` picks by the spec's head.
#pragma once

#include <memory>

#include "dataset/dataset.h"

namespace netmend::dataset {

std::unique_ptr<Dataset> open_glyphs(const Spec& spec);
std::unique_ptr<Dataset> open_mnist(const Spec& spec);  ///< and fashion-mnist, which looks the same
std::unique_ptr<Dataset> open_cifar10(const Spec& spec);
std::unique_ptr<Dataset> open_idx(const Spec& spec);
std::unique_ptr<Dataset> open_cifar(const Spec& spec);
std::unique_ptr<Dataset> open_npy(const Spec& spec);
std::unique_ptr<Dataset> open_npz(const Spec& spec);
std::unique_ptr<Dataset> open_csv(const Spec& spec);
std::unique_ptr<Dataset> open_adult(const Spec& spec);
std::unique_ptr<Dataset> open_images(const Spec& spec);
std::unique_ptr<Dataset> open_saved(const Spec& spec);
std::unique_ptr<Dataset> open_text(const Spec& spec);
std::unique_ptr<Dataset> open_rt_polarity(const Spec& spec);

}  // namespace netmend::dataset
