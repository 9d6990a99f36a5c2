#include "selection/confident_joint.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace netmend::selection {
namespace {

TEST(ConfidentJoint, GivesWhatIsWorkedOutByHand) {
  const std::vector<int64_t> labels = {0, 0, 0, 1, 1, 1};
  std::vector<double> p;
  for (double one : {.1, .2, .9, .8, .7, .3}) p.push_back(1 - one), p.push_back(one);
  const ConfidentJoint found = confident_joint(p, labels, 2);
  EXPECT_NEAR(found.thresholds[0], 0.6, 1e-12);
  EXPECT_NEAR(found.thresholds[1], 0.6, 1e-12);
  EXPECT_EQ(found.counts, (std::vector<std::vector<int64_t>>{{2, 1}, {1, 2}}));
  EXPECT_EQ(found.counted, 6);
  EXPECT_NEAR(found.joint[0][0], 2.0 / 6, 1e-12);
  EXPECT_NEAR(found.noise[1][0], 1.0 / 3, 1e-12);
  EXPECT_NEAR(found.inverse[0][1], 1.0 / 3, 1e-12);
  EXPECT_NEAR(found.prior[0], 0.5, 1e-12);
  for (const std::string& filter : label_filters())
    EXPECT_EQ(filtered(filter, found, p, labels), (std::vector<int64_t>{2, 5})) << filter;
  EXPECT_THROW(filtered("by-clas", found, p, labels), InputError);
}

TEST(ConfidentJoint, AClassWithoutInputsIsNeverSeen) {
  const std::vector<int64_t> labels = {0, 0, 2};
  const std::vector<double> p = {.8, .1, .1, .2, .7, .1, .1, .2, .7};
  const ConfidentJoint found = confident_joint(p, labels, 3);
  EXPECT_EQ(found.thresholds[1], 2);
  EXPECT_EQ(found.counts[0][1], 0);
  EXPECT_EQ(found.counts[1][1], 1);  // the diagonal is never 0
  EXPECT_EQ(found.calibrated[1][1], 0);
  EXPECT_EQ(found.calibrated[0][0] + found.calibrated[0][2], 2);
}

}  // namespace
}  // namespace netmend::selection
