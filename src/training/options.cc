#include "training/options.h"

#include <cmath>
#include <numbers>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace netmend::training {
namespace {

const std::vector<std::string> kMethods = {"sgd", "momentum", "adam", "rmsprop", "adagrad", "adamax", "nadam"};
const std::vector<std::string> kLosses = {"cross-entropy", "mse", "bce"};
const std::vector<std::string> kSchedules = {"constant", "step", "cosine", "linear"};

int position(const std::string& name, const std::vector<std::string>& names, const char* what) {
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return int(i);
  fail("there is no {} `{}`{}; choose from {}", what, name.substr(0, 60), did_you_mean(name, names), join(names, ", "));
}

}  // namespace

Method parse_method(const std::string& name) { return Method(position(name, kMethods, "optimiser")); }
LossKind parse_loss(const std::string& name) { return LossKind(position(name, kLosses, "loss")); }
std::string method_names() { return join(kMethods, ", "); }
std::string loss_names() { return join(kLosses, ", "); }
std::string method_name(Method method) { return kMethods[size_t(method)]; }
std::string loss_name(LossKind loss) { return kLosses[size_t(loss)]; }

double Schedule::rate(double base, int64_t epoch, double share) const {
  if (kind == kStep) return base * std::pow(factor, double(epoch / epochs));
  if (kind == kCosine) return base * 0.5 * (1 + std::cos(std::numbers::pi * share));
  if (kind == kLinear) return base * (1 - share);
  return base;
}

Schedule parse_schedule(const std::string& text) {
  std::vector<std::string> parts = split(text, ':');
  Schedule schedule;
  schedule.kind = Schedule::Kind(position(parts.empty() ? "" : parts[0], kSchedules, "schedule"));
  if (schedule.kind != Schedule::kStep) {
    if (parts.size() > 1) fail("schedule {} takes no numbers", parts[0]);
    return schedule;
  }
  bool right = parts.size() == 3 && parse_int(parts[1], schedule.epochs) && parse_double(parts[2], schedule.factor) &&
               schedule.epochs > 0 && schedule.factor > 0 && schedule.factor <= 1;
  if (!right)
    throw InputError(
        fmt::format("--schedule {}: expected step:EPOCHS:FACTOR with a factor above 0 and up to 1", text.substr(0, 60)),
        "step:10:0.1 divides the learning rate by ten after every ten epochs.");
  return schedule;
}

std::string schedule_text(const Schedule& schedule) {
  if (schedule.kind == Schedule::kStep) return fmt::format("step:{}:{}", schedule.epochs, schedule.factor);
  return kSchedules[size_t(schedule.kind)];
}

void check_options(const Options& options) {
  if (!(options.rate >= 0) || !std::isfinite(options.rate))
    fail("the learning rate is {}, but must be 0 or more", options.rate);
  if (!(options.momentum >= 0 && options.momentum < 1))
    fail("the momentum coefficient is {}, but must be 0 or more and below 1", options.momentum);
  if (!(options.clip >= 0) || !std::isfinite(options.clip))
    fail("the largest norm of the gradient is {}, but must be 0 (any) or more", options.clip);
  if (!(options.decay >= 0) || !std::isfinite(options.decay))
    fail("the weight decay is {}, but must be 0 or more", options.decay);
  if (!(options.l1 >= 0) || !std::isfinite(options.l1)) fail("the L1 penalty is {}, but must be 0 or more", options.l1);
  if (options.batch < 1 || options.epochs < 0)
    fail("epochs: {}, batch size: {}; expected 0 or more epochs and a batch size of 1 or more", options.epochs,
         options.batch);
}

}  // namespace netmend::training
