// Figures that the paper gives (see deepimportance.h), in percent where they are shares.
#pragma once

#include <optional>
#include <string>

namespace netmend::studies::paper {

struct Figure {
  double mean = 0;
  double sd = -1;  ///< below 0: not given
};

std::optional<double> accuracy(const std::string& model);
/// Table 2: `random` or `important`.
std::optional<Figure> reaction(const std::string& model, const std::string& units);
/// Table 3: sets U_O, U_S, U_DI. Nothing where the paper's program ran out of time.
std::optional<Figure> diversity(const std::string& model, const std::string& criterion, const std::string& set);
/// Table 4: sets U_O, +S, +FGSM, +BIM, +JSMA, +CW.
std::optional<double> effectiveness(const std::string& model, const std::string& criterion, const std::string& set);
/// Table 5: sets U_O, U_O+DI.
std::optional<double> layer(const std::string& model, const std::string& layer, const std::string& set);

}  // namespace netmend::studies::paper
