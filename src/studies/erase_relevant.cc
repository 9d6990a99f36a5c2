#include "studies/erase_relevant.h"

#include <ATen/ATen.h>

#include "inputs/noise.h"

namespace netmend::studies {

inputs::Changed erase_relevant(const inputs::Network& network, const inputs::Originals& originals,
                               const inputs::Settings& settings) {
  at::Tensor relevance = inputs::by_place(settings.relevance(originals), network.changed()).sum(1);
  const int64_t places = relevance.size(1), most = places / 10;
  at::Tensor edge = std::get<0>(relevance.kthvalue(places - most, 1, true));
  at::Tensor half = relevance.amax(1, true) / 2;
  at::Tensor chosen = relevance > edge, value = (relevance <= half).to(at::kFloat);
  at::Tensor units = originals.units.clone(), by_place = inputs::by_place(units, network.changed());
  by_place.copy_(at::where(chosen.unsqueeze(1), value.unsqueeze(1), by_place));
  return {units};
}

}  // namespace netmend::studies
