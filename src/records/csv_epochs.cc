#include "records/csv_epochs.h"

#include <cmath>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace netmend::records {
namespace {

constexpr size_t kMostColumns = 1000;

/// Lightning's names as Keras writes them: `train_loss_epoch` is `loss`, `val_acc` is `val_accuracy`.
std::string usual_name(std::string name) {
  name = lower(trim(name));
  if (name.ends_with("_epoch")) name.resize(name.size() - 6);
  for (const auto& [from, to] :
       {std::pair{"train_", ""}, {"train/", ""}, {"training_", ""}, {"val/", "val_"}, {"valid_", "val_"}})
    if (name.starts_with(from)) name = to + name.substr(std::string(from).size());
  if (name == "acc" || name == "val_acc") name += "uracy";
  return name;
}

}  // namespace

Record read_csv_epochs(const std::string& path) {
  Record record;
  record.path = path;
  const std::string text = read_file(path, int64_t(256) << 20);
  std::vector<std::string> names;
  bool has_loss = false;
  for (const std::string& row : split(text, '\n')) {
    if (trim(row).empty()) continue;
    const std::vector<std::string> fields = split(trim(row), ',');
    if (names.empty()) {
      for (const std::string& field : fields)
        if (names.size() < kMostColumns) names.push_back(usual_name(field));
      for (const std::string& name : names) has_loss = has_loss || name == "loss" || name == "val_loss";
      if (!has_loss)
        throw InputError(fmt::format("{} has no column `loss` or `val_loss`", path),
                         "A CSV of epochs has a row per epoch and columns such as epoch, loss, accuracy, val_loss.");
      continue;
    }
    Epoch epoch;
    epoch.epoch = int64_t(record.epochs.size()) + 1;
    for (size_t i = 0; i < fields.size() && i < names.size(); ++i) {
      double value = NAN;
      const std::string field = lower(trim(fields[i]));
      if (field.empty()) continue;
      if (!parse_double(field, value) && field != "nan") continue;
      if (names[i] == "epoch" || names[i] == "step") continue;
      (names[i] == "lr" || names[i] == "learning_rate" ? epoch.rate : epoch.metrics[names[i]]) = value;
    }
    // Lightning writes the training row and the validation row of an epoch one after the other.
    if (!record.epochs.empty() && !epoch.metrics.empty()) {
      Epoch& before = record.epochs.back();
      bool apart = true;
      for (const auto& [name, value] : epoch.metrics)
        apart = apart && before.metrics.find(name) == before.metrics.end();
      if (apart) {
        before.metrics.insert(epoch.metrics.begin(), epoch.metrics.end());
        continue;
      }
    }
    if (!epoch.metrics.empty()) record.epochs.push_back(std::move(epoch));
  }
  if (record.epochs.empty()) fail("{} has no row with numbers", path);
  record.troubles.emplace_back(
      "a CSV of epochs has no gradients, weights or data: only rules about losses and metrics apply");
  return record;
}

}  // namespace netmend::records
