#include "stats/distributions.h"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/fisher_f.hpp>
#include <boost/math/distributions/hypergeometric.hpp>
#include <boost/math/distributions/non_central_t.hpp>
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

double t_power_95(double degrees, double noncentrality) {
  if (!(degrees > 0) || std::isnan(noncentrality)) return 0;
  if (std::abs(noncentrality) > 200) return 1;  // which it is far beyond, and where the series take long
  const bm::non_central_t drawn(degrees, std::abs(noncentrality));
  const double limit = t_quantile_95(degrees);
  return bm::cdf(bm::complement(drawn, limit)) + bm::cdf(drawn, -limit);
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

double binomial_tail(int64_t hits, int64_t trials, double p) {
  if (hits <= 0 || std::isnan(p)) return 1;
  if (hits > trials || p <= 0) return 0;
  if (p >= 1) return 1;
  return bm::cdf(bm::complement(bm::binomial(double(trials), p), double(hits - 1)));
}

double fisher_tail(int64_t hits, int64_t count, int64_t all_hits, int64_t all) {
  if (count < 0 || all_hits < 0 || count > all || all_hits > all) return 1;
  const int64_t least = std::max<int64_t>(0, count + all_hits - all), most = std::min(count, all_hits);
  if (hits <= least) return 1;
  if (hits > most) return 0;
  return bm::cdf(bm::complement(bm::hypergeometric(uint64_t(all_hits), uint64_t(count), uint64_t(all)), hits - 1));
}

}  // namespace netmend::stats
