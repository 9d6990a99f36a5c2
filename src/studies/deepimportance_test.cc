#include "studies/deepimportance.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "adequacy/assess.h"
#include "adequacy/learn.h"
#include "inputs/case_for_test.h"
#include "localise/candidates.h"
#include "stream/layers.h"
#include "studies/deepimportance_paper.h"
#include "studies/idc_study.h"
#include "studies/tables.h"

namespace netmend::studies {
namespace {

using Json = nlohmann::ordered_json;

TEST(Paper, GivesWhatItGives) {
  EXPECT_DOUBLE_EQ(paper::diversity("lenet4", "IDC10", "U_DI")->mean, 18.1);
  EXPECT_DOUBLE_EQ(paper::diversity("cifar", "KMNC", "U_O")->mean, 36.8);
  EXPECT_FALSE(paper::diversity("cifar", "LSC", "U_O"));  // it ran out of time
  EXPECT_DOUBLE_EQ(*paper::effectiveness("lenet5", "DSC", "+JSMA"), 85.7);
  EXPECT_FALSE(paper::effectiveness("lenet5", "DSC", "+noise"));
  EXPECT_DOUBLE_EQ(*paper::layer("lenet5", "fc2", "U_O+DI"), 43.4);
  EXPECT_DOUBLE_EQ(paper::reaction("lenet1", "important")->mean, 0.28);
}

/// A store as finished runs leave it; `di` is the IDC that U_DI reaches.
Json report_of(const std::string& name, double di, int runs = 4) {
  std::string path = testing::TempDir() + name;
  for (const char* end : {"", ".lock", "-wal", "-shm"}) std::filesystem::remove(path + end);
  Store store(path, "deepimportance", kDeepImportanceVersion);
  for (const char* protocol : {"corrected", "df63927"})
    for (int run = 1; run <= runs; ++run)
      for (const std::string& trial : deepimportance_trials()) {
        Json json = {{"accuracy", 0.9}, {"tests", 10}, {"training", 100}, {"inputs", 10}, {"confidence", 0.8}};
        const double more = protocol[0] == 'd' ? 0.3 + 0.02 * run : di;  // theirs holds always
        for (const char* criterion : {"IDC6", "IDC8", "IDC10", "IDC12", "NC", "KMNC"})
          for (const char* kind : {"figures", "fresh", "accumulated", "whole"})
            json[kind][criterion] = trial == "U_DI" ? more : 0.2 + 0.02 * run;
        for (const char* kind : {"important", "random", "random_mean"})
          json[kind] = {{"mean", kind[0] == 'i' ? 2.0 + 0.1 * run : 1.0}, {"sd", 0.5}};
        json["by_class"] = json["other_percentile"] = Json::array();
        json["m"] = 4;
        json["layers"] = {{{"layer", "conv1"}, {"U_O", 0.5}, {"U_O+DI", 0.6}},
                          {{"layer", "conv2"}, {"U_O", 0.4 - 0.01 * run}, {"U_O+DI", 0.6}}};
        json["rows"] = {{{"name", "corrected"}, {"IDC6", 0.1}, {"IDC8", nullptr}}};
        store.put(std::string("p|") + protocol + "|lenet1|" + std::to_string(run) + "|" + trial, json.dump());
      }
  return report_deepimportance(store, "p", {"lenet1", "lenet5"}, runs);
}

std::string verdict(const Json& report, const std::string& id, const std::string& protocol = "") {
  for (const Json& row : report["conclusions"])
    if (row["id"] == id) return protocol.empty() ? row["verdict"] : row["by_protocol"][protocol]["verdict"];
  return "missing";
}

TEST(DeepImportanceReport, SaysPlainlyWhatHoldsUnderWhichProtocol) {
  Json above = report_of("above.db", 0.4), below = report_of("below.db", 0.1);
  EXPECT_EQ(above["protocols"], Json({"corrected", "df63927"}));
  EXPECT_EQ(above["networks"].size(), 2u);  // of lenet5 there is nothing
  EXPECT_EQ(verdict(above, "di-covers-more"), "holds");
  EXPECT_EQ(verdict(below, "di-covers-more", "corrected"), "does not hold");
  EXPECT_EQ(verdict(below, "di-covers-more", "df63927"), "holds");
  EXPECT_EQ(verdict(below, "di-covers-more"), "depends on the protocol");
  EXPECT_EQ(verdict(report_of("one.db", 0.4, 1), "di-covers-more"), "holds in each case");
  EXPECT_EQ(verdict(above, "important-react"), "holds");
  EXPECT_EQ(verdict(above, "important-react-scaled"), "not tested");
  EXPECT_EQ(verdict(above, "deeper-layers"), "does not hold");
  EXPECT_EQ(verdict(above, "deeper-react"), "holds");
  EXPECT_EQ(verdict(above, "attacks-raise"), "not shown");  // nothing moves
  for (const Json& row : above["table3"])
    if (row["criterion"] == "IDC6" && row["set"] == "U_O") {
      EXPECT_NEAR(row["ours"]["mean"].get<double>(), 25, 1e-9);
      EXPECT_NEAR(row["ours"]["sd"].get<double>(), std::sqrt(20.0 / 3), 1e-9);
      EXPECT_DOUBLE_EQ(row["paper"]["mean"].get<double>(), 34.6);
    }
  for (const Json& row : below["conclusions"])
    if (row["id"] == "di-covers-more") {
      // Four networks: 10 − (22, 24, 26, 28) points, that is −15 ± t(3) · √(20/3) / 2.
      const Json& found = row["by_protocol"]["corrected"];
      EXPECT_NEAR(found["mean"].get<double>(), -15, 1e-9);
      EXPECT_NEAR(found["high"].get<double>(), -15 + 3.182446305 * std::sqrt(20.0 / 3) / 2, 1e-6);
      EXPECT_LT(found["p"].get<double>(), 0.01);
    }
  const std::string text = deepimportance_text(above);
  EXPECT_NE(text.find("25.0 ±2.6 (34.6 ±2.2)"), std::string::npos);
  EXPECT_NE(table_of(text, 3).find("U_DI"), std::string::npos);
  EXPECT_EQ(above.dump().find("nan"), std::string::npos);
}

TEST(Tables, OneIsTakenOutByItsNumberOrItsPlace) {
  Table table({"a_b", "c"});
  table.row({"1 ±2 %", "–"});
  const std::string numbered = "## Table 2: x\n\n" + table.text() + "## Table 12\n\n| y |\n| - |\n",
                    plain = "# t\n" + table.text() + "| z |\n";
  EXPECT_EQ(table_of(numbered, 12), "| y |\n| - |\n");
  EXPECT_EQ(table_of(numbered, 2) + "\n", table.text());
  EXPECT_EQ(table_of(plain, 2), "| z |\n");
  EXPECT_THROW(table_of(numbered, 1), InputError);
  EXPECT_THROW(table_of(plain, 3), InputError);
  EXPECT_EQ(latex_of(table.text()),
            "\\begin{tabular}{ll}\n\\hline\na\\_b & c \\\\\n\\hline\n1 $\\pm$2 \\% & -- \\\\\n"
            "\\hline\n\\end{tabular}\n");
  EXPECT_TRUE(parse_slice("").holds(7));
  EXPECT_TRUE(parse_slice("2/3").holds(4));
  EXPECT_FALSE(parse_slice("2/3").holds(3));
  for (const char* text : {"0/2", "3/2", "1", "a/b", "1/2/3"}) EXPECT_THROW(parse_slice(text), InputError);
}

TEST(Protocols, AreToldByWhatWasChanged) {
  EXPECT_EQ(find_protocol("").text(), "corrected");
  Protocol published = find_protocol("df63927"), head = find_protocol("head");
  EXPECT_TRUE(published.idc.swapped && !head.idc.swapped && head.idc.layer_before && published.accumulated);
  EXPECT_EQ(published.copies, 10);
  EXPECT_EQ(changed(published, {.copies = 3, .order = "fresh", .bias = "spread"}).text(),
            "df63927, copies 3, fresh, biases spread");
  EXPECT_EQ(changed(find_protocol("corrected"), {.noise = 0.75, .attacks = "cleverhans"}).text(),
            "corrected, noise 0.75, CleverHans");
  EXPECT_THROW(find_protocol("haed"), InputError);
  EXPECT_THROW(changed(published, {.order = "frehs"}), InputError);
}

/// Made-up pictures, labelled as a small network predicts them except for every seventh.
inputs::TestCase made_up_case(int64_t count, uint64_t seed, int64_t channels = 1, bool last = false) {
  at::Tensor raw = inputs::random_bytes({count, channels, 8, 8}, seed);
  dataset::Preprocess scaled;
  scaled.scale = 1.0 / 255;
  auto data = [&](const at::Tensor& labels) { return inputs::picture_data(raw, labels, 4, scaled, last); };
  inputs::TestCase first(inputs::small_network(5, channels, last), data(at::zeros({count}, at::kLong)));
  at::Tensor labels = at::tensor(first.chosen.predictions, at::kLong);
  for (int64_t i = 0; i < count; i += 7) labels[i] = (labels[i].item<int64_t>() + 1) % 4;
  return inputs::TestCase(inputs::small_network(5, channels, last), data(labels));
}

/// The slow twin: combinations of one class, written out from the values of its important units.
struct ClassTwin {
  const LayerChain& chain;
  observers::UnitBatch training, tests;
  Relevance relevance;

  double share(int64_t c, size_t layer, int64_t m, bool swapped, bool by_program) const {
    std::vector<std::pair<double, int64_t>> ranked;
    for (int64_t u = 0; u < relevance.size(1); ++u) ranked.emplace_back(-relevance[c][u].item<double>(), u);
    std::sort(ranked.begin(), ranked.end());
    std::vector<int64_t> units, owners;
    for (int64_t i = 0; i < m; ++i) units.push_back(ranked[size_t(i)].second);
    owners = units;
    if (swapped) std::sort(owners.begin(), owners.end());
    at::Tensor known = values_of(training, *chain.space(), chain.place(layer)),
               seen = values_of(tests, *chain.space(), chain.place(layer));
    std::vector<std::vector<double>> centroids;
    double all = 1;
    for (int64_t unit : owners) {
      std::vector<float> own;
      for (int64_t row = 0; row < training.count(); ++row) {
        const observers::SampleRow& about = training.rows[size_t(row)];
        if (about.label == double(c) && about.predicted == about.label) own.push_back(known[row][unit].item<float>());
      }
      if (own.empty() && !by_program) return 0;  // of this class nothing is known
      if (by_program) std::erase(own, 0.0f);
      std::vector<double> best{0};
      double score = -2;
      const observers::WeightedValues data = observers::weigh(own);
      for (int64_t k = 2; k <= 4 && (own.size() >= 10 || !by_program) && k <= int64_t(data.values.size()); ++k) {
        const std::vector<size_t> starts = observers::cut_into(data, k);
        const double found = observers::silhouette(data, starts);
        if (found > score || (by_program && found == score)) best = observers::means_of(data, starts), score = found;
      }
      if (by_program)
        for (double& centroid : best) centroid = std::round(centroid * 100) / 100;
      all *= double(best.size());
      centroids.push_back(best);
    }
    std::set<std::vector<size_t>> combinations;
    for (int64_t row = 0; row < tests.count(); ++row) {
      if (tests.rows[size_t(row)].label != double(c)) continue;
      std::vector<size_t> one;
      for (size_t i = 0; i < units.size(); ++i) {
        const double value = seen[row][units[i]].item<float>();
        size_t nearest = 0;
        for (size_t k = 1; k < centroids[i].size(); ++k)
          if (std::abs(value - centroids[i][k]) < std::abs(value - centroids[i][nearest])) nearest = k;
        one.push_back(nearest);
      }
      combinations.insert(one);
    }
    return double(combinations.size()) / all;
  }
};

TEST(IdcStudy, CountsAsTheProgramDoesSwappedAndAligned) {
  inputs::TestCase train = made_up_case(400, 1), test = made_up_case(90, 2);
  const LayerChain chain(test.subject, test.settings.head);
  std::vector<std::string> names;
  for (const ChainLayer& layer : chain.layers()) names.push_back(layer.name);
  EXPECT_EQ(names, (std::vector<std::string>{"conv1", "pool1", "flatten", "fc1", "fc2", "softmax"}));
  auto read = [&](const inputs::TestCase& of) {
    std::vector<int64_t> all;
    for (int64_t i = 0; i < of.data->size(); ++i) all.push_back(i);
    dataset::Batch batch = of.data->read(all);
    return chain.read(batch.inputs[0], batch.labels, 1);
  };
  const observers::UnitBatch known = read(train), tests = read(test);
  const size_t layer = chain.find("fc1");
  EXPECT_EQ(chain.hidden().back(), layer);
  at::Tensor relevance = inputs::random_bytes({4, 12}, 3).to(at::kDouble);
  IdcStudy study(chain, known, 4);
  const ClassTwin twin{chain, known, tests, relevance};
  at::Tensor values = values_of(tests, *chain.space(), chain.place(layer));
  for (const char* name : {"corrected", "df63927"})
    for (int64_t c = 0; c < 4; ++c) {
      const IdcForm form = find_protocol(name).idc;
      Combinations found(chain, study.units(layer, relevance, c, 4, form));
      for (int64_t row = 0; row < tests.count(); ++row)
        if (tests.rows[size_t(row)].label == double(c)) found.add(values[row].unsqueeze(0));
      EXPECT_DOUBLE_EQ(found.share(), twin.share(c, layer, 4, form.swapped, form.rounded)) << name << c;
    }
  // The newest state reads the flattening, whose values count channels fastest.
  IdcForm head = find_protocol("head").idc;
  EXPECT_EQ(chain.layers()[study.read_at(layer, head)].name, "flatten");
  std::vector<int64_t> some{0, 1};
  dataset::Batch batch = test.data->read(some);
  at::Tensor flat = chain.read_layer(layer - 1, batch.inputs[0], 1);
  at::Tensor pooled = chain.read_layer(chain.find("pool1"), batch.inputs[0], 1);
  EXPECT_EQ(flat.size(1), 96);
  EXPECT_NEAR(flat[1].reshape({16, 6}).select(1, 2).mean().item<float>(), pooled[1][2].item<float>(), 1e-5);
  EXPECT_FALSE(study.readable(chain.find("conv1"), {}, head));
}

TEST(DeepImportance, GoesOnAndAgreesWithCoverage) {
  std::string path = testing::TempDir() + "small.db";
  for (const char* end : {"", ".lock", "-wal", "-shm"}) std::filesystem::remove(path + end);
  inputs::TestCase train = made_up_case(300, 1), test = made_up_case(70, 2);
  TrainedNetwork network{"lenet5", train.subject, test.subject, train.settings, test.settings};
  DeepImportanceOptions options;
  options.attacked = 10, options.carlini_steps = 5, options.jobs = 1;
  auto strip = [](const std::optional<std::string>& text) {
    Json json = Json::parse(text.value());
    json.erase("seconds");
    return json;
  };
  std::vector<std::string> progress;
  auto hear = [&](const std::string& line) { progress.push_back(line); };
  Store store(path, "deepimportance", kDeepImportanceVersion);
  store.put("a|layers", "{}");  // what is there is not done again
  run_deepimportance(store, "a", network, options, hear);
  EXPECT_EQ(progress.size(), deepimportance_trials().size() - 1);
  EXPECT_EQ(store.find("a|layers"), "{}");
  progress.clear();
  run_deepimportance(store, "a", network, options, hear);
  EXPECT_TRUE(progress.empty());
  options.jobs = 3;  // a trial depends on its key, not on workers
  run_deepimportance(store, "b", network, options, hear);
  for (const std::string& trial : deepimportance_trials())
    if (trial != "layers") {
      EXPECT_EQ(strip(store.find("a|" + trial)), strip(store.find("b|" + trial))) << trial;
    }

  // Of all classes at once, the figures of `netmend coverage`.
  auto space = observers::make_unit_space(
      test.subject,
      localise::candidates(stream::find_layers(test.subject), test.subject.graph, test.head, test.settings.outputs),
      {});
  adequacy::LearnOptions how;
  how.pass.quiet = true;
  adequacy::LearnedProfile learned =
      adequacy::learn(train.subject, train.settings, space, space->layers().size() - 1, how);
  adequacy::AssessOptions all;
  all.criteria = adequacy::parse_criteria("LSC,DSC");
  all.pass.quiet = true;
  adequacy::Assessment found = adequacy::assess(test.subject, test.settings, space, &learned.profile, all);
  const Json original = strip(store.find("a|U_O"));
  for (const observers::Figure& figure : found.figures)
    EXPECT_NEAR(original["figures"][figure.name].get<double>(), figure.value, 1e-12) << figure.name;
  EXPECT_EQ(original["by_class"]["IDC6"].size(), 4u);
  double sum = 0;
  for (const Json& share : original["by_class"]["IDC6"]) sum += share.get<double>();
  EXPECT_NEAR(original["figures"]["IDC6"].get<double>(), sum / 4, 1e-12);
  for (const char* set : {"U_S", "U_DI", "+FGSM"})
    for (const auto& [name, value] : original["figures"].items())
      if (name != "NLC" && value.is_number()) {
        EXPECT_GE(strip(store.find(std::string("a|") + set))["figures"][name].get<double>(), value.get<double>());
      }
  // What was counted before U_S and not taken back can only add.
  options.protocol = find_protocol("df63927"), options.protocol.copies = 2, options.protocol.nc_copies = 1;
  run_deepimportance(store, "c", network, options, hear);
  const Json random = strip(store.find("c|U_S"));
  for (const char* rival : {"NC", "KMNC", "NBC", "SNAC", "TKNC"}) {
    EXPECT_GE(random["accumulated"][rival].get<double>(), random["fresh"][rival].get<double>()) << rival;
    EXPECT_EQ(random["figures"][rival], random["accumulated"][rival]);
  }
}

TEST(DeepImportance, ColourImagesHaveAllTablesWithCostlyAttacksOnSome) {
  std::string path = testing::TempDir() + "colour.db";
  for (const char* end : {"", ".lock", "-wal", "-shm"}) std::filesystem::remove(path + end);
  inputs::TestCase train = made_up_case(200, 1, 3), test = made_up_case(60, 2, 3);
  DeepImportanceOptions options;
  options.attacked = 2, options.carlini_steps = 5, options.jobs = 1;
  options.protocol = find_protocol("df63927"), options.protocol.copies = 1, options.protocol.nc_copies = 1;
  options.protocol.cleverhans = false;  // its C&W takes 5,000 steps
  Store store(path, "deepimportance", kDeepImportanceVersion);
  auto run = [&](const std::string& model) {
    run_deepimportance(store, "p|df63927|" + model + "|1",
                       {model, train.subject, test.subject, train.settings, test.settings}, options, {});
    return [&store, model](const std::string& trial) {
      return Json::parse(store.find("p|df63927|" + model + "|1|" + trial).value());
    };
  };
  auto cifar = run("cifar"), lenet = run("lenet5");
  for (const char* set : {"+JSMA", "+CW"}) EXPECT_LE(cifar(set)["inputs"].get<int64_t>(), 2 * 4) << set;
  EXPECT_GT(cifar("+FGSM")["inputs"].get<int64_t>(), 2 * 4);
  // The program's copy of the network for CIFAR-10 has its activations, that of the others has not: relevance of the
  // same network is the corrected one there, and another one here.
  auto switched = [](const Json& switches, const std::string& name) {
    for (const Json& row : switches["rows"])
      if (row["name"] == name) return Json{row["IDC6"], row["IDC8"], row["IDC10"]};
    return Json();
  };
  const std::string copy = "relevance: by the program's copy";
  EXPECT_EQ(switched(cifar("switches"), copy), switched(cifar("switches"), "corrected"));
  EXPECT_NE(switched(lenet("switches"), copy), switched(lenet("switches"), "corrected"));
  const Json report = report_deepimportance(store, "p", {"cifar"}, 1);
  EXPECT_EQ(report["table4"].size(), 6 * 10u);
  EXPECT_EQ(report["table5"].size(), 4u);
  for (const Json& row : report["conclusions"]) EXPECT_NE(row["verdict"], "not tested") << row;
  const std::string text = deepimportance_text(report);
  EXPECT_EQ(text.find("[–"), std::string::npos);  // one network has no interval
}

}  // namespace
}  // namespace netmend::studies
