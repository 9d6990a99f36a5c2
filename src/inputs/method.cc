#include "inputs/method.h"

#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace netmend::inputs {
namespace {

constexpr int kImages = int(Kind::kImage), kQuantities = int(Kind::kImage) + int(Kind::kNumbers),
              kTables = int(Kind::kTable), kTexts = int(Kind::kTokens);
constexpr double kEight = 8.0 / 255;

constexpr Method kMethods[] = {
    {"white-noise", "Gaussian noise on every value", "TensorFuzz, arXiv:1807.10875", kQuantities, false, true, 0.3, 0.3,
     0, white_noise},
    {"relevant-noise", "noise on the 2 % of values that matter most for the prediction",
     "DeepImportance, arXiv:2002.03433", kQuantities, true, true, 0.3, 0.3, 0, relevant_noise},
    {"random-noise", "noise on 2 % of the values, drawn at random", "DeepImportance, arXiv:2002.03433", kQuantities,
     false, true, 0.3, 0.3, 0, random_noise},
    {"fgsm", "one step along the sign of the loss's gradient", "Goodfellow et al., arXiv:1412.6572", kQuantities, true,
     false, 0.1, kEight, 0, fgsm, true},
    {"bim", "iterated FGSM: small steps along that sign", "Kurakin et al., arXiv:1607.02533", kQuantities, true, false,
     0.1, kEight, 10, bim, true},
    {"pgd", "iterated FGSM from a random start within ε", "Madry et al., arXiv:1706.06083", kQuantities, true, true,
     0.1, kEight, 40, pgd, true},
    {"jsma", "changes as few values as possible, two at a time", "Papernot et al., arXiv:1511.07528", kQuantities, true,
     false, 0, 0, 0, jsma},
    {"cw", "the smallest perturbation (L2) that changes the prediction", "Carlini and Wagner, arXiv:1608.04644",
     kQuantities, true, false, 0, 0, 1000, carlini_wagner, true},
    {"deepfault", "raises the activations of the units that --unit names", "DeepFault, arXiv:1902.05974", kQuantities,
     true, false, 0.1, 0.1, 0, deepfault},
    {"translate", "shifted by up to a tenth of the side, 3 pixels at most", "DeepHunter, ISSTA 2019", kImages, false,
     true, 0, 0, 0, translate},
    {"rotate", "rotated by up to 50 degrees", "DeepHunter, ISSTA 2019", kImages, false, true, 0, 0, 0, rotate},
    {"scale", "made smaller or larger", "DeepHunter, ISSTA 2019", kImages, false, true, 0, 0, 0, scale},
    {"shear", "sheared", "DeepHunter, ISSTA 2019", kImages, false, true, 0, 0, 0, shear},
    {"contrast", "weaker or stronger contrast", "DeepHunter, ISSTA 2019", kImages, false, true, 0, 0, 0, contrast},
    {"brightness", "darker or brighter", "DeepHunter, ISSTA 2019", kImages, false, true, 0, 0, 0, brightness},
    {"blur", "one of nine blurs", "DeepTest, arXiv:1708.08559", kImages, false, true, 0, 0, 0, blur},
    {"pixels", "one to nine pixels replaced", "DeepHunter, ISSTA 2019", kImages, false, true, 0, 0, 0, pixel_change},
    {"gaussian", "Gaussian noise within the validity rule", "DeepHunter, ISSTA 2019", kImages, false, true, 0, 0, 0,
     gaussian},
    {"salt-pepper", "single black and white values", "DeepHunter, ISSTA 2019", kImages, false, true, 0, 0, 0,
     salt_pepper},
    {"speckle", "noise that grows with the value", "DeepHunter, ISSTA 2019", kImages, false, true, 0, 0, 0, speckle},
    {"occlusion", "a rectangle is covered", "DeepXplore, arXiv:1705.06640", kImages, false, true, 0, 0, 0, occlusion},
    {"token-drop", "words left out", "experience with text classifiers", kTexts, false, true, 0.1, 0.1, 0, token_drop},
    {"token-swap", "neighbouring words swapped", "experience with text classifiers", kTexts, false, true, 0.1, 0.1, 0,
     token_swap},
    {"token-replace", "words replaced by others of the data", "experience with text classifiers", kTexts, false, true,
     0.1, 0.1, 0, token_replace},
    {"column-noise", "noise on the numeric columns of a row", "by the column's own deviation", kTables, false, true,
     0.1, 0.1, 0, column_noise},
    {"column-permute", "one column takes another row's value", "permutation importance, Breiman 2001", kTables, false,
     true, 0, 0, 0, column_permute},
    {"category-swap", "one category becomes another", "metamorphic tests of fairness", kTables, false, true, 0, 0, 0,
     category_swap},
};

}  // namespace

std::span<const Method> methods() { return kMethods; }

const Method& find_method(const std::string& name) {
  std::vector<std::string> names;
  const std::string asked = lower(name) == "carlini_wagner" ? "cw" : lower(name);  // as the paper's authors are called
  for (const Method& method : kMethods) {
    if (method.name == asked) return method;
    names.emplace_back(method.name);
  }
  names.push_back("fuzz");
  throw InputError(fmt::format("--method {}: there is no such method{}", printable(name), did_you_mean(name, names)),
                   fmt::format("Choose from {}, or all.", join(names, ", ")));
}

double parse_share(const std::string& flag, const std::string& text) {
  double value = 0, below = 1;
  const size_t slash = text.find('/');
  bool good = parse_double(text.substr(0, slash), value);
  if (slash != std::string::npos) good = good && parse_double(text.substr(slash + 1), below) && below > 0;
  if (!good || !std::isfinite(value / below))
    throw InputError(
        fmt::format("{} {} is not a number", flag, printable(text)),
        fmt::format("For example {0} 0.1 or {0} 8/255: a fraction of the valid range of raw values.", flag));
  if (!(value > 0))
    throw InputError(
        fmt::format("{} {}: the size of a perturbation must be above 0", flag, text),
        fmt::format("For example {0} 0.1 or {0} 8/255: a fraction of the valid range of raw values.", flag));
  return value / below;
}

Settings settle(const Method& method, const Subject& subject, Settings settings) {
  const auto& shape = subject.about.shape;
  const bool color = subject.kind == Kind::kImage && shape[subject.about.channels_last ? 2 : 0] == 3;
  if (method.eps == 0)
    settings.eps = 0;
  else if (settings.eps <= 0)
    settings.eps = color ? method.color : method.eps;
  if (method.steps == 0)
    settings.steps = 0;
  else if (settings.steps <= 0)
    settings.steps = method.steps;
  return settings;
}

std::string unsuited(const Method& method, const Network& network, const Settings& settings) {
  const Kind kind = network.changed().kind;
  if (!(method.kinds & int(kind))) {
    if (kind == Kind::kTokens)
      return "a token id plus a little is a different word: token-drop, token-swap and token-replace suit text";
    if (kind == Kind::kTable)
      return "columns have meanings of their own: column-noise, column-permute and category-swap suit tables";
    if (method.kinds == kImages) return fmt::format("it is for images, these are {}", kind_words(kind));
    return fmt::format("it is for {}, these are {}", method.kinds == kTexts ? "token ids" : "tables", kind_words(kind));
  }
  if (method.make == deepfault && network.units().empty())
    return "it needs units whose activations it raises: --unit conv1/7,fc1/3";
  if (method.make == relevant_noise && !settings.relevance)
    return "relevance of the inputs cannot be computed for this model";
  if (method.make == category_swap) {
    for (const std::string& column : network.changed().about.columns)
      if (column.find('=') != std::string::npos) return "";
    return "no column of the table is a category";
  }
  return "";
}

}  // namespace netmend::inputs
