#include "studies/deepimportance.h"

#include <ATen/ATen.h>

#include <cmath>
#include <numeric>
#include <optional>

#include "adequacy/choice.h"
#include "base/error.h"
#include "base/pool.h"
#include "base/random.h"
#include "inputs/campaign.h"
#include "observers/coverage/materials.h"
#include "observers/input_relevance.h"
#include "observers/surprise/dsa.h"
#include "observers/surprise/lsa.h"
#include "observers/surprise/surprise_coverage.h"
#include "stats/moments.h"
#include "studies/idc_study.h"
#include "studies/layer_chain.h"
#include "zoo/zoo.h"

namespace netmend::studies {

using Json = nlohmann::ordered_json;
using observers::Criterion;
using observers::Published;
using observers::SampleRow;
using observers::UnitBatch;
using stats::Moments;
using Rows = std::vector<int64_t>;

namespace {

constexpr int64_t kImportant[] = {6, 8, 10, 12};
constexpr int64_t kReacting = 6, kDraws = 20, kTogether = 250, kFrame = 16;
constexpr double kFrameNoise = 0.75, kWhiteNoise = 0.3, kEpsilon = 0.3;
const std::vector<std::string> kRivals = {"NC", "KMNC", "NBC", "SNAC", "TKNC", "NLC"};
/// Those that the program averages over classes in table 3; the others are of the whole set there too.
bool by_class_in_table3(const std::string& name) { return name != "TKNC" && name != "NLC"; }

Json json_of(const Moments& moments) {
  return {{"mean", moments.mean()}, {"sd", std::sqrt(moments.variance())}, {"inputs", moments.count()}};
}

Rows all_of(int64_t count) {
  Rows rows(static_cast<size_t>(count));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

at::Tensor index_of(const Rows& rows) { return at::tensor(rows, at::kLong); }

/// Rivals of one kind: what they are held against, and what some inputs cover of them.
struct Rivals {
  std::vector<std::shared_ptr<const Criterion>> list;
  std::vector<std::unique_ptr<observers::Tally>> tallies;

  Rivals(const observers::SpacePtr& space, const UnitBatch& training, bool published) {
    observers::Ranges ranges(space);
    std::unique_ptr<observers::Tally> seen = ranges.fresh();
    if (training.count() > 0) seen->add(training);
    observers::CriterionMaterials materials{.space = space};
    materials.ranges =
        std::make_shared<std::vector<observers::UnitRange>>(static_cast<const observers::RangeTally&>(*seen).ranges);
    materials.published = published ? Published::kDeepImportance : Published::kCorrected;
    for (const std::string& name : kRivals) {
      const observers::CriterionRow& row = adequacy::criterion_row(name);
      materials.parameter = row.parameter.usual;
      list.push_back(row.make(materials).list.at(0));
    }
    reset();
  }
  void reset() {
    tallies.clear();
    for (const auto& criterion : list) tallies.push_back(criterion->fresh());
  }
  /// `only` the criterion of this name; "" for all.
  void add(const UnitBatch& batch, const std::string& only = "") {
    for (size_t i = 0; i < list.size() && batch.count() > 0; ++i)
      if (only.empty() || only == list[i]->name()) tallies[i]->add(batch);
  }
  double value(size_t i) const { return list[i]->figure(*tallies[i]).value; }
};

/// Changed inputs: which tests they were made of, and one or more versions of each.
struct MadeSet {
  Rows tests;
  std::vector<at::Tensor> copies;  ///< as the network is fed
  double success = 0;
};

/// One network, and what its trials share.
class Studied {
 public:
  Studied(const TrainedNetwork& network, const DeepImportanceOptions& options)
      : network_(network),
        options_(options),
        protocol_(options.protocol),
        changed_(inputs::find_subject(network.test.data->info())) {
    if (network.test.data->info().features.size() != 1 || changed_.kind != inputs::Kind::kImage)
      fail("{} gives no images", network.test.data->info().spec);
  }

  Json run(const std::string& trial) {
    if (!chain_) learn();
    if (trial == "network") return about();
    if (trial == "reaction") return reaction();
    if (trial == "layers") return layers();
    if (trial == "switches") return switches();
    return measure(trial);
  }

 private:
  int64_t classes() const { return int64_t(network_.test_settings.classes.size()); }

  void learn() {
    chain_.emplace(network_.test, network_.test_settings.head);
    std::tie(train_, train_labels_) = read_all(*network_.train.data);
    std::tie(test_, test_labels_) = read_all(*network_.test.data);
    known_ = chain_->read(train_, train_labels_, options_.jobs);
    tests_ = chain_->read(test_, test_labels_, options_.jobs);
    by_class_.resize(size_t(classes()));
    for (int64_t row = 0; row < tests_.count(); ++row) by_class_[size_t(tests_.rows[size_t(row)].label)].push_back(row);
    layer_ = chain_->hidden().back();
    relevance_ = unit_relevance(protocol_.plain_convolutions);
    range_.emplace(*network_.test.data, changed_.feature);
    units_ = range_->units(test_);
    attacked_.emplace(network_.test, network_.test_settings, changed_, &*range_);
    idc_.emplace(*chain_, known_, classes());
  }

  static std::pair<at::Tensor, at::Tensor> read_all(const dataset::Dataset& data) {
    std::vector<at::Tensor> inputs, labels;
    for (int64_t first = 0; first < data.size(); first += 1000) {
      Rows some;
      for (int64_t i = first; i < std::min(first + 1000, data.size()); ++i) some.push_back(i);
      dataset::Batch batch = data.read(some);
      inputs.push_back(batch.inputs[0]), labels.push_back(batch.labels);
    }
    return {at::cat(inputs, 0), at::cat(labels, 0)};
  }

  // ---- relevance

  /// The program's copy of a network leaves out activations that are part of a convolution; in that for CIFAR-10 they
  /// are layers of their own, and the copy has them.
  bool leaves_out(bool plain_convolutions) const { return plain_convolutions && network_.model != "cifar"; }

  /// The network, or the program's copy of it.
  model::Graph explained_graph(bool plain_convolutions) const {
    model::Graph graph = network_.test.batching.graph;
    if (!leaves_out(plain_convolutions)) return graph;
    const std::vector<int> made_by = model::producers(graph);
    for (model::Node& node : graph.nodes) {
      if (node.op != "Relu") continue;
      const int maker = made_by[size_t(node.inputs[0])];
      if (maker >= 0 && graph.nodes[size_t(maker)].op == "Conv") node.op = "Identity";
    }
    return graph;
  }

  explain::Options relevance_options(const std::string& rule) const {
    explain::Options how;
    how.rules = explain::parse_rules(rule);
    for (explain::Rule* one : {&how.rules.dense, &how.rules.conv, &how.rules.first})
      one->spread_bias = protocol_.spread_bias;
    how.device = network_.test.device;
    return observers::explained_options(how, network_.test_settings);
  }

  std::vector<at::Tensor> explain(const explain::Explainer& explainer, const at::Tensor& inputs) const {
    dataset::Batch batch;
    batch.inputs = {inputs}, batch.masks.resize(1);
    for (int64_t i = 0; i < inputs.size(0); ++i) batch.samples.push_back(i);
    std::vector<at::Tensor> found = explainer.run(network_.test.feed.inputs(batch)).relevance;
    for (at::Tensor& one : found) one = one.to(at::kCPU);
    return found;
  }

  /// By layer: classes × units, over training inputs that are predicted correctly. The program's list of relevances is
  /// one place ahead behind convolutions: there it has the pool's.
  std::map<size_t, Relevance> unit_relevance(bool plain_convolutions) const {
    std::vector<model::ValueId> wanted;
    for (size_t layer : chain_->hidden()) {
      const auto& layers = chain_->layers();
      const bool pooled = leaves_out(plain_convolutions) && !layers[layer].dense && layer + 1 < layers.size() &&
                          !layers[layer + 1].weights && !layers[layer + 1].flatten;
      wanted.push_back(layers[pooled ? layer + 1 : layer].value);
    }
    explain::Explainer explainer(explained_graph(plain_convolutions), observers::explained_head(network_.test_settings),
                                 wanted, relevance_options("z"));
    Rows right;
    for (int64_t row = 0; row < known_.count(); ++row)
      if (known_.rows[size_t(row)].right == SampleRow::kRight) right.push_back(row);
    const int64_t count = int64_t(right.size());
    std::vector<std::vector<at::Tensor>> parts(size_t((count + kTogether - 1) / kTogether));
    observers::share_out(int64_t(parts.size()), options_.jobs, [&](int64_t block) {
      const int64_t first = block * kTogether, some = std::min(kTogether, count - first);
      at::Tensor rows = index_of({right.begin() + first, right.begin() + first + some});
      at::Tensor labels = train_labels_.index_select(0, rows);
      for (const at::Tensor& one : explain(explainer, train_.index_select(0, rows))) {
        at::Tensor sums = (one.dim() > 2 ? one.flatten(2).sum(2) : one).to(at::kDouble);
        parts[size_t(block)].push_back(at::zeros({classes(), sums.size(1)}, at::kDouble).index_add(0, labels, sums));
      }
    });
    std::map<size_t, Relevance> sums;
    for (const auto& part : parts)
      for (size_t i = 0; i < part.size(); ++i) {
        Relevance& to = sums[chain_->hidden()[i]];
        to = to.defined() ? to + part[i] : part[i];
      }
    return sums;
  }

  /// Tests × values: how relevant each value is for the prediction, without its sign.
  const at::Tensor& pixel_relevance() {
    if (pixels_.defined()) return pixels_;
    explain::Explainer explainer(explained_graph(protocol_.plain_convolutions),
                                 observers::explained_head(network_.test_settings),
                                 {network_.test.batching.graph.inputs[0]}, relevance_options("alpha-beta:3"));
    std::vector<at::Tensor> parts(size_t((test_.size(0) + kTogether - 1) / kTogether));
    observers::share_out(int64_t(parts.size()), options_.jobs, [&](int64_t block) {
      const int64_t first = block * kTogether, some = std::min(kTogether, test_.size(0) - first);
      parts[size_t(block)] = explain(explainer, test_.narrow(0, first, some))[0].abs().to(at::kFloat).flatten(1);
    });
    return pixels_ = at::cat(parts, 0).nan_to_num(0);
  }

  /// Bool tests × values: strictly above the percentile of the input's own values.
  at::Tensor relevant(double percentile) {
    const at::Tensor& relevance = pixel_relevance();
    std::vector<at::Tensor> parts;
    for (int64_t first = 0; first < relevance.size(0); first += kTogether) {
      at::Tensor some = relevance.narrow(0, first, std::min(kTogether, relevance.size(0) - first));
      parts.push_back(some > at::quantile(some, percentile / 100, 1, true, "linear"));
    }
    return at::cat(parts, 0);
  }

  // ---- changed inputs

  at::Tensor fed(const at::Tensor& units) const { return range_->fed(range_->raw(units)); }

  /// Noise where `where` says (bool rows × values), in the valid range.
  at::Tensor noisy(const Rows& tests, const at::Tensor& where, double deviation, const std::string& name,
                   int64_t copy) const {
    at::Tensor noise = at::zeros(where.sizes(), at::kFloat), mask = where.contiguous();
    const int64_t size = where.size(1);
    for (int64_t row = 0; row < int64_t(tests.size()); ++row) {
      Random random = inputs::random_for(options_.seed, name, tests[size_t(row)], copy);
      const bool* may = mask.data_ptr<bool>() + row * size;
      for (int64_t i = 0; i < size; ++i)
        if (may[i]) noise.data_ptr<float>()[row * size + i] = float(deviation * random.normal());
    }
    at::Tensor from = units_.index_select(0, index_of(tests));
    at::Tensor changed = (from + noise.reshape(from.sizes())).clamp(0, 1);
    return fed(at::where(mask.reshape(from.sizes()), changed, from));
  }

  /// As many other values as are relevant, drawn anew for each copy.
  at::Tensor others(const Rows& tests, const at::Tensor& relevant, int64_t copy) const {
    at::Tensor chosen = at::zeros_like(relevant);
    const int64_t size = relevant.size(1);
    for (int64_t row = 0; row < int64_t(tests.size()); ++row) {
      const bool* taken = relevant.data_ptr<bool>() + row * size;
      Rows free;
      for (int64_t i = 0; i < size; ++i)
        if (!taken[i]) free.push_back(i);
      Random random = inputs::random_for(options_.seed, "places", tests[size_t(row)], copy);
      const int64_t count = std::min<int64_t>(size - int64_t(free.size()), int64_t(free.size()));
      for (int64_t i = 0; i < count; ++i) {
        std::swap(free[size_t(i)], free[size_t(i) + random.below(uint64_t(int64_t(free.size()) - i))]);
        chosen.data_ptr<bool>()[row * size + free[size_t(i)]] = true;
      }
    }
    return chosen;
  }

  /// The first pixels of the border, brighter by chance and beyond the range too.
  at::Tensor framed(const Rows& tests) const {
    at::Tensor units = units_.index_select(0, index_of(tests)).clone();
    for (int64_t row = 0; row < int64_t(tests.size()); ++row) {
      Random random = inputs::random_for(options_.seed, "frame", tests[size_t(row)], 0);
      at::Tensor top = changed_.about.channels_last ? units[row].select(0, 0).transpose(0, 1) : units[row].select(1, 0);
      for (int64_t c = 0; c < top.size(0); ++c)
        for (int64_t i = 0; i < std::min(kFrame, top.size(1)); ++i)
          top[c][i] += kFrameNoise * std::abs(random.normal());
    }
    return fed(units);
  }

  MadeSet noise_set(const std::string& trial) {
    MadeSet set{all_of(test_.size(0)), {}};
    at::Tensor where = relevant(protocol_.percentile);
    for (int64_t copy = 0; copy < protocol_.copies; ++copy) {
      if (interrupted()) throw Interrupted{};
      set.copies.push_back(
          noisy(set.tests, trial == "U_DI" ? where : others(set.tests, where, copy), protocol_.noise, trial, copy));
    }
    return set;
  }

  /// Tests of each class that an attack works on.
  Rows attack_tests(bool all) const {
    Rows tests;
    for (const Rows& own : by_class_) {
      int64_t taken = 0;
      for (int64_t row : own) {
        if (!all && options_.attacked > 0 && taken == options_.attacked) break;
        if (!protocol_.cleverhans && tests_.rows[size_t(row)].right != SampleRow::kRight) continue;
        tests.push_back(row), ++taken;
      }
    }
    return tests;
  }

  MadeSet attack_set(const std::string& trial) const {
    const inputs::Method& method = inputs::find_method(trial == "+FGSM"   ? "fgsm"
                                                       : trial == "+BIM"  ? "bim"
                                                       : trial == "+JSMA" ? "jsma"
                                                                          : "cw");
    inputs::Settings asked;
    asked.seed = Random::hash(options_.seed);
    const auto& shape = changed_.about.shape;
    const bool gray = shape[changed_.about.channels_last ? 2 : 0] == 1;
    if (protocol_.cleverhans)
      asked.as_published = "cleverhans", asked.eps = kEpsilon, asked.steps = trial == "+CW" ? 1000 : 10;
    else if (gray && trial != "+CW")
      asked.eps = kEpsilon;
    if (trial == "+BIM" && asked.eps > 0) asked.step_size = asked.eps / 6;
    if (trial == "+CW" && !protocol_.cleverhans) asked.steps = options_.carlini_steps, asked.step_size = 0.1;
    const inputs::Settings settings = inputs::settle(method, changed_, asked);
    const bool costly = trial == "+CW" || (trial == "+JSMA" && !gray);  // up to half as many steps as there are values
    MadeSet set{attack_tests(!costly), {}};
    inputs::Chosen chosen;
    for (int64_t row : set.tests)
      chosen.samples.push_back(row), chosen.predictions.push_back(int64_t(tests_.rows[size_t(row)].predicted));
    // A GPU is busy with many inputs only.
    const int64_t together = !network_.test.device.is_cpu() ? 2500 : trial == "+CW" ? kTogether / 5 : kTogether;
    std::vector<at::Tensor> parts(size_t((chosen.count() + together - 1) / together));
    observers::share_out(int64_t(parts.size()), options_.jobs, [&](int64_t block) {
      const int64_t first = block * together, some = std::min(together, chosen.count() - first);
      inputs::Originals originals = inputs::read_originals(*attacked_, network_.test, chosen, first, some);
      if (!network_.test.device.is_cpu() && method.on_device)
        originals.units = originals.units.to(network_.test.device),
        originals.predictions = originals.predictions.to(network_.test.device);
      const inputs::Changed made = method.make(*attacked_, originals, settings);
      parts[size_t(block)] = fed(made.units.to(at::kCPU));
    });
    set.copies = {at::cat(parts, 0)};
    return set;
  }

  MadeSet make(const std::string& trial) {
    if (trial == "U_S" || trial == "U_DI") return noise_set(trial);
    if (trial != "+S") return attack_set(trial);
    MadeSet set{all_of(test_.size(0)), {}};
    set.copies = {noisy(set.tests, at::ones({test_.size(0), test_[0].numel()}, at::kBool), kWhiteNoise, trial, 0)};
    return set;
  }

  // ---- figures

  at::Tensor labels_of(const Rows& tests) const { return test_labels_.index_select(0, index_of(tests)); }

  Json about() {
    int64_t right = 0;
    for (const SampleRow& row : tests_.rows) right += row.right == SampleRow::kRight;
    Json combinations = Json::object();
    for (int64_t m : kImportant) {
      Json& of = combinations[std::to_string(m)] = Json::array();
      for (int64_t c = 0; c < classes(); ++c)
        of.push_back(Combinations(*chain_, idc_->units(layer_, relevance_.at(layer_), c, m, protocol_.idc)).all());
    }
    return {{"accuracy", double(right) / double(tests_.count())},
            {"tests", tests_.count()},
            {"training", known_.count()},
            {"parameters", zoo::parameter_count(network_.test.graph)},
            {"layer", chain_->layers()[layer_].name},
            {"surprise_alone", protocol_.surprise_alone},
            {"combinations", combinations}};
  }

  /// The read layer's values of the tests and of each copy, and whose tests they are.
  struct Read {
    at::Tensor values;
    Rows tests;
  };

  /// Mean over classes of the share of combinations that the tests of a class and these cover; NaN where it cannot be
  /// read, with the values by class.
  Json idc_figure(size_t layer, const Relevance& relevance, const IdcForm& form, int64_t m, const at::Tensor& originals,
                  const std::vector<Read>& added, int64_t among) {
    Json by_class = Json::array();
    double sum = 0;
    const int64_t groups = form.by_class ? among : 1;
    for (int64_t c = 0; c < groups; ++c) {
      const int64_t of_class = form.by_class ? c : -1;
      std::vector<observers::QuantisedUnit> units = idc_->units(layer, relevance, of_class, m, form);
      if (!idc_->readable(layer, units, form)) return {{"mean", nullptr}, {"by_class", Json::array()}};
      Combinations seen(*chain_, std::move(units));
      auto add = [&](const at::Tensor& values, const Rows& tests) {
        Rows rows;
        for (size_t i = 0; i < tests.size(); ++i)
          if (of_class < 0 || test_labels_.data_ptr<int64_t>()[tests[i]] == of_class) rows.push_back(int64_t(i));
        if (!rows.empty()) seen.add(values.index_select(0, index_of(rows)));
      };
      add(originals, all_of(originals.size(0)));
      for (const Read& one : added) add(one.values, one.tests);
      by_class.push_back(seen.share()), sum += seen.share();
    }
    return {{"mean", sum / double(groups)}, {"by_class", by_class}};
  }

  /// Values of a layer for tests that are there already, or read anew where no criterion looks.
  at::Tensor originals_at(size_t layer) const {
    if (chain_->layers()[layer].flatten) return chain_->read_layer(layer, test_, options_.jobs);
    return values_of(tests_, *chain_->space(), chain_->place(layer));
  }

  /// All criteria on the tests, with a set of changed ones unless it is U_O.
  Json measure(const std::string& trial) {
    const bool own = trial == "U_O";
    const bool table3 = own || trial == "U_S" || trial == "U_DI";
    MadeSet set;
    if (!own) set = make(trial);
    Json json = {{"inputs", set.tests.size()}, {"copies", set.copies.size()}};
    // The first copies go to all criteria, the others to IDC alone.
    std::vector<UnitBatch> seen;
    std::vector<Read> added;
    const size_t read = idc_->read_at(layer_, protocol_.idc);
    for (size_t copy = 0; copy < set.copies.size(); ++copy) {
      if (interrupted()) throw Interrupted{};
      if (int64_t(copy) < (table3 ? protocol_.nc_copies : 1))
        seen.push_back(chain_->read(set.copies[copy], labels_of(set.tests), options_.jobs));
      added.push_back({copy < seen.size() && !chain_->layers()[read].flatten
                           ? values_of(seen[copy], *chain_->space(), chain_->place(read))
                           : chain_->read_layer(read, set.copies[copy], options_.jobs),
                       set.tests});
    }
    if (!own) {
      int64_t right = 0, fooled = 0;
      double confidence = 0;
      for (size_t i = 0; i < seen[0].rows.size(); ++i) {
        const SampleRow& row = seen[0].rows[i];
        right += row.right == SampleRow::kRight, confidence += row.confidence;
        fooled += row.predicted != tests_.rows[size_t(set.tests[i])].predicted;
      }
      const auto count = double(std::max<size_t>(1, set.tests.size()));
      json["accuracy"] = double(right) / count, json["confidence"] = confidence / count;
      json["success"] = double(fooled) / count;
    }
    Json& figures = json["figures"] = Json::object();
    at::Tensor originals = originals_at(read);
    for (int64_t m : kImportant) {
      Json found = idc_figure(layer_, relevance_.at(layer_), protocol_.idc, m, originals, added, classes());
      figures[fmt::format("IDC{}", m)] = found["mean"];
      json["by_class"][fmt::format("IDC{}", m)] = found["by_class"];
    }
    rivals(trial, set, seen, json);
    surprise(own ? nullptr : &seen[0], json);
    return json;
  }

  /// Means over classes as in table 3, and of the whole set as in table 4; where the protocol has it so with what the
  /// program had measured before and not taken back.
  void rivals(const std::string& trial, const MadeSet& set, const std::vector<UnitBatch>& seen, Json& json) {
    std::vector<std::pair<Rows, UnitBatch>> before;
    if (trial == "U_DI" || trial == "U_S") {
      Rows all = all_of(test_.size(0));
      before.emplace_back(all, chain_->read(framed(all), test_labels_, options_.jobs));
      if (trial == "U_S") {
        const at::Tensor where = relevant(protocol_.percentile);
        for (int64_t copy = 0; copy < std::min(protocol_.copies, protocol_.nc_copies); ++copy)
          before.emplace_back(
              all, chain_->read(noisy(all, where, protocol_.noise, "U_DI", copy), test_labels_, options_.jobs));
      }
    }
    auto rows_in = [&](const Rows& tests, int64_t c) {
      Rows rows;
      for (size_t i = 0; i < tests.size(); ++i)
        if (c < 0 || test_labels_.data_ptr<int64_t>()[tests[i]] == c) rows.push_back(int64_t(i));
      return rows;
    };
    std::vector<double> sums(kRivals.size()), accumulated(kRivals.size());
    for (int64_t c = -1; c < classes(); ++c) {
      if (interrupted()) throw Interrupted{};
      Rows learned;
      for (int64_t row = 0; row < known_.count(); ++row)
        if (c < 0 || known_.rows[size_t(row)].label == double(c)) learned.push_back(row);
      Rivals rivals(chain_->space(), c < 0 ? known_ : rows_of(known_, learned), protocol_.published_criteria);
      auto add_set = [&] {
        rivals.add(c < 0 ? tests_ : rows_of(tests_, by_class_[size_t(c)]));
        for (size_t copy = 0; copy < seen.size(); ++copy)
          rivals.add(rows_of(seen[copy], rows_in(set.tests, c)), copy == 0 ? "" : "NC");
      };
      add_set();
      for (size_t i = 0; i < kRivals.size(); ++i) {
        if (c < 0)
          json["whole"][kRivals[i]] = rivals.value(i);
        else
          sums[i] += rivals.value(i) / double(classes());
      }
      if (before.empty()) continue;
      for (size_t b = 0; b < before.size(); ++b)  // the frame, the first relevant copy, and NC's other ones
        rivals.add(rows_of(before[b].second, rows_in(before[b].first, c)), b < 2 ? "" : "NC");
      for (size_t i = 0; i < kRivals.size(); ++i) {
        if (c < 0 && !by_class_in_table3(kRivals[i])) accumulated[i] = rivals.value(i);
        if (c >= 0 && by_class_in_table3(kRivals[i])) accumulated[i] += rivals.value(i) / double(classes());
      }
    }
    for (size_t i = 0; i < kRivals.size(); ++i) {
      const double fresh = by_class_in_table3(kRivals[i]) ? sums[i] : json["whole"][kRivals[i]].get<double>();
      json["fresh"][kRivals[i]] = fresh;
      json["accumulated"][kRivals[i]] = before.empty() ? fresh : accumulated[i];
      json["figures"][kRivals[i]] = protocol_.accumulated && !before.empty() ? accumulated[i] : fresh;
    }
  }

  /// LeNet-1, which has no hidden dense layer, is read behind its last pool.
  size_t surprise_layer() const {
    if (chain_->layers()[layer_].dense) return layer_;
    const ChainLayer& next = chain_->layers()[layer_ + 1];
    return !next.weights && !next.flatten ? layer_ + 1 : layer_;
  }

  void surprise(const UnitBatch* seen, Json& json) {
    const size_t place = chain_->place(surprise_layer());
    auto sorted = [&](const UnitBatch& batch) {
      return observers::sort_by_class(only_layer(batch, *chain_->space(), place), classes(), false);
    };
    if (!likelihood_) {
      traces_ = sorted(known_);
      likelihood_.emplace(traces_), distance_.emplace(traces_);
      const observers::ClassTraces tests = sorted(tests_);
      if (likelihood_->units() > 0) {
        if (!protocol_.published_criteria)
          for (double score : likelihood_->scores(traces_, options_.jobs))
            if (std::isfinite(score)) least_likelihood_ = std::min(least_likelihood_, score);
        likely_ = likelihood_->scores(tests, options_.jobs);
      }
      near_ = distance_->scores(tests, options_.jobs);
    }
    const Published way = protocol_.published_criteria ? Published::kDeepImportance : Published::kCorrected;
    const double upper =
        protocol_.published_criteria && network_.model == "cifar" ? 100 : 2000;  // as their scripts say
    auto figures = [&](const std::vector<double>& likely, const std::vector<double>& near, Json& to) {
      const bool bounded = protocol_.published_criteria || std::isfinite(least_likelihood_);
      to["LSC"] = nullptr;
      if (!likely.empty() && bounded)
        to["LSC"] = observers::SurpriseCoverage("LSC", least_likelihood_, upper, 1000, way).figure(likely).value;
      to["DSC"] = observers::SurpriseCoverage("DSC", 0, 2, 1000, way).figure(near).value;
    };
    std::vector<double> likely = likely_, near = near_;
    if (seen) {
      const observers::ClassTraces made = sorted(*seen);
      std::vector<double> more_likely;
      if (likelihood_->units() > 0) more_likely = likelihood_->scores(made, options_.jobs);
      std::vector<double> nearer = distance_->scores(made, options_.jobs);
      figures(more_likely, nearer, json["alone"]);
      likely.insert(likely.end(), more_likely.begin(), more_likely.end());
      near.insert(near.end(), nearer.begin(), nearer.end());
    } else {
      figures(likely, near, json["alone"]);
    }
    figures(likely, near, json["figures"]);
    for (const char* name : {"LSC", "DSC"}) json["whole"][name] = json["figures"][name];
  }

  /// RQ1: how far important and other units of a class move when its relevant pixels change; also by each unit's own
  /// deviation, since units that are large anyway move far.
  Json reaction() {
    Json json = {{"m", kReacting}, {"class", reacting_class()}};
    for (double percentile : {protocol_.flip_percentile, protocol_.flip_percentile == 98 ? 90.0 : 98.0}) {
      at::Tensor where = relevant(percentile);
      at::Tensor value = units_.flatten(1);
      if (!protocol_.flip_by_value) value = pixel_relevance() / pixel_relevance().amax(1, true).clamp_min(1e-30);
      at::Tensor turned = at::where(where, (value <= 0.5).to(at::kFloat), units_.flatten(1)).reshape(units_.sizes());
      const size_t place = chain_->place(layer_);
      const UnitBatch after = chain_->read(fed(turned), test_labels_, options_.jobs);
      at::Tensor was = values_of(tests_, *chain_->space(), place), is = values_of(after, *chain_->space(), place);
      at::Tensor moved = (is - was).to(at::kDouble), deviation = was.to(at::kDouble).std(0);
      deviation = at::where(deviation > 0, deviation, at::full({}, INFINITY, at::kDouble));  // units that never vary
      Json rows = Json::array();
      for (int64_t c = 0; c < classes(); ++c) rows.push_back(reaction_of(c, moved, moved / deviation));
      const bool own = percentile == protocol_.flip_percentile;
      (own ? json["by_class"] : json["other_percentile"]) = rows;
      if (!own) continue;
      for (const auto& [key, found] : rows[size_t(reacting_class())].items()) json[key] = found;
    }
    return json;
  }

  /// The class of the authors' script.
  int64_t reacting_class() const {
    const int64_t asked = network_.model == "lenet4" ? 1 : network_.model == "cifar" ? 4 : 9;
    return std::min(asked, classes() - 1);
  }

  Json reaction_of(int64_t c, const at::Tensor& moved, const at::Tensor& scaled) const {
    Rows order = by_relevance(relevance_.at(layer_), c);
    const int64_t m = std::min<int64_t>(kReacting, int64_t(order.size()) / 2);
    at::Tensor tests = index_of(by_class_[size_t(c)]);
    auto distances = [&](const Rows& units, const at::Tensor& from, Moments& to) {
      at::Tensor lengths =
          from.index_select(0, tests).index_select(1, index_of(units)).square().sum(1).sqrt().contiguous();
      for (int64_t i = 0; i < lengths.numel(); ++i) to.add(lengths.data_ptr<double>()[i]);
    };
    Moments important, important_scaled, random, random_mean, random_scaled;
    const Rows own(order.begin(), order.begin() + m);
    distances(own, moved, important), distances(own, scaled, important_scaled);
    Rows rest(order.begin() + m, order.end());
    Json draws = Json::array();
    for (int64_t draw = 0; draw < kDraws; ++draw) {
      Random(options_.seed, uint64_t(draw)).shuffle(rest);
      const Rows some(rest.begin(), rest.begin() + m);
      Moments one;
      distances(some, moved, one);
      if (draw == 0) random = one;
      draws.push_back(one.mean());
      random_mean.merge(one), distances(some, scaled, random_scaled);
    }
    return {{"important", json_of(important)},
            {"random", json_of(random)},
            {"random_mean", json_of(random_mean)},
            {"draws", draws},
            {"important_scaled", json_of(important_scaled)},
            {"random_scaled", json_of(random_scaled)}};
  }

  /// RQ5: IDC at every layer with weights.
  Json layers() {
    const int64_t m = network_.model == "lenet1" || network_.model == "lenet4" ? 4 : 6;
    Rows right;
    for (int64_t row = 0; row < tests_.count(); ++row)
      if (!protocol_.cleverhans || tests_.rows[size_t(row)].right == SampleRow::kRight) right.push_back(row);
    at::Tensor where = relevant(protocol_.layer_percentile).index_select(0, index_of(right));
    const at::Tensor made = noisy(right, where, kWhiteNoise, "layers", 0);
    Json json = {{"m", m}, {"layers", Json::array()}};
    for (size_t layer : chain_->hidden()) {
      const size_t read = protocol_.layers.layer_before && layer == 0 ? layer : idc_->read_at(layer, protocol_.layers);
      const at::Tensor originals = originals_at(read);
      auto share = [&](const std::vector<Read>& added) {
        return idc_figure(layer, relevance_.at(layer), protocol_.layers, m, originals, added,
                          std::min(classes(), protocol_.layer_classes))["mean"];
      };
      json["layers"].push_back({{"layer", chain_->layers()[layer].name},
                                {"U_O", share({})},
                                {"U_O+DI", share({{chain_->read_layer(read, made, options_.jobs), right}})}});
    }
    return json;
  }

  /// Why coverage of the tests as they are is what it is: one difference at a time.
  Json switches() {
    std::map<bool, Relevance> relevance;
    for (bool published : {false, true})
      relevance[published] =
          published == protocol_.plain_convolutions ? relevance_.at(layer_) : unit_relevance(published).at(layer_);
    Json rows = Json::array();
    for (const IdcSwitch& one : idc_switches()) {
      Json row = {{"name", one.name}};
      const at::Tensor originals = originals_at(idc_->read_at(layer_, one.form));
      for (int64_t m : kImportant) {
        row[fmt::format("IDC{}", m)] =
            idc_figure(layer_, relevance.at(one.published_relevance), one.form, m, originals, {}, classes())["mean"];
      }
      rows.push_back(std::move(row));
    }
    return {{"rows", rows}};
  }

  const TrainedNetwork& network_;
  const DeepImportanceOptions& options_;
  const Protocol& protocol_;
  inputs::Subject changed_;
  std::optional<LayerChain> chain_;
  at::Tensor train_, train_labels_, test_, test_labels_;
  at::Tensor units_;   ///< tests as parts of their valid range
  at::Tensor pixels_;  ///< relevance of their values
  UnitBatch known_, tests_;
  std::vector<Rows> by_class_;
  size_t layer_ = 0;
  std::map<size_t, Relevance> relevance_;
  std::optional<IdcStudy> idc_;
  std::optional<stream::RawRange> range_;
  std::optional<inputs::Network> attacked_;
  observers::ClassTraces traces_;
  std::optional<observers::Lsa> likelihood_;
  std::optional<observers::Dsa> distance_;
  double least_likelihood_ = INFINITY;
  std::vector<double> likely_, near_;
};

}  // namespace

const std::vector<std::string>& deepimportance_trials() {
  static const std::vector<std::string> all = {"network", "reaction", "U_O",   "U_S", "U_DI",   "+S",
                                               "+FGSM",   "+BIM",     "+JSMA", "+CW", "layers", "switches"};
  return all;
}

trials::Part deepimportance_part(const std::string& prefix, const std::string& model,
                                 const std::function<TrainedNetwork()>& open_network,
                                 const DeepImportanceOptions& options) {
  trials::Part part{prefix, {}, {}};
  part.prepare = [prefix, open_network, options]() -> trials::RunTrial {
    const auto network = std::make_shared<const TrainedNetwork>(open_network());
    const auto own = std::make_shared<const DeepImportanceOptions>(options);
    const auto studied = std::make_shared<Studied>(*network, *own);
    return [network, own, studied, prefix](const std::string& key) {
      const auto start = std::chrono::steady_clock::now();
      Json result = studied->run(key.substr(prefix.size() + 1));
      result["seconds"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      return json_text(result);
    };
  };
  for (const std::string& trial : deepimportance_trials()) part.keys.push_back(prefix + "|" + trial);
  return part;
}

trials::PartsOptions telling_seconds(const std::function<void(const std::string&)>& progress) {
  return {1, {}, [progress](const std::string& key, const std::string& result) {
            if (progress)
              progress(
                  fmt::format("{} in {:.1f} s", key, trials::trial_document(key, result).top().at("seconds").number()));
          }};
}

void run_deepimportance(Store& store, const std::string& prefix, const TrainedNetwork& network,
                        const DeepImportanceOptions& options, const std::function<void(const std::string&)>& progress) {
  const trials::Part part = deepimportance_part(
      prefix, network.model, [&] { return network; }, options);
  trials::run_parts(store, {part}, telling_seconds(progress));
}

}  // namespace netmend::studies
