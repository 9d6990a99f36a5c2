// One split of the data with the model made ready to run on it.
#pragma once

#include <memory>
#include <string>

#include "dataset/spec.h"
#include "stream/pass.h"

namespace netmend::session {

struct Split {
  std::string name;  ///< test or train
  dataset::Spec spec;
  std::shared_ptr<const dataset::Dataset> data;  ///< all of it, or the first inputs that --limit allows
  stream::Subject subject;                       ///< fed by what is used: all of it, or a sample

  /// As it can be typed; of data in memory its name.
  std::string typed() const { return spec.head.empty() ? spec.text : dataset::spec_text(spec); }
  int64_t inputs() const { return data->size(); }
  int64_t used() const { return subject.data->size(); }
  bool sampled() const { return used() < inputs(); }
};

}  // namespace netmend::session
