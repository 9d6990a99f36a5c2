#include "evidence/identity.h"

#include <fmt/format.h>

#include "executor/layers.h"
#include "findings/phrases.h"
#include "session/split.h"

namespace netmend::evidence {

std::string identity(const session::Session& session) {
  int64_t units = 0, weights = 0;
  std::vector<model::Layer> layers = executor::find_layers(session.graph());
  for (const model::Layer& layer : layers) units += layer.units;
  for (model::ValueId id : executor::find_parameters(session.graph())) weights += session.graph().constant(id).numel();
  using findings::counted;
  return fmt::format("{}  {} · {} · {}", session.model_name(), counted(int64_t(layers.size()), "layer"),
                     counted(units, "unit"), counted(weights, "weight"));
}

int64_t inputs_of(session::Session& session, const std::string& split) {
  if (!session.has_data()) return 0;
  if (split == "test") return session.test().inputs();
  const session::Split* train = session.train();
  return train ? train->inputs() : 0;
}

}  // namespace netmend::evidence
