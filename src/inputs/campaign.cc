#include "inputs/campaign.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <chrono>
#include <cmath>
#include <sstream>
#include <type_traits>

#include "base/pool.h"
#include "base/progress.h"
#include "cluster/ranks.h"
#include "executor/runtime.h"

namespace netmend::inputs {
namespace {

/// Half of what a pass takes at once: attacks take long, and few inputs should keep all cores busy.
constexpr int64_t kTogether = 32;
constexpr int64_t kTogetherOnDevice = 2048;  ///< a few such batches at once keep a GPU busy

int64_t elements(const dataset::Feature& feature) {
  int64_t count = 1;
  for (int64_t size : feature.shape) count *= std::max<int64_t>(size, 1);
  return count;
}

/// What becomes of one batch.
struct Piece {
  at::Tensor raw, mask;
  std::vector<Attempt> attempts;
};

class Campaign {
 public:
  Campaign(const Network& network, const stream::Subject& subject, const Chosen& chosen, const Method& method,
           const Settings& settings, const CampaignOptions& options)
      : network_(network),
        subject_(subject),
        chosen_(chosen),
        method_(method),
        settings_(settings),
        options_(options) {}

  CampaignResult run() {
    auto start = std::chrono::steady_clock::now();
    const int64_t size = campaign_batch(subject_);
    const bool timed = options_.budget.timed();
    const double each = work_per_input(method_, settings_, network_, subject_.cost, options_.attempts);
    const int64_t all = chosen_.count(), count = timed || !options_.budget.limited()
                                                     ? all
                                                     : std::min(all, std::max(size, options_.budget.times(each, all)));
    const int64_t batches = (count + size - 1) / size;
    std::vector<Piece> done(static_cast<size_t>(batches));
    CampaignResult result;
    result.cut = count < all;
    Progress progress(std::string(method_.name) + " inputs", count, options_.quiet);
    auto spent = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
    auto work = [&](int64_t item, int) {
      if (item > 0 && timed && options_.budget.left() <= 0) return;
      done[size_t(item)] = make(item * size, std::min(size, count - item * size));
    };
    bool ended = false;  // by the clock
    auto hand_over = [&](int64_t item) {
      ended = ended || done[size_t(item)].attempts.empty();
      if (ended) return;  // what follows would leave a gap
      keep(result, std::move(done[size_t(item)]), item * size, count);
      progress.advance(std::min(size, count - item * size));
    };
    try {
      if (cluster::size() > 1 && !timed)
        share_out(batches, work, done, hand_over);
      else
        in_order(
            batches, options_.jobs > 0 ? options_.jobs : cores(), [](int) { executor::enter_worker(); }, work,
            hand_over);
    } catch (const Interrupted&) {
      result.interrupted = true;
    }
    result.cut = result.cut || ended;
    const int64_t made = int64_t(result.attempts.size());
    if (result.raw.defined()) result.raw = result.raw.narrow(0, 0, made);
    if (result.mask.defined()) result.mask = result.mask.narrow(0, 0, made);
    result.seconds = spent();
    return result;
  }

 private:
  /// Each rank of an MPI job makes a part of the batches, and all get all of them.
  void share_out(int64_t batches, const std::function<void(int64_t, int)>& work, std::vector<Piece>& done,
                 const std::function<void(int64_t)>& hand_over) const {
    auto first = [&](int64_t rank) { return batches * rank / cluster::size(); };
    const int64_t from = first(cluster::rank()), to = first(cluster::rank() + 1);
    cluster::together(
        [&] {
          in_order(
              to - from, options_.jobs > 0 ? options_.jobs : cores(), [](int) { executor::enter_worker(); },
              [&](int64_t item, int worker) { work(from + item, worker); }, [](int64_t) {});
          std::ostringstream out;
          for (int64_t item = from; item < to; ++item) save(out, done[size_t(item)]);
          return std::move(out).str();
        },
        [&](int rank, std::string bytes) {
          std::istringstream in(std::move(bytes));
          for (int64_t item = first(rank); item < first(rank + 1); ++item) {
            done[size_t(item)] = load(in);
            hand_over(item);
          }
        });
  }

  static void save(std::ostream& out, const Piece& piece) {
    static_assert(std::is_trivially_copyable_v<Attempt>);
    stream::put(out, std::string(reinterpret_cast<const char*>(piece.attempts.data()),
                                 piece.attempts.size() * sizeof(Attempt)));
    stream::put(out, piece.raw);
    stream::put(out, int64_t(piece.mask.defined()));
    if (piece.mask.defined()) stream::put(out, piece.mask);
  }

  static Piece load(std::istream& in) {
    Piece piece;
    const std::string bytes = stream::get_text(in);
    piece.attempts.resize(bytes.size() / sizeof(Attempt));
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(piece.attempts.data()));
    piece.raw = stream::get_tensor(in);
    if (stream::get_int(in)) piece.mask = stream::get_tensor(in);
    return piece;
  }

  Piece make(int64_t first, int64_t count) const {
    at::NoGradGuard no_grad;
    Originals originals = read_originals(network_, subject_, chosen_, first, count);
    Piece piece = attempt(originals, 0);
    for (int64_t again = 1; method_.random && again < options_.attempts; ++again) {
      std::vector<int64_t> open;
      for (int64_t i = 0; i < count; ++i)
        if (!piece.attempts[size_t(i)].success()) open.push_back(i);
      if (open.empty()) break;
      at::Tensor rows = at::tensor(open, at::kLong);
      Piece other = attempt(originals.rows(rows), again);
      for (size_t i = 0; i < open.size(); ++i) {
        Attempt& old = piece.attempts[size_t(open[i])];
        if (!other.attempts[i].success() && (old.made || !other.attempts[i].made)) continue;
        old = other.attempts[i];
        piece.raw[open[i]].copy_(other.raw[int64_t(i)]);
        if (piece.mask.defined()) piece.mask[open[i]].copy_(other.mask[int64_t(i)]);
      }
    }
    return piece;
  }

  Piece attempt(const Originals& originals, int64_t number) const {
    Settings settings = settings_;
    settings.attempt = number;
    Changed changed = make_where_it_is_fast(originals, settings);
    Piece piece;
    at::Tensor units = changed.units;
    piece.mask = changed.mask;
    if (network_.range()) {
      piece.raw = raw_of(originals, units);
      // What was not touched is equal, not nearly so.
      if (options_.round)
        units = at::where(changed.units == originals.units, originals.units,
                          network_.range()->units(network_.range()->fed(piece.raw)));
    } else {
      piece.raw = units;
    }
    at::Tensor after = network_.predictions(originals, units, changed.mask).contiguous();
    std::vector<Distance> far = distances(originals.units, units, !network_.range());
    for (int64_t i = 0; i < originals.count(); ++i) {
      Attempt one;
      one.sample = originals.batch.samples[size_t(i)];
      if (originals.batch.labels.defined() && originals.batch.labels.dim() == 1)
        one.label = originals.batch.labels[i].item().toLong();
      one.before = originals.predictions.data_ptr<int64_t>()[i];
      one.after = after.data_ptr<int64_t>()[i];
      one.made = changed.made.empty() || changed.made[size_t(i)];
      one.distance = far[size_t(i)];
      piece.attempts.push_back(one);
    }
    return piece;
  }

  /// Methods that follow gradients step by step do so on the network's device; what they make is back on the CPU.
  Changed make_where_it_is_fast(const Originals& originals, const Settings& settings) const {
    if (subject_.device.is_cpu() || !method_.on_device) return method_.make(network_, originals, settings);
    Originals there = originals;
    for (at::Tensor& input : there.batch.inputs) input = input.to(subject_.device);
    for (at::Tensor& mask : there.batch.masks)
      if (mask.defined()) mask = mask.to(subject_.device);
    there.units = originals.units.to(subject_.device);
    there.predictions = originals.predictions.to(subject_.device);
    Changed changed = method_.make(network_, there, settings);
    changed.units = changed.units.to(at::kCPU);
    if (changed.mask.defined()) changed.mask = changed.mask.to(at::kCPU);
    return changed;
  }

  /// Raw values; whole ones where bytes are asked for, and those of the original where nothing changed.
  at::Tensor raw_of(const Originals& originals, const at::Tensor& units) const {
    const stream::RawRange& range = *network_.range();
    at::Tensor raw = range.raw(units), own = range.raw(originals.units);
    if (range.bytes()) own = own.round();
    if (options_.round) raw = raw.round();
    return at::where(units == originals.units, own, raw);
  }

  void keep(CampaignResult& result, Piece piece, int64_t first, int64_t count) const {
    auto put = [&](at::Tensor& whole, const at::Tensor& part) {
      if (!part.defined()) return;
      std::vector<int64_t> shape = part.sizes().vec();
      shape[0] = count;
      if (!whole.defined()) whole = at::empty(shape, part.options());
      whole.narrow(0, first, part.size(0)).copy_(part);
    };
    put(result.raw, piece.raw);
    put(result.mask, piece.mask);
    result.attempts.insert(result.attempts.end(), piece.attempts.begin(), piece.attempts.end());
  }

  const Network& network_;
  const stream::Subject& subject_;
  const Chosen& chosen_;
  const Method& method_;
  const Settings& settings_;
  const CampaignOptions& options_;
};

}  // namespace

int64_t campaign_batch(const stream::Subject& subject) {
  if (subject.batching.kind == executor::Batching::kFixed) return subject.batch_size();
  return subject.device.is_cpu() ? kTogether : subject.batch_on_device(kTogetherOnDevice);
}

double work_per_input(const Method& method, const Settings& settings, const Network& network, double cost,
                      int64_t attempts) {
  constexpr double kGradient = 3;  // forward and backward, in forward passes
  double passes = 1;               // the prediction of what was made
  if (method.make == jsma)
    passes +=
        kGradient * 2 * 0.145 * double(elements(network.changed().about)) / 2;  // two gradients a pair of features
  else if (method.gradients)
    passes += kGradient * double(std::max<int64_t>(1, settings.steps));
  return cost * passes * double(method.random ? std::max<int64_t>(1, attempts) : 1);
}

Originals read_originals(const Network& network, const stream::Subject& subject, const Chosen& chosen, int64_t first,
                         int64_t count) {
  Originals originals;
  originals.batch = subject.data->read(std::span(chosen.samples.data() + first, size_t(count)));
  const at::Tensor& fed = originals.batch.inputs[network.changed().feature];
  originals.units = network.range() ? network.range()->units(fed) : fed;
  originals.predictions =
      at::tensor(at::ArrayRef<int64_t>(chosen.predictions.data() + first, size_t(count)), at::kLong);
  return originals;
}

int64_t made_bytes(const Network& network, int64_t inputs) {
  return inputs * elements(network.changed().about) * (network.range() ? 4 : 9);
}

std::vector<Distance> distances(const at::Tensor& before, const at::Tensor& after, bool ids) {
  at::Tensor off = (after.to(at::kDouble) - before.to(at::kDouble)).flatten(1).abs();
  at::Tensor l0 = (off > 0).sum(1).to(at::kDouble), l2 = off.square().sum(1).sqrt(), linf = off.amax(1);
  std::vector<Distance> result;
  for (int64_t i = 0; i < off.size(0); ++i)
    result.push_back(ids ? Distance{l0[i].item<double>()}
                         : Distance{l0[i].item<double>(), l2[i].item<double>(), linf[i].item<double>()});
  return result;
}

CampaignResult run_campaign(const Network& network, const stream::Subject& subject, const Chosen& chosen,
                            const Method& method, const Settings& settings, const CampaignOptions& options) {
  return Campaign(network, subject, chosen, method, settings, options).run();
}

}  // namespace netmend::inputs
