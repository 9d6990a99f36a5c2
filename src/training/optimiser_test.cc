#include "training/optimiser.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"

namespace netmend::training {
namespace {

/// The rules one number at a time, in double, as the papers write them.
struct Twin {
  double p, first = 0, second = 0, product = 1;

  void step(const StepForm& f, double g) {
    g += f.decay * p;
    if (f.method == Method::kSgd) p -= f.rate * g;
    if (f.method == Method::kMomentum) first = f.momentum * first + g, p -= f.rate * first;
    if (f.method == Method::kRmsprop) first = 0.99 * first + 0.01 * g * g, p -= f.rate * g / (std::sqrt(first) + 1e-8);
    if (f.method == Method::kAdagrad) first += g * g, p -= f.rate * g / (std::sqrt(first) + 1e-10);
    if (state_count(f.method) < 2) return;
    first = 0.9 * first + 0.1 * g;
    second =
        f.method == Method::kAdamax ? std::max(0.999 * second, std::abs(g) + 1e-8) : 0.999 * second + 0.001 * g * g;
    const double mean = first / (1 - std::pow(0.9, f.step)), square = second / (1 - std::pow(0.999, f.step));
    if (f.method == Method::kAdam) p -= f.rate * mean / (std::sqrt(square) + 1e-8);
    if (f.method == Method::kAdamax) p -= f.rate * mean / second;
    if (f.method != Method::kNadam) return;
    const double now = 0.9 * (1 - 0.5 * std::pow(0.96, f.step * 0.004));
    const double next = 0.9 * (1 - 0.5 * std::pow(0.96, (f.step + 1) * 0.004));
    product *= now;
    const double size = std::sqrt(square) + 1e-8;
    p -= f.rate * (1 - now) / (1 - product) * g / size + f.rate * next / (1 - product * next) * first / size;
  }
};

class Optimisers : public testing::TestWithParam<Method> {};

TEST_P(Optimisers, EqualTheirSlowTwins) {
  Random random(3);
  for (int64_t count : {1, 7, 16, 100}) {
    std::vector<float> p, first(size_t(count), 0), second(size_t(count), 0), g(size_t(count), 0);
    std::vector<Twin> twins;
    for (int64_t i = 0; i < count; ++i) p.push_back(float(random.normal())), twins.push_back({p.back()});
    for (int64_t step = 1; step <= 20; ++step) {
      StepForm form{GetParam(), 0.01, 0.9, 0.05, step};
      for (float& x : g) x = float(random.normal());
      update(form, p.data(), g.data(), first.data(), second.data(), count);
      for (int64_t i = 0; i < count; ++i) twins[size_t(i)].step(form, g[size_t(i)]);
    }
    for (int64_t i = 0; i < count; ++i) EXPECT_NEAR(p[size_t(i)], twins[size_t(i)].p, 2e-5) << i << " of " << count;
  }
}

/// Segments may be cut anywhere.
TEST_P(Optimisers, AreTheSameInPieces) {
  auto run = [](int64_t piece) {
    Random random(5);
    std::vector<float> p(333, 0.1f), g(333, 0), a(333, 0), b(333, 0);
    for (float& x : g) x = float(random.normal());
    for (int64_t at = 0; at < 333; at += piece)
      update({GetParam(), 0.1, 0.9, 0, 1}, &p[size_t(at)], &g[size_t(at)], &a[size_t(at)], &b[size_t(at)],
             std::min(piece, 333 - at));
    return p;
  };
  EXPECT_EQ(run(333), run(10));
}

INSTANTIATE_TEST_SUITE_P(All, Optimisers,
                         testing::Values(Method::kSgd, Method::kMomentum, Method::kAdam, Method::kRmsprop,
                                         Method::kAdagrad, Method::kAdamax, Method::kNadam),
                         [](const auto& info) { return method_name(info.param); });

TEST(Schedules, FollowTheirFormulas) {
  EXPECT_DOUBLE_EQ(parse_schedule("constant").rate(0.1, 9, 0.9), 0.1);
  EXPECT_DOUBLE_EQ(parse_schedule("step:2:0.5").rate(0.1, 5, 0.5), 0.1 * 0.25);
  EXPECT_NEAR(parse_schedule("cosine").rate(0.1, 0, 0.5), 0.05, 1e-12);
  EXPECT_DOUBLE_EQ(parse_schedule("linear").rate(0.1, 0, 0.75), 0.025);
  for (const char* text :
       {"", "cos", "step", "step:0:0.1", "step:2:0", "step:2:nan", "step:2:2", "step:2:0.1:3", "cosine:3"})
    EXPECT_ANY_THROW(parse_schedule(text)) << text;
}

TEST(Options, ImpossibleNumbersAreRefused) {
  EXPECT_ANY_THROW(parse_method("adm"));
  EXPECT_ANY_THROW(check_options({.rate = std::nan("")}));
  EXPECT_ANY_THROW(check_options({.momentum = 1}));
  EXPECT_ANY_THROW(check_options({.batch = 0}));
  EXPECT_NO_THROW(check_options({}));
}

}  // namespace
}  // namespace netmend::training
