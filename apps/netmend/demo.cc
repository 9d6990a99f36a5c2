// netmend demo: the whole tour on data that netmend draws itself. It trains a network, puts three known faults into the
// network and its tests, and lets the ordinary commands find and mend them; each step shows what a user would type.
#include <ATen/ATen.h>
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

#include "base/file.h"
#include "base/npy.h"
#include "base/random.h"
#include "base/run_folder.h"
#include "base/text.h"
#include "dataset/contact_sheet.h"
#include "edits/edit.h"
#include "executor/layers.h"
#include "faults/plant.h"
#include "netmend/run_findings.h"
#include "netmend/show.h"
#include "netmend/train.h"
#include "onnx/reader.h"
#include "onnx/writer.h"
#include "zoo/zoo.h"

namespace netmend::app {
namespace {

constexpr const char* kArchitecture = "lenet5";
constexpr int64_t kMislabelled = 7, kAs = 1;  ///< sevens that are labelled as ones
constexpr double kShare = 0.3;                ///< of them
constexpr double kLeastLost = 0.06, kMostLost = 0.2;  ///< accuracy that the damaged unit may cost

/// With --json the commands of the tour must not print: their documents are read from their run folders.
class Muted {
 public:
  explicit Muted(bool mute) {
    if (!mute) return;
    std::fflush(stdout);
    kept_ = dup(STDOUT_FILENO);
    const int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDOUT_FILENO);
    close(nowhere);
  }
  ~Muted() {
    if (kept_ < 0) return;
    std::fflush(stdout);
    dup2(kept_, STDOUT_FILENO);
    close(kept_);
  }

 private:
  int kept_ = -1;
};

std::string npy_of(const at::Tensor& tensor) {
  at::Tensor plain = tensor.contiguous();
  std::string bytes = npy_header(plain.scalar_type() == at::kByte ? "|u1" : "<i8",
                                 std::vector<int64_t>(plain.sizes().begin(), plain.sizes().end()));
  return bytes.append(static_cast<const char*>(plain.data_ptr()), size_t(plain.numel()) * plain.element_size());
}

/// What was planted, and what was said about it.
struct Planted {
  std::string what, kind, found;
};

class Demo {
 public:
  Demo(const Common& common, const DemoOptions& options)
      : common_(common), folder_(common.out, "demo", common.arguments) {
    how_.epochs = options.epochs, how_.seed = common.seed, how_.jobs = common.jobs;
    how_.rate = 0.002, how_.batch = 64;
  }

  int run() {
    start_ = std::chrono::steady_clock::now();
    if (!common_.json)
      fmt::print("This demo needs no file: netmend draws its own digits, and everything lands in {}\n", folder_.path());
    look_at_data();
    if (!train_network()) return folder_.finish(common_.seed, seconds(), 130), 130;
    write_trained(*trainer_, how_, train_->info(), sound_);
    plant_faults();
    int status = check_and_repair();
    folder_.finish(common_.seed, seconds(), status);
    return status;
  }

 private:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
  /// A step: what happens, and how to do it by hand.
  void tell(const std::string& what, const std::string& command) {
    if (!common_.json) fmt::print("\n{}. {}\n   $ {}\n\n", ++step_, what, command);
    std::fflush(stdout);
  }

  void look_at_data() {
    tell(fmt::format("Look at the data: {} drawn digits to learn from, {} to be tested on.",
                     with_commas(train_->size()), with_commas(test_->size())),
         "netmend data glyphs:test --sheet " + sheet_);
    dataset::write_contact_sheet(*test_, dataset::sheet_samples(*test_, 8), 8, sheet_);
    if (!common_.json) fmt::print("   {} shows eight of each digit.\n", sheet_);
  }

  /// False when Ctrl-C came first.
  bool train_network() {
    graph_ = zoo::make(kArchitecture, {.seed = common_.seed});
    onnx::write_model(graph_, fresh_);
    tell(fmt::format("Train a network: {}, {} parameters, {} times through the data.", kArchitecture,
                     with_commas(zoo::parameter_count(graph_)), how_.epochs),
         fmt::format("netmend lab new {} -o {} && netmend train {} --data glyphs --epochs {} -o {}", kArchitecture,
                     fresh_, fresh_, how_.epochs, sound_));
    trainer_.emplace(training::Task{fresh_, graph_, graph_.outputs[0], train_, test_, how_});
    if (!common_.json) print_epoch_head();
    TrainingEnd end = run_training(common_, *trainer_, train_->size(), "", [&](const training::Epoch& epoch) {
      if (!common_.json) print_epoch(epoch);
    });
    if (end.interrupted) say(common_, "stopped before training was complete");
    return !end.interrupted;
  }

  double accuracy(const model::Graph& graph) const {
    Common silent = common_;
    silent.quiet = true;
    Judged judged = make_judged(silent, sound_, graph, first_inputs(test_, 2000), "", {});
    observers::Predictions watch(judged.settings, false);
    stream::PassOptions how = pass_options(silent);
    auto state = stream::run_pass(judged.subject, {&watch}, how).collected[0].fold(watch);
    return observers::finish(watch, dynamic_cast<const observers::PredictionState&>(*state)).accuracy;
  }

  void plant_faults() {
    model::Graph graph = onnx::read_model(sound_);
    const double before = accuracy(graph);
    const auto layers = executor::find_layers(graph);
    for (uint64_t draw = 0; unit_.empty(); ++draw) {
      model::Graph faulty = graph;
      faults::Fault fault =
          faults::plant(faulty, layers, faults::find_kind("random-weights"), {.seed = common_.seed + draw});
      edits::apply(faulty, fault.edits);
      const double lost = before - accuracy(faulty);
      if ((lost < kLeastLost || lost > kMostLost) && draw < 200) continue;
      unit_ = fault.units[0];
      onnx::write_model(faulty, faulty_);
    }
    std::vector<int64_t> all(size_t(test_->size()), 0);
    for (size_t i = 0; i < all.size(); ++i) all[i] = int64_t(i);
    dataset::Batch batch = dataset::open("glyphs:test,scale=1")->read(all);
    at::Tensor labels = batch.labels.clone();
    for (int64_t i = 0; i < labels.numel(); ++i) {
      int64_t& label = labels.data_ptr<int64_t>()[i];
      if (label == kMislabelled && Random(common_.seed, uint64_t(i)).uniform() < kShare) label = kAs, ++wrong_;
    }
    std::ofstream out(tests_, std::ios::binary);
    ZipWriter zip(out);
    zip.add("x.npy", npy_of((255 - batch.inputs[0]).to(at::kByte)));
    zip.add("y.npy", npy_of(labels));
    zip.finish();
    planted_ = {{fmt::format("a damaged unit: {} has random weights", unit_), "suspicious-unit", ""},
                {fmt::format("wrong labels in one class: {} sevens are labelled as ones", wrong_), "mislabelled", ""},
                {"a mismatch of preprocessing: the tests are negatives, dark where training was bright", "preprocessing", ""}};
    if (common_.json) return;
    fmt::print("\n{}. Plant three faults, as they happen to people, and forget where.\n\n", ++step_);
    for (const Planted& one : planted_) fmt::print("   - {}\n", one.what);
  }

  /// The tests as a user would name them first, and with what the check-up tells to add.
  std::string spec(bool mended) const {
    return "npz:" + tests_ + ",x=x,y=y," + (mended ? "scale=-0.00392157,mean=-1" : "scale=1/255");
  }

  /// Notes which of the planted faults a check-up names.
  void take_findings(const std::string& run) {
    for (const findings::Finding& finding : read_findings(run).findings)
      for (Planted& one : planted_) {
        const bool merged = std::any_of(finding.related.begin(), finding.related.end(),
                                        [&](const std::string& id) { return id.rfind(one.kind, 0) == 0; });
        const bool right_unit = one.kind != "suspicious-unit" || finding.where == unit_;
        if (one.found.empty() && ((finding.kind == one.kind && right_unit) || merged))
          one.found = level_name(finding.level) + " " + finding.id();
      }
  }

  int run_check(const std::string& data, const std::string& folder) {
    CheckOptions options;
    options.model = faulty_, options.data = data, options.train = "glyphs:train", options.budget = "quick";
    Common own = common_;
    own.json = false, own.out = folder;
    Muted muted(common_.json);
    const int status = check(own, options);
    take_findings(folder);
    return status;
  }

  int check_and_repair() {
    const std::string first = folder_.file("check-1"), second = folder_.file("check-2"),
                      fixed = folder_.file("fixed.onnx");
    tell("Check it, with the tests as they came.",
         fmt::format("netmend check {} --data {} --train glyphs:train --budget quick", faulty_, spec(false)));
    if (run_check(spec(false), first) == 130) return 130;
    tell("Prepare the tests as the check-up says, and check again.",
         fmt::format("netmend check {} --data {} --train glyphs:train --budget quick", faulty_, spec(true)));
    if (run_check(spec(true), second) == 130) return 130;
    tell("Repair: search for a small change, confirm it on inputs that no search saw.",
         fmt::format("netmend repair {} --data glyphs:train --limit 12000 --budget quick -o {}", faulty_, fixed));
    RepairOptions repair;
    repair.model = faulty_, repair.data = "glyphs:train", repair.limit = 12000, repair.budget = "quick",
    repair.product = fixed;
    repair.yes = true;
    Common own = common_;
    own.json = false, own.out = folder_.file("repair");
    int status = 0;
    {
      Muted muted(common_.json);
      status = repair_model(own, repair);
    }
    if (status == 130) return status;
    conclude(second, status == 0 ? fixed : "");
    return 0;
  }

  void conclude(const std::string& run, const std::string& fixed) {
    const double sound = accuracy(onnx::read_model(sound_)), faulty = accuracy(onnx::read_model(faulty_));
    const double after = fixed.empty() ? faulty : accuracy(onnx::read_model(fixed));
    const auto found =
        std::count_if(planted_.begin(), planted_.end(), [](const Planted& one) { return !one.found.empty(); });
    Json all = {{"planted", Json::array()},
                {"found", found},
                {"accuracy", {{"sound", sound}, {"damaged", faulty}, {"repaired", after}}},
                {"model", sound_},
                {"repaired", fixed},
                {"report", run + "/report.html"},
                {"sheet", sheet_},
                {"seconds", seconds()},
                {"run", folder_.path()}};
    for (const Planted& one : planted_)
      all["planted"].push_back({{"what", one.what}, {"found", one.found.empty() ? Json(nullptr) : Json(one.found)}});
    write_file(folder_.file("demo.json"), all.dump(2) + "\n");
    if (common_.json) return print_json(all);
    fmt::print("\n{}. What was planted, and what was found: {} of {}.\n\n", ++step_, found, planted_.size());
    for (const Planted& one : planted_)
      fmt::print("   {}\n       {}\n", one.what, one.found.empty() ? "not found" : "found: " + one.found);
    fmt::print(
        "\n   accuracy on sound tests: {:.1f} % before the damage, {:.1f} % with it, {:.1f} % after the repair\n",
        100 * sound, 100 * faulty, 100 * after);
    fmt::print("\nThat took {:.0f} s. Look at the report, then try your own model:\n", seconds());
    fmt::print("   netmend open {}\n   netmend init your.onnx --data images:your-photos && netmend check\n", run);
  }

  const Common& common_;
  RunFolder folder_;
  training::Options how_;
  const std::string fresh_ = folder_.file("fresh.onnx"), sound_ = folder_.file("sound.onnx"),
                    faulty_ = folder_.file("faulty.onnx"), tests_ = folder_.file("tests.npz"),
                    sheet_ = folder_.file("digits.png");
  std::shared_ptr<const dataset::Dataset> train_ = dataset::open("glyphs:train"), test_ = dataset::open("glyphs:test");
  model::Graph graph_;
  std::optional<training::Trainer> trainer_;
  std::vector<Planted> planted_;
  std::string unit_;
  int64_t wrong_ = 0;
  int step_ = 0;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace

int demo(const Common& common, const DemoOptions& options) { return Demo(common, options).run(); }

}  // namespace netmend::app
