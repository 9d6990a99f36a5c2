#include "stats/distributions.h"

#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/fisher_f.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

namespace netmend::stats {

namespace bm = boost::math;

double normal_tail(double z) {
  if (std::isnan(z)) return 1;
  return bm::cdf(bm::complement(bm::normal(), z));
}

double t_tail(double t, double degrees) {
  if (std::isnan(t) || !(degrees > 0)) return 1;
  if (std::isinf(t)) return t > 0 ? 0 : 1;
  return bm::cdf(bm::complement(bm::students_t(degrees), t));
}

double t_quantile_95(double degrees) {
  return degrees > 0 ? bm::quantile(bm::complement(bm::students_t(degrees), 0.025)) : INFINITY;
}

double chi_squared_tail(double x, double degrees) {
  if (!(degrees > 0) || !(x > 0)) return 1;
  return std::isinf(x) ? 0 : bm::cdf(bm::complement(bm::chi_squared(degrees), x));
}

double f_tail(double f, double degrees1, double degrees2) {
  if (!(degrees1 > 0) || !(degrees2 > 0) || !(f > 0)) return 1;
  return std::isinf(f) ? 0 : bm::cdf(bm::complement(bm::fisher_f(degrees1, degrees2), f));
}

double binomial_cdf(int64_t hits, int64_t trials, double p) {
  if (hits < 0) return 0;
  if (hits >= trials) return 1;
  return bm::cdf(bm::binomial(double(trials), p), double(hits));
}

}  // namespace netmend::stats
