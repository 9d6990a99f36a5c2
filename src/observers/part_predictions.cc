#include "observers/part_predictions.h"

#include <ATen/ATen.h>

namespace netmend::observers {

std::unique_ptr<stream::State> PartPredictions::fresh() const { return std::make_unique<PartState>(*this); }

void PartState::observe(const stream::View& view) {
  std::vector<int64_t> kept;
  dataset::Batch part;
  for (size_t i = 0; i < view.batch.samples.size(); ++i) {
    if (!observer_.member_(view.batch.samples[i])) continue;
    kept.push_back(int64_t(i));
    part.samples.push_back(view.batch.samples[i]);
  }
  if (kept.empty()) return;
  at::Tensor rows = at::tensor(kept, at::kLong);
  if (view.batch.labels.defined()) part.labels = view.batch.labels.index_select(0, rows);
  at::Tensor chosen;
  judged.observe({part, [&](model::ValueId id) -> const at::Tensor& {
                    const at::Tensor& whole = view.value(id);
                    return chosen = whole.index_select(0, rows.to(whole.device()));
                  }});
}

}  // namespace netmend::observers
