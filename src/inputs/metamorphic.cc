// Transformations of images as tests: what a picture shows stays the same, so the prediction should. Xie et al.:
// DeepHunter (ISSTA 2019). A draw that breaks the validity rule is drawn again, up to fifty times; affine
// transformations are valid by the ranges of their parameters. The paper holds contrast, brightness and blur to the
// rule; its published code lets them pass with the affine ones, and so does --as-published deephunter.
#include <ATen/ATen.h>

#include "inputs/method.h"
#include "inputs/mutators.h"

namespace netmend::inputs {
namespace {

constexpr int64_t kDraws = 50;

/// One valid mutant, different from the picture; undefined when no draw gave one.
at::Tensor valid_mutant(const at::Tensor& picture, const Mutator& mutator, bool checked, Random& random) {
  for (int64_t draw = 0; draw < kDraws; ++draw) {
    at::Tensor changed = mutator.apply(picture, random);
    if (at::equal(changed, picture)) continue;
    if (!checked || is_valid(picture, changed)) return changed;
  }
  return {};
}

Changed transformed(const Network& network, const Originals& originals, const Settings& settings,
                    std::string_view name) {
  const Mutator& mutator = find_mutator(name);
  const bool last = network.changed().about.channels_last;
  const bool checked = !mutator.affine && !(settings.as_published == "deephunter" && mutator.unchecked_as_published);
  at::Tensor pictures = (last ? originals.units.permute({0, 3, 1, 2}) : originals.units).contiguous();
  at::Tensor result = pictures.clone();
  Changed changed;
  for (int64_t row = 0; row < originals.count(); ++row) {
    Random random = random_for(settings.seed, name, originals.batch.samples[size_t(row)], settings.attempt);
    at::Tensor mutant = valid_mutant(pictures[row], mutator, checked, random);
    changed.made.push_back(mutant.defined());
    if (mutant.defined()) result[row].copy_(mutant);
  }
  changed.units = last ? result.permute({0, 2, 3, 1}).contiguous() : result;
  return changed;
}

}  // namespace

Changed translate(const Network& n, const Originals& o, const Settings& s) { return transformed(n, o, s, "translate"); }
Changed rotate(const Network& n, const Originals& o, const Settings& s) { return transformed(n, o, s, "rotate"); }
Changed scale(const Network& n, const Originals& o, const Settings& s) { return transformed(n, o, s, "scale"); }
Changed shear(const Network& n, const Originals& o, const Settings& s) { return transformed(n, o, s, "shear"); }
Changed contrast(const Network& n, const Originals& o, const Settings& s) { return transformed(n, o, s, "contrast"); }
Changed brightness(const Network& n, const Originals& o, const Settings& s) {
  return transformed(n, o, s, "brightness");
}
Changed blur(const Network& n, const Originals& o, const Settings& s) { return transformed(n, o, s, "blur"); }
Changed pixel_change(const Network& n, const Originals& o, const Settings& s) { return transformed(n, o, s, "pixels"); }
Changed gaussian(const Network& n, const Originals& o, const Settings& s) { return transformed(n, o, s, "gaussian"); }
Changed salt_pepper(const Network& n, const Originals& o, const Settings& s) {
  return transformed(n, o, s, "salt-pepper");
}
Changed speckle(const Network& n, const Originals& o, const Settings& s) { return transformed(n, o, s, "speckle"); }
Changed occlusion(const Network& n, const Originals& o, const Settings& s) { return transformed(n, o, s, "occlusion"); }

}  // namespace netmend::inputs
