// The first page, and the way to everything else.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/version.h"
#include "netmend/installed_torch.h"

namespace {

constexpr const char* kFirstPage =
    R"(netmend: is this network tested well enough, what is wrong with it, where, why, and what repairs it?

usage: netmend COMMAND [options]        netmend COMMAND --help shows examples

  Everyday    init         write netmend.toml from the model and the data
              check        every check that fits model and data: what is wrong, where, how certain, what next
              compare      two models on the same data: regressions and fixes
              gate         pass or fail against the limits in netmend.toml; for pipelines
              why          a finding explained: meaning, cause, how to confirm, how to repair
              accept       mark a finding or inputs as known, with a reason and an end date
              open         show the report of the latest or a given run
  Look        info         layers, shapes, units, operators, and what netmend supports of this model
              data         counts, ranges, classes, contact sheet
              eval         the metric, per class, most confused pairs, one row per input
              failures     the table of wrong predictions: filter, sort, group, export; labels that look wrong
              slices       weak slices and subgroups: groups, rules over columns and properties of inputs
              match        do the outputs match those of the framework that trained the model, and if not, why?
              next         which unlabelled inputs to label first
              stress       noise, shifts, corruptions, attacks: how often does the prediction change?
              coverage     what the tests never cover
              mutate       would the tests notice a bug? mutants of the network, and which of them the tests kill
              locate       which units and layers are to blame when predictions are wrong
              explain      which units predictions come from, and which pixels, words or columns
  Mend        repair       search for a small change, confirm it on a hold-out set, write a new model
              apply        apply edits to a model's weights, or revert them
              whatif       what edits would do, without writing a model
              diff         which parameters, layers and units differ between two models, and by how much
              weights      write all parameters to an NPZ file
  Train       train        train or fine-tune a model, with checkpoints
              watch        run your training program, record it, and say what goes wrong
              diagnose     what the record of a training run shows, most likely first
              heal         try settings under which a training works, and show them
              lint         mistakes that can be seen in the source of a training program
              inject       inject bugs into a training program: what each does, and whether anybody would notice
  Lab         lab new      write a named architecture as an ONNX file
              lab plant    plant a known fault in a sound model, and record it
              lab study    questions that take many trials: planted faults and more
              lab run      run a model on tensors from files
              lab conformance   check the operators against the ONNX project's own test folders
              lab merge    merge the shards of a pass
  Start here  demo         a tour on generated data: trains a network, plants faults, finds and repairs them

  Everywhere  --json (one document on stdout)  --quiet  --wide  --seed N  --jobs N  --device cpu|cuda|auto  --memory 8G
              --out DIR (the run folder)  -o FILE (what the command makes)

new here? netmend demo
)";

/// Commands that only read and write small files: they start without LibTorch.
bool needs_no_model(const char* command) {
  for (const char* one : {"open", "why", "accept", "watch", "diagnose", "lint", "inject"})
    if (std::strcmp(command, one) == 0) return true;
  return false;
}

/// `compare RUN RUN` of two trainings: folders with a record. It becomes `diagnose RUN2 --against RUN1`.
bool compares_trainings(int argc, char** argv) {
  if (argc < 4 || std::strcmp(argv[1], "compare") != 0) return false;
  for (int i : {2, 3})
    if (access((std::string(argv[i]) + "/record.jsonl").c_str(), F_OK) != 0) return false;
  return true;
}

/// The exit status after the last output: what could not be written is an error.
int finished() {
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return 0;
  std::fprintf(stderr, "error: cannot write to standard output: %s\n", std::strerror(errno));
  return 2;
}

/// The program is in two parts, and the other one is not there, or not whole yet.
int not_installed(const std::string& engine) {
  std::fprintf(
      stderr,
      "error: cannot start %s: %s\n  It belongs beside netmend: install both, or name the one that was installed.\n",
      engine.c_str(), std::strerror(errno));
  return 2;
}

/// A standard stream that is closed would be the next file that is opened. Reading ends and writing fails, as it
/// should.
void open_standard_streams() {
  for (int file = open("/dev/null", O_RDONLY); file >= 0; file = open("/dev/null", O_RDONLY))
    if (file > 2) {
      close(file);
      return;
    }
}

}  // namespace

int main(int argc, char** argv) {
  // Held back until the engine can end in good order.
  sigset_t held;
  sigemptyset(&held);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&held, signal);
  sigprocmask(SIG_BLOCK, &held, nullptr);
  open_standard_streams();
  auto is = [&](const char* word) { return argc == 2 && std::strcmp(argv[1], word) == 0; };
  if (argc == 1 || is("--help") || is("-h") || is("help")) return std::fputs(kFirstPage, stdout), finished();
  if (is("--version")) return std::printf("netmend %s\n", netmend::kVersion), finished();
  std::vector<char*> words(argv, argv + argc + 1);
  char diagnose[] = "diagnose", against[] = "--against";
  if (compares_trainings(argc, argv)) {
    words[1] = diagnose, words[2] = argv[3], words[3] = against;
    words.insert(words.begin() + 4, argv[2]);
    argv = words.data();
  }
  char self[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length < 0) return std::perror("netmend: cannot find itself"), 3;
  std::string engine(self, size_t(length));
  const std::string folder = engine.substr(0, engine.rfind('/') + 1);
  engine = folder + (needs_no_model(argv[1]) ? "netmend-files" : "netmend-engine");
  // What netmend watch starts must find its environment as it was.
  if (needs_no_model(argv[1])) {
    execv(engine.c_str(), argv);
    return not_installed(engine);
  }
  if (!netmend::app::use_installed_torch(folder)) return 2;
  // LibTorch warns about its own beta functions, through glog or by itself; users cannot do anything about that.
  setenv("GLOG_minloglevel", "2", 0);
  setenv("TORCH_CPP_LOG_LEVEL", "ERROR", 0);
  // Workers are netmend's own: threads of OpenBLAS would only be started and left idle.
  setenv("OPENBLAS_NUM_THREADS", "1", 1);
  execv(engine.c_str(), argv);
  return not_installed(engine);
}
