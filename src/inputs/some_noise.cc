// Noise on a few values. Gerasimou, Eniser, Sen, Çakan: Importance-driven deep learning system testing (ICSE 2020,
// arXiv:2002.03433), sets U_DI and U_S: Gaussian noise of deviation 0.3 on the 2 % of pixels that matter most for the
// network's prediction, or on as many pixels drawn at random. A pixel is a place with all its channels, and matters as
// much as they do together.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "inputs/noise.h"

namespace netmend::inputs {

at::Tensor by_place(const at::Tensor& values, const Subject& changed) {
  if (changed.kind != Kind::kImage) return values.flatten(1).unsqueeze(1);
  return changed.about.channels_last ? values.flatten(1, 2).transpose(1, 2) : values.flatten(2);
}

namespace {

constexpr double kShare = 0.02;

at::Tensor noisy_at(const Network& network, const Originals& originals, const Settings& settings,
                    std::string_view method,
                    const std::function<std::vector<int64_t>(int64_t row, int64_t places, int64_t count)>& choose) {
  at::Tensor noise = draw_normal(originals, settings, method);
  at::Tensor kept = at::zeros_like(noise), places = by_place(kept, network.changed());
  const int64_t size = places.size(2), count = std::max<int64_t>(1, std::llround(kShare * double(size)));
  for (int64_t row = 0; row < noise.size(0); ++row)
    for (int64_t place : choose(row, size, count)) places[row].select(1, place).fill_(1);
  return clipped(originals.units + settings.eps * noise * kept, originals.units);
}

}  // namespace

Changed relevant_noise(const Network& network, const Originals& originals, const Settings& settings) {
  at::Tensor relevance = by_place(settings.relevance(originals), network.changed()).sum(1);
  at::Tensor order = std::get<1>(at::sort(relevance.nan_to_num(-INFINITY), true, 1, true)).contiguous();
  return {noisy_at(network, originals, settings, "relevant-noise", [&](int64_t row, int64_t, int64_t count) {
    const int64_t* first = order.data_ptr<int64_t>() + row * order.size(1);
    return std::vector<int64_t>(first, first + count);
  })};
}

Changed random_noise(const Network& network, const Originals& originals, const Settings& settings) {
  return {noisy_at(network, originals, settings, "random-noise", [&](int64_t row, int64_t size, int64_t count) {
    std::vector<int64_t> places(static_cast<size_t>(size));
    std::iota(places.begin(), places.end(), 0);
    random_for(settings.seed, "random-noise places", originals.batch.samples[size_t(row)], settings.attempt)
        .shuffle(places);
    places.resize(size_t(count));
    return places;
  })};
}

}  // namespace netmend::inputs
