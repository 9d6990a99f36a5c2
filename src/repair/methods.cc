#include "repair/methods.h"

#include "base/error.h"
#include "base/text.h"

namespace netmend::repair {
namespace {

constexpr Method kMethods[] = {
    {"bias", "final biases, or the threshold", shift_biases, true, 0.1},
    {"temperature", "one number that calibrates the confidence; changes no prediction", set_temperature, true, 0.05},
    {"surgical", "gradient descent on the weights of a few located units", surgical, false, 0.55},
    {"retrain", "all weights, on failing inputs mixed with passing ones", retrain, false, 0.3},
    {"arachne", "differential evolution on a few single weights", arachne, false, 0.3},
    {"arachne-pso", "a particle swarm on the same weights, as Arachne's first version", arachne_pso, false, 0},
    {"sbfl-mutation", "suspicious units mutated one after another until it stops helping", sbfl_mutation, false, 0},
};

}  // namespace

std::span<const Method> methods() { return kMethods; }

std::string method_names() {
  std::vector<std::string> names = {"auto"};
  for (const Method& method : kMethods) names.emplace_back(method.name);
  return join(names, ", ");
}

const Method& find_method(const std::string& name) {
  std::vector<std::string> names = {"auto"};
  for (const Method& method : kMethods) {
    if (method.name == name) return method;
    names.emplace_back(method.name);
  }
  throw InputError(fmt::format("there is no repair method `{}`{}", printable(name), did_you_mean(name, names)),
                   "Choose from " + method_names() + ".");
}

}  // namespace netmend::repair
