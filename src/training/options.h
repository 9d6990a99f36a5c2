// How a training is done: everything that its result depends on, and the number of workers, which changes no bit of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace netmend::training {

enum class Method { kSgd, kMomentum, kAdam, kRmsprop, kAdagrad, kAdamax, kNadam };
enum class LossKind {
  kCrossEntropy,  ///< of the softmax of the logits
  kMse,           ///< mean of squared differences to the output itself
  kBce,           ///< binary cross-entropy of the sigmoid of each logit
};
/// By the names users type (sgd, cross-entropy …). Throw InputError with the nearest.
Method parse_method(const std::string& name);
LossKind parse_loss(const std::string& name);
/// All of them with commas, for help.
std::string method_names();
std::string loss_names();
std::string method_name(Method method);
std::string loss_name(LossKind loss);

/// How the learning rate changes.
struct Schedule {
  enum Kind { kConstant, kStep, kCosine, kLinear } kind = kConstant;
  int64_t epochs = 1;  ///< of kStep: times `factor` after each so many
  double factor = 0.1;

  /// `share` of the whole training that is done, 0 to 1; kCosine and kLinear fall to zero with it.
  double rate(double base, int64_t epoch, double share) const;
  /// Whether the rate depends on how many epochs there will be.
  bool needs_end() const { return kind == kCosine || kind == kLinear; }
};
/// constant, step:EPOCHS:FACTOR, cosine, linear. Throws InputError.
Schedule parse_schedule(const std::string& text);
std::string schedule_text(const Schedule& schedule);

struct Options {
  Method method = Method::kAdam;
  double rate = 0.001, momentum = 0.9;
  double decay = 0;  ///< L2: decay · parameter is added to the gradient
  double l1 = 0;     ///< l1 · sign of the parameter is added to the gradient
  double clip = 0;  ///< largest norm of the gradient of all parameters together; 0 for any. Decay and l1 come behind it
  Schedule schedule;
  std::optional<LossKind> loss;  ///< unset: what fits labels and outputs
  int64_t epochs = 5, batch = 32;
  uint64_t seed = 42;  ///< of the order of inputs and of dropout
  int jobs = 0;        ///< worker threads, 0 for one per core; never changes the result
  std::string device =
      "cpu";  ///< on a GPU the whole batch goes at once: equal results from run to run, to rounding those of a CPU
};
/// Throws InputError for numbers that no training can have (a rate of NaN, a batch of 0).
void check_options(const Options& options);

}  // namespace netmend::training
