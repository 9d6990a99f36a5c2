// The ways to make new inputs from old ones: a row each in one table, a file each.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "inputs/network.h"

namespace netmend::inputs {

/// What a user may ask for; what is left open is the method's own choice (its row).
struct Settings {
  double eps = -1;        ///< how large a change may be: of the range, of the tokens, of a column's deviation
  int64_t steps = 0;      ///< of iterative methods
  double step_size = -1;  ///< of iterative methods, in the units of eps
  double confidence = 0;  ///< C&W: by how much the other class must win
  int64_t attempt = 0;    ///< which draw of a random method this is
  uint64_t seed = 42;
  std::string as_published;                                              ///< deepfault, deephunter, art, or ""
  std::function<at::Tensor(const Originals& originals)> relevance = {};  ///< of each value for the prediction
  at::Tensor pool = {};  ///< rows of the data to borrow values from: ids, or the columns of a table
};

struct Method {
  std::string_view name, about, paper;
  int kinds;          ///< Kinds that it makes sense for, added up
  bool gradients;     ///< needs a network that can be differentiated
  bool random;        ///< another attempt gives another input
  double eps, color;  ///< its own; `color` for images of three channels; 0: does not apply
  int64_t steps;      ///< its own; 0: does not apply
  Changed (*make)(const Network& network, const Originals& originals, const Settings& settings);
  bool on_device = false;  ///< takes inputs that lie on a GPU: nothing but operations on whole tensors
};

std::span<const Method> methods();
/// Throws InputError that suggests the nearest.
const Method& find_method(const std::string& name);
/// Settings with what the row says where the user said nothing. Throws InputError for what cannot be meant.
Settings settle(const Method& method, const Subject& subject, Settings settings);
/// Why a method cannot be used here, "" when it can: `pixels of token ids mean nothing`.
std::string unsuited(const Method& method, const Network& network, const Settings& settings);

/// A number of the range: 0.1 or 8/255. Throws InputError that names the flag.
double parse_share(const std::string& flag, const std::string& text);

/// One file each.
Changed white_noise(const Network&, const Originals&, const Settings&);
Changed relevant_noise(const Network&, const Originals&, const Settings&);
Changed random_noise(const Network&, const Originals&, const Settings&);
Changed fgsm(const Network&, const Originals&, const Settings&);
Changed bim(const Network&, const Originals&, const Settings&);
Changed pgd(const Network&, const Originals&, const Settings&);
Changed jsma(const Network&, const Originals&, const Settings&);
Changed carlini_wagner(const Network&, const Originals&, const Settings&);
Changed deepfault(const Network&, const Originals&, const Settings&);
Changed translate(const Network&, const Originals&, const Settings&);
Changed rotate(const Network&, const Originals&, const Settings&);
Changed scale(const Network&, const Originals&, const Settings&);
Changed shear(const Network&, const Originals&, const Settings&);
Changed contrast(const Network&, const Originals&, const Settings&);
Changed brightness(const Network&, const Originals&, const Settings&);
Changed blur(const Network&, const Originals&, const Settings&);
Changed pixel_change(const Network&, const Originals&, const Settings&);
Changed gaussian(const Network&, const Originals&, const Settings&);
Changed salt_pepper(const Network&, const Originals&, const Settings&);
Changed speckle(const Network&, const Originals&, const Settings&);
Changed occlusion(const Network&, const Originals&, const Settings&);
Changed token_drop(const Network&, const Originals&, const Settings&);
Changed token_swap(const Network&, const Originals&, const Settings&);
Changed token_replace(const Network&, const Originals&, const Settings&);
Changed column_noise(const Network&, const Originals&, const Settings&);
Changed column_permute(const Network&, const Originals&, const Settings&);
Changed category_swap(const Network&, const Originals&, const Settings&);

}  // namespace netmend::inputs
