#include "preflight/setup_search.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "base/error.h"
#include "base/text.h"
#include "preflight/assignment.h"
#include "preflight/setups.h"
#include "session/toml_edit.h"

namespace netmend::preflight {
namespace {

using dataset::Batch;
using observers::PredictionSettings;
using observers::SampleRow;
using observers::Task;

class Search {
 public:
  explicit Search(const Trial& trial) : trial_(trial) {}

  Searched run() {
    std::vector<Candidate> found;
    std::vector<Setup> scales = scalings(trial_.subject.data->info(), trial_.first),
                       orders = arrangements(trial_.subject.data->info(), trial_.first);
    for (const Setup& scale : scales) try_setup({scale}, found);
    size_t best = best_of(found);
    std::vector<Setup> helps;
    if (best < found.size() &&
        mean_error(trial_.settings, found[best].rows) < mean_error(trial_.settings, trial_.asis) - 0.02)
      helps = found[best].setups;
    for (const Setup& order : orders) {
      try_setup({order}, found);
      if (!helps.empty()) try_setup({helps[0], order}, found);
    }
    try_labels(found);
    try_outputs(found);
    settle(found);
    return std::move(result_);
  }

 private:
  struct Candidate {
    std::vector<Setup> setups;
    size_t changes = 1;  ///< things that differ from how it is
    Tried tried;
    std::string kind, where, title;
    Rows rows;                             ///< on the first inputs
    std::function<Rows(const Batch&)> on;  ///< on any
  };

  /// The last set-up is applied first: an arrangement speaks of the data as it is, a scaling of what comes out.
  std::optional<Rows> rows_with(const std::vector<Setup>& setups, const Batch& batch) const {
    try {
      Batch changed = batch;
      for (auto setup = setups.rbegin(); setup != setups.rend(); ++setup) setup->apply(changed);
      return judge(trial_.settings, trial_.answers(changed, {trial_.wanted()})[0], changed);
    } catch (const InputError&) {
      return std::nullopt;  // such inputs do not fit: token numbers beyond the vocabulary, for one
    }
  }

  static Batch first_rows(const Batch& batch, int64_t count) {
    Batch part = batch;
    count = std::min(count, batch.count());
    auto cut = [&](at::Tensor& tensor) { tensor = tensor.defined() ? tensor.narrow(0, 0, count) : tensor; };
    for (at::Tensor& tensor : part.inputs) cut(tensor);
    for (at::Tensor& tensor : part.masks) cut(tensor);
    cut(part.labels);
    part.samples.resize(size_t(count));
    return part;
  }

  /// Judges a set-up on a few inputs, and on all where that looks promising.
  void try_setup(const std::vector<Setup>& setups, std::vector<Candidate>& found) {
    const Setup& last = setups.back();
    if (changes_nothing(setups)) return;
    Candidate candidate;
    candidate.setups = setups;
    candidate.changes = setups.size();
    candidate.tried = {last.about, last.words, "", {}};
    for (size_t i = 0; i + 1 < setups.size(); ++i)
      candidate.tried.words = setups[i].words + ", " + candidate.tried.words;
    candidate.tried.line = input_line(trial_.input_name(), merged(setups));
    candidate.kind = "preprocessing", candidate.where = last.about;
    candidate.title = title_of(last.about);
    std::optional<Rows> few = rows_with(setups, first_rows(trial_.first, Trial::kFirstLook));
    candidate.tried.runs = few.has_value();
    if (few) {
      Rows same(trial_.asis.begin(), trial_.asis.begin() + std::ptrdiff_t(few->size()));
      bool promising = mean_error(trial_.settings, *few) < mean_error(trial_.settings, same) ||
                       lowers_loss(trial_.settings, same, *few);
      if (promising && few->size() < trial_.asis.size()) few = rows_with(setups, trial_.first);
      candidate.rows = *few;
      candidate.tried.accuracy = figure(trial_.settings, candidate.rows);
      candidate.on = [this, setups](const Batch& batch) { return rows_with(setups, batch).value_or(Rows{}); };
    }
    found.push_back(std::move(candidate));
  }

  bool changes_nothing(const std::vector<Setup>& setups) const {
    Batch few = first_rows(trial_.first, 8), changed = few;
    for (auto setup = setups.rbegin(); setup != setups.rend(); ++setup) setup->apply(changed);
    for (size_t i = 0; i < few.inputs.size(); ++i)
      if (!at::allclose(few.inputs[i], changed.inputs[i], 1e-4, 1e-5)) return false;
    return true;
  }

  static std::map<std::string, std::string> merged(const std::vector<Setup>& setups) {
    std::map<std::string, std::string> options = setups.back().options;
    if (options.empty()) return {};
    for (const Setup& setup : setups)
      for (const auto& [key, value] : setup.options)
        if (setup.about == "scale" || &setup == &setups.back()) options[key] = value;
    return options;
  }

  static std::string title_of(const std::string& about) {
    if (about == "color") return "The colours are probably in the other order than in training.";
    if (about == "layout") return "The axes of the images are probably mixed up.";
    if (about == "orientation") return "The images probably lie on their side.";
    if (about == "mask") return "The mask is probably not the one of training.";
    if (about == "ids") return "The tokens are probably not numbered or ordered as in training.";
    return "The values are probably not scaled as in training.";
  }

  size_t best_of(const std::vector<Candidate>& found) const {
    size_t best = found.size();
    for (size_t i = 0; i < found.size(); ++i)
      if (!found[i].rows.empty() && (best == found.size() || mean_error(trial_.settings, found[i].rows) <
                                                                 mean_error(trial_.settings, found[best].rows)))
        best = i;
    return best;
  }

  /// The classes in another order: the order that fits these inputs best is judged on others.
  void try_labels(std::vector<Candidate>& found) {
    if (!trial_.settings.by_class()) return;
    const auto classes = int64_t(trial_.settings.classes.size());
    auto plain = [this](const Batch& batch) {
      return judge(trial_.settings, trial_.answers(batch, {trial_.wanted()})[0], batch);
    };
    std::vector<int64_t> up, down;
    for (int64_t c = 0; c < classes; ++c) up.push_back((c + 1) % classes), down.push_back((c + classes - 1) % classes);
    if (classes > 2) {
      add_order("labels one higher", "", up, trial_.asis, plain, found);
      add_order("labels one lower", "", down, trial_.asis, plain, found);
    }
    if (classes > 1000) return;  // too few inputs per class to tell
    add_best_order("", "", trial_.asis, plain, found);
    if (!trial_.near_chance()) return;
    // Two things may be wrong at once, and neither shows without the other.
    const size_t count = found.size();
    for (size_t i = 0; i < count; ++i) {
      if (found[i].tried.about != "scale" || found[i].rows.empty()) continue;
      auto on = found[i].on;
      add_best_order(found[i].tried.words + ", ", found[i].tried.line, on(trial_.first), on, found);
    }
  }

  using OnBatch = std::function<Rows(const Batch&)>;

  void add_best_order(const std::string& words, const std::string& line, const Rows& rows, const OnBatch& on,
                      std::vector<Candidate>& found) const {
    std::vector<int64_t> order = best_assignment(trial_.settings, rows);
    if (!std::is_sorted(order.begin(), order.end()))
      add_order(words + order_words(order), line, order, rows, on, found);
  }

  void add_order(const std::string& words, const std::string& line, const std::vector<int64_t>& order, const Rows& rows,
                 const OnBatch& on, std::vector<Candidate>& found) const {
    auto relabel = [order](Rows all) {
      for (SampleRow& row : all) {
        row.label = double(order[size_t(row.label)]);
        if (!std::isnan(row.predicted)) row.right = row.label == row.predicted ? SampleRow::kRight : SampleRow::kWrong;
      }
      return all;
    };
    Candidate candidate;
    candidate.rows = relabel(rows);
    candidate.changes = line.empty() ? 1 : 2;
    std::string lines = line.empty() ? order_line(order) : line + "\n" + order_line(order);
    candidate.tried = {"classes", words, lines, figure(trial_.settings, candidate.rows)};
    candidate.kind = "class-order", candidate.where = "labels";
    candidate.title = "The classes are probably numbered differently from training.";
    candidate.on = [on, relabel](const Batch& batch) { return relabel(on(batch)); };
    found.push_back(std::move(candidate));
  }

  std::string order_words(const std::vector<int64_t>& order) const {
    std::vector<std::string> moved;
    for (size_t c = 0; c < order.size(); ++c)
      if (order[c] != int64_t(c))
        moved.push_back(fmt::format("{} is {}", trial_.settings.classes[c], trial_.settings.classes[size_t(order[c])]));
    std::string rest = moved.size() > 3 ? fmt::format(" and {} more", moved.size() - 3) : "";
    if (moved.size() > 3) moved.resize(3);
    return "classes in another order: " + join(moved, ", ") + rest;
  }

  /// The names in the order of the model's outputs.
  std::string order_line(const std::vector<int64_t>& order) const {
    if (order.size() > 100) return "";
    std::vector<std::string> names(order.size());
    for (size_t c = 0; c < order.size(); ++c)
      names[size_t(order[c])] = session::toml_string(trial_.settings.classes[c]);
    return fmt::format("classes = [{}]", join(names, ", "));
  }

  void try_outputs(std::vector<Candidate>& found) {
    for (model::ValueId id : trial_.subject.graph.outputs) {
      if (id == trial_.settings.head.output) continue;
      PredictionSettings other = trial_.settings;
      other.head = executor::find_head(trial_.subject.graph, id);
      if (other.head.logits == trial_.settings.head.logits) continue;
      model::ValueId value = other.task == Task::kNumber ? other.head.output : other.head.logits;
      Candidate candidate;
      candidate.tried = {"output",
                         fmt::format("output `{}`", trial_.value_name(id)),
                         fmt::format("model = {{ output = {} }}", session::toml_string(trial_.value_name(id))),
                         {}};
      candidate.kind = "wrong-output", candidate.where = trial_.value_name(trial_.settings.head.output);
      candidate.title = "Another output of the model is probably the one that counts.";
      candidate.on = [this, other, value](const Batch& batch) {
        return judge(other, trial_.answers(batch, {value})[0], batch);
      };
      try {
        at::Tensor columns = observers::as_columns(trial_.answers(trial_.first, {id})[0]);
        if (columns.dim() != 2 || columns.size(1) != trial_.settings.outputs) continue;
        candidate.rows = candidate.on(trial_.first);
        candidate.tried.accuracy = figure(trial_.settings, candidate.rows);
      } catch (const InputError&) {
        continue;  // an output without one row per input cannot be judged
      }
      found.push_back(std::move(candidate));
    }
  }

  void settle(std::vector<Candidate>& found) {
    std::stable_sort(found.begin(), found.end(), [&](const Candidate& a, const Candidate& b) {
      if (a.rows.empty() || b.rows.empty()) return a.rows.size() > b.rows.size();
      return mean_error(trial_.settings, a.rows) < mean_error(trial_.settings, b.rows);
    });
    for (const Candidate& candidate : found) result_.tried.push_back(candidate.tried);
    for (auto convinces : {&improves_accuracy, &lowers_loss}) {
      std::vector<Confirmed> sure;
      for (const Candidate& candidate : found)
        if (convinces == &improves_accuracy || candidate.tried.about == "scale") confirm(candidate, convinces, sure);
      if (!result_.blocker && !sure.empty()) name(best_confirmed(sure), convinces == &lowers_loss);
    }
  }

  /// A candidate that holds on inputs that the search has not seen.
  struct Confirmed {
    const Candidate* candidate;
    Rows again;
  };

  void confirm(const Candidate& candidate, Convinces* convinces, std::vector<Confirmed>& sure) {
    if (candidate.rows.size() != trial_.asis.size() || !convinces(trial_.settings, trial_.asis, candidate.rows)) return;
    if (fresh_rows_.empty()) fresh_ = trial_.read_fresh(), fresh_rows_ = trial_.rows(fresh_);
    Rows again = candidate.on(fresh_);
    if (again.size() == fresh_rows_.size() && convinces(trial_.settings, fresh_rows_, again) &&
        plausible(candidate, again))
      sure.push_back({&candidate, std::move(again)});
  }

  /// A damaged network may do better with odd inputs too, but not as one does that was trained on them: it beats
  /// the majority class, its mean confidence is near its accuracy, and each class has a number of its own.
  bool plausible(const Candidate& candidate, const Rows& again) const {
    if (!trial_.settings.by_class()) return true;
    if (figure(trial_.settings, again).low <= trial_.chance()) return false;
    if (candidate.tried.about == "classes") return one_to_one(candidate.rows) && one_to_one(again);
    if (candidate.tried.about == "output") return true;
    if (mean_loss(again) >= std::max(uniform_loss(trial_.settings), 1.0)) return false;
    double sure = 0, wrong = mean_error(trial_.settings, again);
    for (const SampleRow& row : again) sure += double(row.confidence) / double(again.size());
    return wrong < 0.1 || sure > 1 - wrong - 0.12;  // nine in ten speak for themselves: some outputs are no logits
  }

  /// For most classes the most frequent prediction is the right one.
  bool one_to_one(const Rows& rows) const {
    std::map<double, std::map<double, int64_t>> answers_of;
    for (const SampleRow& row : rows) ++answers_of[row.label][row.predicted];
    int64_t judged = 0, kept = 0;
    for (const auto& [label, counts] : answers_of) {
      int64_t total = 0, most = 0;
      for (const auto& [answer, count] : counts) total += count, most = std::max(most, count);
      if (total < 5) continue;
      ++judged;
      auto own = counts.find(label);
      kept += own != counts.end() && own->second == most;
    }
    return double(kept) >= 0.8 * double(judged);
  }

  /// The fewest mistakes. Of those that make about as few, what changes least; of scalings the one with the least loss,
  /// which tells them apart sooner.
  const Confirmed& best_confirmed(const std::vector<Confirmed>& sure) const {
    auto error = [&](const Confirmed& c) {
      return mean_error(trial_.settings, c.candidate->rows) + mean_error(trial_.settings, c.again);
    };
    auto loss = [&](const Confirmed& c) {
      bool known = trial_.settings.by_class() && c.candidate->tried.about == "scale";  // labels that moved have none
      return known ? mean_loss(c.candidate->rows) + mean_loss(c.again) : 0;
    };
    double least = INFINITY;
    for (const Confirmed& c : sure) least = std::min(least, error(c));
    const Confirmed* best = nullptr;
    for (const Confirmed& c : sure) {
      if (error(c) > least + 0.04) continue;
      auto order = [&](const Confirmed& x) {
        return std::tuple(x.candidate->changes, x.candidate->tried.line.empty(), loss(x), error(x));
      };
      if (!best || order(c) < order(*best)) best = &c;
    }
    return *best;
  }

  void name(const Confirmed& sure, bool by_loss) {
    const Candidate& candidate = *sure.candidate;
    std::string guessing =
        trial_.settings.by_class() ? fmt::format(" (majority class: {:.0f} %)", 100 * trial_.chance()) : "";
    std::string loss =
        by_loss ? fmt::format("; loss {:.3g} instead of {:.3g}", mean_loss(sure.again), mean_loss(fresh_rows_)) : "";
    std::string now = figure_text(trial_.settings, figure(trial_.settings, trial_.asis)),
                then = figure_text(trial_.settings, candidate.tried.accuracy);
    result_.blocker =
        Blocker{candidate.kind,
                candidate.where,
                candidate.title,
                fmt::format("As it is {}{}; {}: {} on {} inputs, {} on {} others{}", now, guessing,
                            candidate.tried.words, then, trial_.asis.size(),
                            figure_text(trial_.settings, figure(trial_.settings, sure.again)), sure.again.size(), loss),
                candidate.tried.line,
                fmt::format("tried on {} inputs: {} instead of {}", trial_.asis.size(), then, now)};
  }

  const Trial& trial_;
  Batch fresh_;      ///< read when there is something to confirm
  Rows fresh_rows_;  ///< judged without any change
  Searched result_;
};

}  // namespace

Searched search_setups(const Trial& trial) { return Search(trial).run(); }

}  // namespace netmend::preflight
