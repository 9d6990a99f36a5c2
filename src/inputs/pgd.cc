// Projected gradient descent. Madry, Makelov, Schmidt, Tsipras, Vladu: Towards deep learning models resistant to
// adversarial attacks (ICLR 2018, arXiv:1706.06083): BIM from a place drawn uniformly from the eps-ball. The steps
// together are 4 eps long unless told otherwise: enough to cross the ball and turn back. The paper's step on MNIST,
// a thirtieth of eps with 40 steps, is weaker than BIM.
#include <ATen/ATen.h>

#include "inputs/gradient_sign.h"
#include "inputs/method.h"
#include "inputs/noise.h"

namespace netmend::inputs {

Changed pgd(const Network& network, const Originals& originals, const Settings& settings) {
  const double eps = settings.eps,
               size = settings.step_size > 0 ? settings.step_size : 4 * eps / double(settings.steps);
  at::Tensor start = originals.units + eps * draw_uniform(originals, settings, "pgd");
  return {climb(network, originals, within(start, originals.units, eps), eps, settings.steps, size)};
}

}  // namespace netmend::inputs
