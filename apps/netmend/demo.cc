// netmend demo: the whole tour on data that netmend draws itself. It trains a network, puts three known faults into the
// network and its tests, and lets the ordinary commands find and mend them; each step shows what a user would type.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "base/escape.h"
#include "base/file.h"
#include "base/text.h"
#include "evidence/json.h"
#include "netmend/show.h"
#include "netmend/train.h"
#include "session/run_findings.h"
#include "studies/demo_data.h"
#include "studies/plant_run.h"
#include "training/train_run.h"

namespace netmend::app {
namespace {

constexpr const char* kArchitecture = "lenet5";
constexpr double kLeastLost = 6, kMostLost = 20;  ///< points of accuracy that the damaged unit may cost

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

/// What was planted, and what was said about it.
struct Planted {
  std::string what, kind, found;
};

class Demo {
 public:
  Demo(const Common& common, const DemoOptions& options)
      : common_(common), epochs_(options.epochs), folder_(common.out, "demo", common.arguments) {}

  int run() {
    if (!common_.json)
      print("This demo needs no file: netmend draws its own digits, and writes everything to {}\n", folder_.path());
    look_at_data();
    int status = train_network() ? 0 : 130;
    if (status == 0) {
      plant_faults();
      status = check_and_repair();
    }
    folder_.finish(common_.seed, seconds(), status);
    return status;
  }

 private:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
  /// A step: what happens, and how to do it by hand.
  void tell(const std::string& what, const Shell& command) {
    if (!common_.json) print("\n{}. {}\n   $ {}\n\n", ++step_, what, command.text());
    std::fflush(stdout);
  }

  void look_at_data() {
    const studies::DemoSizes sizes = studies::write_demo_sheet(sheet_);
    tell(fmt::format("Look at the data: {} drawn digits for training, {} for testing.", with_commas(sizes.train),
                     with_commas(sizes.test)),
         Shell::of("netmend data glyphs:test --sheet {}", sheet_));
    if (!common_.json) print("   {} shows eight of each digit.\n", sheet_);
  }

  /// False when Ctrl-C came first.
  bool train_network() {
    const int64_t parameters = training::write_new_model(kArchitecture, "glorot", common_.seed, fresh_);
    tell(fmt::format("Train a network: {}, {}, {}.", kArchitecture, counted(parameters, "parameter"),
                     counted(epochs_, "epoch")),
         Shell::of("netmend lab new {} -o {} && netmend train {} --data glyphs --epochs {} -o {}", kArchitecture,
                   fresh_, fresh_, epochs_, sound_));
    training::TrainRequest request;
    request.model = fresh_, request.data = "glyphs", request.epochs = epochs_, request.rate = 0.002;
    request.batch = 64, request.seed = common_.seed, request.jobs = common_.jobs, request.quiet = common_.quiet;
    training::TrainRun run(std::move(request));
    if (!common_.json) print_epoch_head();
    const training::TrainingEnd end = run.run([&](const training::Epoch& epoch) {
      if (!common_.json) print_epoch(epoch);
    });
    if (end.interrupted) return say(common_, "stopped before training was complete"), false;
    run.write(sound_);
    return true;
  }

  void plant_faults() {
    session::Request request;
    request.model = sound_, request.test = "glyphs:test", request.limit = studies::kDemoTests;
    request.seed = common_.seed, request.jobs = common_.jobs, request.quiet = true;
    session::Session session(std::move(request));
    studies::PlantRequest plant;
    plant.kind = "random-weights", plant.product = faulty_;
    plant.at_least = kLeastLost, plant.at_most = kMostLost;
    unit_ = studies::plant(session, plant).units.at(0);
    const int64_t wrong = studies::write_spoiled_tests(tests_, common_.seed).mislabelled;
    planted_ = {
        {fmt::format("a damaged unit: {} has random weights", unit_), "suspicious-unit", ""},
        {fmt::format("wrong labels in one class: {} sevens are labelled as ones", wrong), "mislabelled", ""},
        {"mismatched preprocessing: the tests are negatives, dark where training was bright", "preprocessing", ""}};
    if (common_.json) return;
    print("\n{}. Plant three faults of kinds that happen in practice, and forget where.\n\n", ++step_);
    for (const Planted& one : planted_) print("   - {}\n", one.what);
  }

  /// The tests as a user would name them first, and with what the check-up tells to add.
  std::string spec(bool mended) const {
    return "npz:" + tests_ + ",x=x,y=y," + (mended ? "scale=-0.00392157,mean=-1" : "scale=1/255");
  }

  /// Notes which of the planted faults a check-up names.
  void take_findings(const std::string& run) {
    for (const findings::Finding& finding : session::read_findings(run).findings)
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
    own.arguments = {"netmend", "check", faulty_, "--data", data, "--train", "glyphs:train", "--budget", "quick"};
    Muted muted(common_.json);
    const int status = check(own, options);
    take_findings(folder);
    return status;
  }

  int check_and_repair() {
    const std::string first = folder_.file("check-1"), second = folder_.file("check-2"),
                      fixed = folder_.file("fixed.onnx");
    tell("Check it, with the tests as they are.",
         Shell::of("netmend check {} --data {} --train glyphs:train --budget quick", faulty_, spec(false)));
    if (run_check(spec(false), first) == 130) return 130;
    tell("Preprocess the tests as the check says, and check again.",
         Shell::of("netmend check {} --data {} --train glyphs:train --budget quick", faulty_, spec(true)));
    if (run_check(spec(true), second) == 130) return 130;
    tell("Repair: search for a small change, confirm it on a hold-out set.",
         Shell::of("netmend repair {} --data glyphs:train --limit 12000 --budget quick -o {}", faulty_, fixed));
    RepairOptions repair;
    repair.model = faulty_, repair.data = "glyphs:train", repair.limit = 12000, repair.budget = "quick";
    repair.product = fixed, repair.yes = true;
    Common own = common_;
    own.json = false, own.out = folder_.file("repair");
    own.arguments = {"netmend", "repair",   faulty_, "--data", "glyphs:train", "--limit",
                     "12000",   "--budget", "quick", "-o",     fixed};
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
    const double sound = studies::demo_accuracy(sound_, common_.jobs),
                 faulty = studies::demo_accuracy(faulty_, common_.jobs),
                 after = fixed.empty() ? faulty : studies::demo_accuracy(fixed, common_.jobs);
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
    write_file(folder_.file("demo.json"), evidence::dump(all, 2));
    if (common_.json) return print_json(all);
    print("\n{}. What was planted, and what was found: {} of {}.\n\n", ++step_, found, planted_.size());
    for (const Planted& one : planted_)
      print("   {}\n       {}\n", one.what, one.found.empty() ? "not found" : "found: " + one.found);
    print("\n   accuracy on sound tests: {:.1f} % before the damage, {:.1f} % with it, {}\n", 100 * sound, 100 * faulty,
          fixed.empty() ? "and no repair was confirmed" : fmt::format("{:.1f} % after the repair", 100 * after));
    print("\nThat took {:.0f} s. Look at the report, then try your own model:\n", seconds());
    print("   {}\n   netmend init your.onnx --data images:your-photos && netmend check\n",
          Shell::of("netmend open {}", run).text());
  }

  const Common& common_;
  int64_t epochs_;
  RunFolder folder_;
  const std::string fresh_ = folder_.file("fresh.onnx"), sound_ = folder_.file("sound.onnx"),
                    faulty_ = folder_.file("faulty.onnx"), tests_ = folder_.file("tests.npz"),
                    sheet_ = folder_.file("digits.png");
  std::vector<Planted> planted_;
  std::string unit_;
  int step_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

int demo(const Common& common, const DemoOptions& options) { return Demo(common, options).run(); }

}  // namespace netmend::app
