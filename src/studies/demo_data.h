// What `netmend demo` works on: drawn digits, tests that someone has spoiled, and how good a model is on sound ones.
#pragma once

#include <cstdint>
#include <string>

namespace netmend::studies {

struct DemoSizes {
  int64_t train = 0, test = 0;
};
/// Draws the tests on a contact sheet, eight of each digit.
DemoSizes write_demo_sheet(const std::string& path);

/// The faults in the tests: sevens that are labelled as ones, and dark pixels where training has bright ones.
struct SpoiledTests {
  int64_t mislabelled = 0;
};
SpoiledTests write_spoiled_tests(const std::string& path, uint64_t seed);

/// Accuracy of a model file on some of the sound tests.
double demo_accuracy(const std::string& model, int jobs);
constexpr int64_t kDemoTests = 2000;  ///< that are used for it

}  // namespace netmend::studies
