#include "programs/inject.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "sandbox/sandbox.h"

namespace netmend::programs {
namespace {

namespace fs = std::filesystem;

/// A folder for a program and for the run.
class Place {
 public:
  Place() {
    std::string name = (fs::temp_directory_path() / "netmend-inject-XXXXXX").string();
    path_ = mkdtemp(name.data());
    chmod(path_.c_str(), 0755);
    fs::create_directory(path_ + "/own");
  }
  ~Place() { fs::remove_all(path_); }
  Place(const Place&) = delete;
  const std::string& path() const { return path_; }

  InjectRequest request(const std::string& code) const {
    write_file(path_ + "/own/train.py", code);
    InjectRequest request;
    request.program = path_ + "/own/train.py", request.python = "/usr/bin/python3";
    request.metric = "accuracy ([0-9.]+)", request.operators = {"NVR"};
    request.per_file = 0, request.sample = 0, request.clean_runs = 2, request.doctor = 0, request.jobs = 2;
    request.quiet = true, request.folder = path_;
    return request;
  }

 private:
  std::string path_;
};

/// Sets a variable of the environment for a while.
class Setting {
 public:
  Setting(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  ~Setting() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }
  Setting(const Setting&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

/// Processes that have both words in their command lines.
std::vector<fs::path> processes_with(const std::string& word, const std::string& other = "") {
  std::vector<fs::path> list;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    if (entry.path().filename() == std::to_string(getpid()) || !fs::exists(entry.path() / "cmdline", error)) continue;
    try {
      const std::string words = read_file((entry.path() / "cmdline").string());
      if (words.find(word) != std::string::npos && words.find(other) != std::string::npos) list.push_back(entry.path());
    } catch (const InputError&) {  // it has just ended
    }
  }
  return list;
}

// ---- bubblewrap that does not work

struct Refusal {
  const char *script, *reason;
};
class Bubblewrap : public testing::TestWithParam<Refusal> {};

TEST_P(Bubblewrap, WhatIsMissingIsNamedAndUnsafeOffered) {
  const Place place;
  const std::string folder = place.path() + "/bin";
  fs::create_directory(folder);
  if (*GetParam().script) {
    write_file(folder + "/bwrap", std::string("#!/bin/sh\n") + GetParam().script + "\n");
    chmod((folder + "/bwrap").c_str(), 0755);
  }
  const Setting path("PATH", folder);
  try {
    inject(place.request("print('accuracy', 1 / 2)\n"));
    FAIL() << "it ran without a sandbox";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find(GetParam().reason), std::string::npos) << error.what();
    EXPECT_NE(error.hint().find("--unsafe runs programs without a sandbox"), std::string::npos) << error.hint();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ways, Bubblewrap,
    testing::Values(
        Refusal{"", "bubblewrap is not installed"},
        Refusal{"echo 'bwrap: No permissions to create new namespace, likely because the kernel does not allow "
                "non-privileged user namespaces.' >&2; exit 1",
                "user namespaces are forbidden"},
        Refusal{"echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1", "user namespaces are forbidden"},
        Refusal{"echo \"bwrap: Can't mount proc on /newroot/proc: Operation not permitted\" >&2; exit 1",
                "the kernel refuses its mounts"}));

// ---- hostile programs

/// A change of one number to 1 lets each of these loose. OUTSIDE is a folder that is not the program's, DRIVER netmend.
const std::map<std::string, std::string> kHostile = {
    {"network", "socket.create_connection(('1.1.1.1', 53), 3)"},
    {"outside", "open('OUTSIDE/new', 'w').write('x')"},
    {"bomb", "while True:\n        if os.fork() == 0: time.sleep(60)"},
    {"disk", "with open('big', 'wb') as file:\n        while True: file.write(bytes(1 << 24))"},
    {"memory", "x = []\n    while True: x.append(bytearray(8 << 20))"},
    {"signals",
     "for s in set(range(1, 65)) - {9, 19, 32, 33}: signal.signal(s, signal.SIG_IGN)\n    while True: time.sleep(1)"},
    {"output", "while True: print('x' * 100000)"},
    {"daemon",
     "if os.fork() == 0:\n        os.setsid()\n        if os.fork() == 0: time.sleep(60)\n        os._exit(0)"},
    {"deleting", "shutil.rmtree(os.getcwd(), ignore_errors=True)"},
    {"tracing",
     "if ctypes.CDLL(None).ptrace(16, DRIVER, 0, 0) != -1 or os.path.exists('/proc/DRIVER/root/etc'): os._exit(9)"},
    {"links", "os.symlink('OUTSIDE', 'link')\n    open('link/new', 'w').write('x')"},
    {"huge", "with open('huge', 'wb') as file:\n        file.seek(1 << 40)\n        file.write(b'x')"},
    {"grandchild", "subprocess.Popen(['/bin/sh', '-c', 'sleep 60.125 &'])"},
};

/// All of them as mutants of one program.
class SlowHostile : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!sandbox::probe().works) return;
    place_ = new Place;
    outside_ = place_->path() + "/outside";
    fs::create_directory(outside_);
    chmod(outside_.c_str(), 0777);
    std::string settings, code = "import ctypes, os, shutil, signal, socket, subprocess, time\n";
    for (const auto& [name, attack] : kHostile) {
      settings += name + " = 0\n";
      code += "if " + name + ":\n    " + attack + "\n";
    }
    for (const auto& [word, by] :
         std::map<std::string, std::string>{{"OUTSIDE", outside_}, {"DRIVER", std::to_string(getpid())}})
      for (size_t at = 0; (at = code.find(word, at)) != std::string::npos; at += by.size())
        code.replace(at, word.size(), by);
    InjectRequest request = place_->request(settings + code + "print('accuracy', len('a') / len('ab'))\n");
    request.memory = int64_t(512) << 20, request.most_seconds = 3;
    result_ = new InjectResult(inject(request));
  }
  static void TearDownTestSuite() {
    delete result_;
    delete place_;
    result_ = nullptr, place_ = nullptr;
  }
  void SetUp() override {
    if (!place_) GTEST_SKIP() << sandbox::probe().reason;
  }
  static RunOutcome run(const std::string& name) {
    for (const InjectedBug& bug : result_->bugs)
      if (bug.diff.find("-" + name + " = 0\n+" + name + " = 1\n") != std::string::npos) return bug.run;
    ADD_FAILURE() << "no mutant lets " << name << " loose";
    return {};
  }
  static void expect_crash(const std::string& name, const std::string& message) {
    const RunOutcome one = run(name);
    EXPECT_EQ(one.outcome, "crash") << one.message;
    EXPECT_NE((one.exception + ": " + one.message).find(message), std::string::npos) << one.exception << one.message;
  }
  static void expect_normal(const std::string& name) {
    const RunOutcome one = run(name);
    EXPECT_EQ(one.outcome, "normal") << one.exception << ": " << one.message;
    EXPECT_EQ(one.metric, 0.5);
    EXPECT_TRUE(processes_with(place_->path()).empty());
  }
  static Place* place_;
  static InjectResult* result_;
  static std::string outside_;
};
Place* SlowHostile::place_ = nullptr;
InjectResult* SlowHostile::result_ = nullptr;
std::string SlowHostile::outside_;

TEST_F(SlowHostile, EachIsOneMutant) { EXPECT_EQ(result_->bugs.size(), kHostile.size()); }
TEST_F(SlowHostile, TheNetworkIsNotReached) { expect_crash("network", "OSError: [Errno 101]"); }
TEST_F(SlowHostile, NothingIsWrittenOutside) {
  expect_crash("outside", "Error: [Errno ");
  EXPECT_TRUE(fs::is_empty(outside_));
}
TEST_F(SlowHostile, AForkBombIsHeld) {
  const std::string outcome = run("bomb").outcome;  // processes, or the memory that they take, run out first
  EXPECT_TRUE(outcome == "crash" || outcome == "out-of-memory") << outcome;
  EXPECT_TRUE(processes_with(place_->path()).empty());
}
TEST_F(SlowHostile, AFullDiskIsACrash) {
  const std::string outcome = run("disk").outcome;  // what stands in memory counts as memory where groups count it
  EXPECT_TRUE(outcome == "crash" || outcome == "out-of-memory") << outcome;
}
TEST_F(SlowHostile, MemoryRunsOut) { EXPECT_EQ(run("memory").outcome, "out-of-memory"); }
TEST_F(SlowHostile, IgnoredSignalsAreAHang) {
  EXPECT_EQ(run("signals").outcome, "hang");
  EXPECT_LT(run("signals").seconds, 20);
}
TEST_F(SlowHostile, EndlessOutputIsKilled) {
  EXPECT_EQ(run("output").outcome, "killed");
  EXPECT_EQ(run("output").message, "it printed more than is allowed");
}
TEST_F(SlowHostile, ADaemonEndsWithItsProgram) { expect_normal("daemon"); }
TEST_F(SlowHostile, ItsFolderStays) {
  expect_normal("deleting");
  EXPECT_TRUE(fs::exists(place_->path() + "/own/train.py"));
}
TEST_F(SlowHostile, NobodyElseIsTraced) { expect_normal("tracing"); }
TEST_F(SlowHostile, LinksLeadNowhere) {
  expect_crash("links", "Error: [Errno ");
  EXPECT_TRUE(fs::is_empty(outside_));
}
TEST_F(SlowHostile, HugeFilesAreACrash) { expect_crash("huge", "OSError: [Errno 27]"); }
TEST_F(SlowHostile, AGrandchildEndsWithItsProgram) {
  expect_normal("grandchild");
  EXPECT_LT(run("grandchild").seconds, 20);
  EXPECT_TRUE(processes_with("60.125").empty());
}

class SlowInjecting : public testing::Test {
 protected:
  void SetUp() override {
    if (const sandbox::Support support = sandbox::probe(); !support.works) GTEST_SKIP() << support.reason;
  }
  Place place_;
};

TEST_F(SlowInjecting, AProgramThatDoesNotEndIsSaid) {
  InjectRequest request = place_.request("while True: x = 1\n");
  request.most_seconds = 1;
  try {
    inject(request);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("train.py was stopped after 1 s"), std::string::npos) << error.what();
    EXPECT_NE(error.hint().find("--time"), std::string::npos);
  }
}

/// Content and times of all files.
std::map<std::string, uint64_t> checksums(const std::string& folder) {
  std::map<std::string, uint64_t> sums;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      sums[entry.path().string()] =
          hash64(read_file(entry.path().string()) + std::to_string(entry.last_write_time().time_since_epoch().count()));
  return sums;
}

TEST_F(SlowInjecting, AnInstalledLibraryStaysAsItIs) {
  const std::string library = "/usr/lib/python3/../" + fs::read_symlink("/usr/bin/python3").string() + "/json";
  if (!fs::is_directory(library)) GTEST_SKIP() << "Python's library is somewhere else";
  InjectRequest request =
      place_.request("import json\nprint('accuracy', len(json.dumps({'a': [1, 2]}, indent=2)) / 100)\n");
  request.also = {"json"}, request.sample = 12, request.operators.clear();
  const auto before = checksums(library);
  const InjectResult result = inject(request);
  EXPECT_EQ(checksums(library), before);
  int64_t inside = 0, changed = 0;
  for (const InjectedBug& bug : result.bugs) {
    inside += bug.name.find("json/") != std::string::npos;
    changed += bug.run.metric != result.clean[0].metric;
  }
  EXPECT_GT(inside, 6);
  EXPECT_GT(changed, 0);  // the library that the program saw was another
}

/// What is left of processes comes to us, whoever started them.
bool all_children_end(int seconds) {
  for (int i = 0; i < 100 * seconds; ++i) {
    if (waitpid(-1, nullptr, WNOHANG) < 0) return true;
    usleep(10000);
  }
  return false;
}

std::vector<std::string> groups_of(pid_t driver) {
  std::vector<std::string> list;
  std::error_code error;
  const std::string start = fmt::format("netmend-{}-", driver);
  for (const char* kind : {"/sys/fs/cgroup/memory", "/sys/fs/cgroup/pids", "/sys/fs/cgroup"})
    for (fs::directory_iterator at(kind, error), end; !error && at != end; at.increment(error))
      if (at->path().filename().string().starts_with(start)) list.push_back(at->path().string());
  return list;
}

TEST_F(SlowInjecting, NothingIsLeftAfterARunAndAfterTheDriverIsKilled) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const std::string temporary = place_.path() + "/tmp";
  fs::create_directory(temporary);
  chmod(temporary.c_str(), 0755);
  const Setting setting("TMPDIR", temporary);
  const InjectRequest request = place_.request("import time\ntime.sleep(0.5)\nprint('accuracy', 3 / 4)\n");
  const std::string mounts = read_file("/proc/self/mounts");
  for (bool killed : {false, true}) {
    fs::remove(place_.path() + "/trials.db");
    const pid_t driver = fork();
    if (driver == 0) {
      try {  // what is thrown may not pass: the child would go on with the tests
        inject(request);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        _exit(1);
      }
      _exit(0);
    }
    if (killed) {
      auto runs = [&] { return !processes_with(request.program, "--die-with-parent").empty(); };
      for (int i = 0; i < 200 && !runs(); ++i) usleep(20000);
      EXPECT_TRUE(runs());
      EXPECT_FALSE(fs::is_empty(temporary));
      kill(driver, SIGKILL);
    }
    EXPECT_TRUE(all_children_end(killed ? 15 : 60)) << killed;
    EXPECT_TRUE(processes_with(request.program).empty());
    EXPECT_TRUE(fs::is_empty(temporary));
    EXPECT_EQ(read_file("/proc/self/mounts"), mounts);
    EXPECT_TRUE(groups_of(driver).empty());
  }
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}

}  // namespace
}  // namespace netmend::programs
