#include "observers/task.h"

namespace netmend::observers {

const std::vector<std::string>& metric_names() {
  static const std::vector<std::string> names = {"accuracy", "balanced_accuracy", "f1", "auc", "log_loss", "mae",
                                                 "rmse"};
  return names;
}

bool is_error(const std::string& metric) { return metric == "log_loss" || metric == "mae" || metric == "rmse"; }

}  // namespace netmend::observers
