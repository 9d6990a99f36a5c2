// Figures that others published, on their data (NETMEND_DATA).
#include <gtest/gtest.h>

#include "base/error.h"
#include "training/trainer.h"
#include "zoo/zoo.h"

namespace netmend::training {
namespace {

class SlowFigures : public testing::Test {
 protected:
  /// False, with the test skipped, when the data is not there.
  bool open(const std::string& name) {
    try {
      train = dataset::open(name + ":train"), test = dataset::open(name + ":test");
      return true;
    } catch (const InputError& error) {
      reason = error.what();
      return false;
    }
  }

  std::vector<Epoch> history(const std::string& name, Options options) const {
    model::Graph graph = zoo::make(name, {.seed = options.seed});
    model::ValueId output = graph.outputs[0];
    Trainer trainer({name, std::move(graph), output, train, test, options});
    while (!trainer.done()) trainer.run_epoch();
    return trainer.history();
  }

  /// The thesis: Adam 0.001, batches of 32, Glorot weights; mean of three seeds after one epoch and after six.
  void expect_accuracy(const std::string& name, double after_one, double after_six, double tolerance) const {
    double one = 0, six = 0;
    for (uint64_t seed : {1, 2, 3}) {
      std::vector<Epoch> epochs = history(name, {.epochs = 6, .seed = seed});
      one += 100 * epochs[0].val_accuracy / 3, six += 100 * epochs[5].val_accuracy / 3;
    }
    RecordProperty("after_one_epoch", std::to_string(one));
    RecordProperty("after_six_epochs", std::to_string(six));
    fmt::print("{}: {:.2f} % after one epoch, {:.2f} % after six\n", name, one, six);
    EXPECT_NEAR(one, after_one, tolerance) << name;
    EXPECT_NEAR(six, after_six, tolerance) << name;
  }

  std::shared_ptr<const dataset::Dataset> train, test;
  std::string reason;
};

TEST_F(SlowFigures, FashionNetworksOfTheThesis) {
  if (!open("fashion-mnist")) GTEST_SKIP() << reason;
  expect_accuracy("dnn1", 82.84, 84.23, 1.5);
  // Trained once there; plain PyTorch with the same settings gives 81.6 and 85.5 (three seeds), ours 82.3 and 85.7.
  expect_accuracy("dnn2", 80.46, 83.52, 2.5);
}

TEST_F(SlowFigures, LeNetsReachTheirPublishedAccuracy) {
  if (!open("mnist")) GTEST_SKIP() << reason;
  struct Published {
    const char* name;
    double accuracy;
    int64_t epochs;
  };
  for (Published p : {Published{"lenet1", 98.3, 6}, Published{"lenet4", 98.6, 3}, Published{"lenet5", 98.9, 4}}) {
    double reached =
        100 * history(p.name, {.rate = 0.002, .schedule = parse_schedule("linear"), .epochs = p.epochs, .batch = 64})
                  .back()
                  .val_accuracy;
    fmt::print("{}: {:.2f} % after {} epochs\n", p.name, reached, p.epochs);
    EXPECT_GE(reached, p.accuracy) << p.name;
  }
}

}  // namespace
}  // namespace netmend::training
