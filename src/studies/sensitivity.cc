#include "studies/sensitivity.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "mutants/inhibitors.h"
#include "mutants/judged.h"
#include "session/split.h"
#include "stats/comparisons.h"
#include "studies/trained_networks.h"
#include "trials/store.h"

namespace netmend::studies {
namespace {

using Json = nlohmann::ordered_json;
using Data = std::shared_ptr<const dataset::Dataset>;

constexpr int kSensitivityVersion = 2;
constexpr int64_t kTrainings = 5, kInputs = 10000, kEpochs = 3;  ///< of each network, of its training data
constexpr size_t kNetworks = 2;

/// A score on strong tests and on weak ones.
struct Scores {
  double strong = 0, weak = 0;
  double sensitivity() const { return strong > 0 ? (strong - weak) / strong : NAN; }
};
Json to_json(const Scores& one) {
  return {{"strong", one.strong},
          {"weak", one.weak},
          {"sensitivity", std::isfinite(one.sensitivity()) ? Json(one.sensitivity()) : Json(nullptr)}};
}

/// One training of a network on some data.
struct Opened {
  std::unique_ptr<session::Session> session;
  const stream::Subject& subject() const { return session->test().subject; }
};

class Sensitivity {
 public:
  Sensitivity(const StudyContext& context, const std::string& network, int64_t tests)
      : context_(context), network_(network) {
    const size_t at = network.find('@');
    const std::string name = network.substr(0, at), data = network.substr(at + 1);
    for (int64_t i = 0; i < kTrainings; ++i) {
      std::string file = fmt::format("{}/{}-{}-{}.onnx", context.folder, name, data, i);
      std::replace(file.begin(), file.end(), ':', '-');
      if (!std::filesystem::exists(file)) {
        tell(context, fmt::format("training {} of {}: {}", i + 1, kTrainings, network));
        train_named(name, data, file, {context.seed + uint64_t(i), kEpochs, kInputs}, context.jobs);
      }
      files_.push_back({file, data});
    }
    session::Session first = open_session(context, files_[0]);
    session::Split* train = first.train();
    if (!train) fail("{} has no training data", network);
    learned_ = dataset::subset(train->data, stream::spread(std::min(kInputs, train->data->size()), tests));
    strong_ = dataset::subset(first.test().data, stream::spread(first.test().data->size(), tests));
    weak_ = dataset::subset(strong_, most_confident_half());
  }

  Json run() {
    Json row = {{"network", network_}, {"trainings", kTrainings}, {"tests", strong_->size()}, {"weak", weak_->size()}};
    tell(context_, network_ + ": inhibitors");
    inhibitors(row);
    tell(context_, network_ + ": operators of DeepMutation++");
    row["deepmutation"] = operators();
    return row;
  }

 private:
  std::vector<Opened> open(const Data& data) const {
    std::vector<Opened> list;
    for (const NetworkFile& one : files_) {
      session::Session whole = open_session(context_, one);
      session::Request request = whole.request();
      list.push_back({std::make_unique<session::Session>(request, one.file, whole.graph(), data)});
    }
    return list;
  }

  /// By the mean confidence of all trainings in the labelled class or any other: DeepCrime's easy inputs.
  std::vector<int64_t> most_confident_half() const {
    std::vector<double> confidence(size_t(strong_->size()));
    for (const Opened& one : open(strong_)) {
      observers::Predictions predictions(one.session->task(), true);
      stream::Pass pass(one.subject());
      auto judged = pass.watch(predictions);
      one.session->run(pass, one.session->test(), "confidence");
      const auto& rows = pass.state(judged).rows;
      for (size_t i = 0; i < rows.size(); ++i) confidence[i] += rows[i].confidence;
    }
    std::vector<int64_t> order(confidence.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = int64_t(i);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return confidence[size_t(a)] > confidence[size_t(b)]; });
    order.resize(order.size() / 2);
    std::sort(order.begin(), order.end());
    return order;
  }

  std::vector<mutants::Strength> strengths_on(const Data& data) const {
    const std::vector<Opened> sessions = open(data);
    std::vector<mutants::Original> originals;
    for (const Opened& one : sessions)
      originals.push_back({&one.subject(), &one.session->task(), &one.session->layers()});
    return mutants::find_strengths(originals, context_.jobs);
  }

  /// DeepCrime's score of an operator with a strength: how much of what training data kills the tests kill.
  void inhibitors(Json& row) const {
    const auto by_training = strengths_on(learned_), by_strong = strengths_on(strong_), by_weak = strengths_on(weak_);
    Scores mean;
    int64_t killable = 0, monotone = 0;
    row["cells"] = Json::array();
    for (size_t c = 0; c < by_training.size(); ++c) {
      const mutants::Strength& own = by_training[c];
      monotone += own.monotone();
      auto score = [&](const mutants::Strength& tests) {
        if (!tests.killable) return 0.0;
        return std::clamp((1 - tests.weakest) / (1 - own.weakest), 0.0, 1.0);
      };
      Json cell = {{"inhibitor", own.kind == mutants::Inhibitor::kWeights ? "wi" : "ni"},
                   {"layer", own.layer},
                   {"share", own.share},
                   {"killable", own.killable}};
      if (own.killable && own.weakest < 1) {  // where only the strongest kills, no tests could do better
        const double strong = score(by_strong[c]), weak = score(by_weak[c]);
        mean.strong += strong, mean.weak += weak, ++killable;
        cell["training"] = own.weakest, cell["strong"] = strong, cell["weak"] = weak;
      }
      row["cells"].push_back(std::move(cell));
    }
    if (killable > 0) mean.strong /= double(killable), mean.weak /= double(killable);
    row["muff"] = to_json(mean);
    row["killable"] = killable, row["of"] = by_training.size(), row["monotone"] = monotone;
  }

  /// By class, as DeepMutation has it, on the first training; and by accuracy over all trainings, as DeepCrime has it.
  Json operators() const {
    struct Seen {
      double by_class = 0;
      std::map<std::string, std::vector<double>> lost;
    };
    auto judge = [&](const Data& data) {
      Seen seen;
      const std::vector<Opened> sessions = open(data);
      for (const Opened& one : sessions) {
        mutants::Generation how;
        how.operators = mutants::find_operators("deepmutation,deepmutation++"), how.sample = 300;
        how.seed = context_.seed;
        const auto list = mutants::generate(one.subject(), one.session->layers(), one.session->task(), how).list;
        const mutants::Judged judged = mutants::judge(one.subject(), one.session->task(), one.session->layers(), list,
                                                      mutants::Kill::kClass, context_.jobs);
        for (size_t m = 0; m < list.size(); ++m)
          seen.lost[list[m].id].push_back(judged.original_accuracy - judged.accuracy[m]);
        std::vector<size_t> every(list.size());
        for (size_t m = 0; m < every.size(); ++m) every[m] = m;
        seen.by_class += mutants::score(judged.table, mutants::killed(judged.table), every).value / double(kTrainings);
      }
      return seen;
    };
    const Seen learned = judge(learned_), strong = judge(strong_), weak = judge(weak_);
    auto killed = [](const Seen& seen, const std::string& id) {
      const auto hit = seen.lost.find(id);
      if (hit == seen.lost.end()) return false;
      const stats::Comparison test = stats::paired_t_test(hit->second);
      return test.p < 0.05 && test.effect >= 0.5;
    };
    Scores statistical;
    int64_t killable = 0;
    for (const auto& one : learned.lost) {
      if (!killed(learned, one.first)) continue;
      ++killable, statistical.strong += killed(strong, one.first), statistical.weak += killed(weak, one.first);
    }
    if (killable > 0) statistical.strong /= double(killable), statistical.weak /= double(killable);
    return {{"by_class", to_json({strong.by_class, weak.by_class})},
            {"statistical", to_json(statistical)},
            {"mutants", learned.lost.size()},
            {"killable", killable}};
  }

  const StudyContext& context_;
  std::string network_;
  std::vector<NetworkFile> files_;
  Data learned_, strong_, weak_;
};

}  // namespace

Json run_sensitivity(const StudyContext& context, const ScoresRequest& request) {
  trials::Store store(context.folder + "/sensitivity.db", "sensitivity", kSensitivityVersion);
  Json rows = Json::array();
  for (const std::string& network : request.models) {
    if (rows.size() == kNetworks || network.find(".onnx") != std::string::npos) continue;
    const std::string key =
        fmt::format("{}|{}|{}|{}|{}|{}", network, context.seed, kTrainings, kInputs, kEpochs, request.tests);
    if (!store.find(key)) store.put(key, json_text(Sensitivity(context, network, request.tests).run()));
    rows.push_back(Json(trials::trial_document(key, *store.find(key)).json()));
  }
  return rows;
}

/// Whether MuFF's scores fall by more than DeepMutation++'s on one network, with the same tests.
std::string relation(const Json& row) {
  const Json &ours = row["muff"]["sensitivity"], &theirs = row["deepmutation"]["by_class"]["sensitivity"];
  const std::string network = row["network"].get<std::string>();
  if (!ours.is_number() || !theirs.is_number())
    return fmt::format("{}: cannot be told, one of the scores is 0.", network);
  const double difference = 100 * (ours.get<double>() - theirs.get<double>());
  const std::string figures = fmt::format("{:.1f} % for inhibitors, {:.1f} % for DeepMutation++ by class",
                                          100 * ours.get<double>(), 100 * theirs.get<double>());
  if (std::abs(difference) < 1) return fmt::format("{}: unclear, {}.", network, figures);
  return fmt::format("{}: {}, {}.", network, difference > 0 ? "holds" : "does not hold", figures);
}

std::string sensitivity_text(const Json& rows) {
  if (rows.empty()) return "";
  std::string text =
      "\n## How sensitive are the scores?\n\nScore of all tests, of the most confident half, and by how much it falls. "
      "MuFF's inhibitors are netmend's definition.\n\n| network | operators | all tests | confident half | sensitivity "
      "|\n|---|---|---|---|---|\n";
  for (const Json& row : rows) {
    auto line = [&](const std::string& name, const Json& one) {
      text +=
          fmt::format("| {} | {} | {:.2f} | {:.2f} | {} |\n", row["network"].get<std::string>(), name,
                      one["strong"].get<double>(), one["weak"].get<double>(),
                      one["sensitivity"].is_number() ? fmt::format("{:.0f} %", 100 * one["sensitivity"].get<double>())
                                                     : std::string("–"));
    };
    const Json& others = row["deepmutation"];
    line(fmt::format("MuFF ({} of {} killable, {} monotone)", row["killable"].get<int64_t>(), row["of"].get<int64_t>(),
                     row["monotone"].get<int64_t>()),
         row["muff"]);
    line("DeepMutation++, by class", others["by_class"]);
    line(fmt::format("DeepMutation++, by accuracy over {} trainings ({} of {} killable)",
                     row["trainings"].get<int64_t>(), others["killable"].get<int64_t>(),
                     others["mutants"].get<int64_t>()),
         others["statistical"]);
  }
  text += "\nThat inhibitors are more sensitive than DeepMutation++, as MuFF's authors report:\n\n";
  for (const Json& row : rows) text += "- " + relation(row) + "\n";
  return text;
}

}  // namespace netmend::studies
