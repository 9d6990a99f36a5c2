#include "sandbox/sandbox.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "sandbox/processes.h"

namespace netmend::sandbox {
namespace {

namespace fs = std::filesystem;

/// A folder with a shell script or Python program in it, run in a sandbox of its own.
class SlowSandbox : public testing::Test {
 protected:
  void SetUp() override {
    if (const Support support = probe(); !support.works) GTEST_SKIP() << support.reason;
    std::string name = (fs::temp_directory_path() / "netmend-test-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    outside_ = folder_ + ".outside";
    fs::create_directory(outside_);
    std::ofstream(outside_ + "/kept") << "kept";
    chmod(outside_.c_str(), 0777);
    limits_.seconds = 20, limits_.memory = int64_t(512) << 20, limits_.files = int64_t(64) << 20;
    limits_.processes = 32, limits_.output = 4 << 20;
  }
  void TearDown() override {
    if (folder_.empty()) return;
    fs::remove_all(folder_), fs::remove_all(outside_);
  }
  Outcome python(const std::string& code) {
    std::ofstream(folder_ + "/program.py") << code;
    Sandbox sandbox;
    Command command;
    command.words = {"/usr/bin/python3", folder_ + "/program.py"}, command.folder = folder_;
    command.environment["OUTSIDE"] = outside_;
    return sandbox.run(command, limits_);
  }
  std::string folder_, outside_;
  Limits limits_;
};

/// No process of ours is left that has this word in its command line.
bool anything_runs(const std::string& word) {
  for (const auto& entry : fs::directory_iterator("/proc")) {
    std::ifstream in(entry.path() / "cmdline");
    std::stringstream all;
    all << in.rdbuf();
    if (all.str().find(word) != std::string::npos && entry.path().filename() != std::to_string(getpid())) return true;
  }
  return false;
}

TEST_F(SlowSandbox, AProgramRunsAndItsOutputComesBack) {
  const Outcome done = python("import sys; print('hello'); print('oops', file=sys.stderr); sys.exit(3)");
  EXPECT_EQ(done.ending, Ending::kExited) << done.errors;
  EXPECT_EQ(done.status, 3);
  EXPECT_EQ(done.output, "hello\n");
  EXPECT_EQ(done.errors, "oops\n");
}

TEST_F(SlowSandbox, ItReachesNoNetwork) {
  const Outcome done = python(
      "import socket\n"
      "for where in (('1.1.1.1', 53), ('127.0.0.1', 22)):\n"
      "    try: socket.create_connection(where, 3); print('connected')\n"
      "    except OSError as e: print('refused')\n"
      "print([n for _, n in socket.if_nameindex()])");
  EXPECT_EQ(done.output, "refused\nrefused\n['lo']\n") << done.errors;
}

TEST_F(SlowSandbox, ItWritesNowhereButIntoItsOwn) {
  const Outcome done = python(
      "import os\n"
      "for path in (os.environ['OUTSIDE'] + '/new', os.environ['OUTSIDE'] + '/kept', '/etc/new', '/usr/new', "
      "'/var/new'):\n"
      "    try: open(path, 'w').write('x'); print('wrote', path)\n"
      "    except OSError: pass\n"
      "open('mine', 'w').write('x'); open('/tmp/mine', 'w').write('x'); print(os.listdir('.'))");
  EXPECT_EQ(done.output.find("wrote"), std::string::npos) << done.output;
  EXPECT_NE(done.output.find("mine"), std::string::npos) << done.errors;
  EXPECT_FALSE(fs::exists(folder_ + "/mine"));
  EXPECT_EQ(fs::file_size(outside_ + "/kept"), 4u);
}

TEST_F(SlowSandbox, AForkBombIsHeld) {
  limits_.seconds = 6;
  const Outcome done = python(
      "import os, time\n"
      "n = 0\n"
      "while True:\n"
      "    try:\n"
      "        if os.fork() == 0: time.sleep(60)\n"
      "        n += 1\n"
      "    except OSError: break\n"
      "print(n, n < 200)");
  EXPECT_NE(done.output.find("True"), std::string::npos) << done.output << done.errors;
  EXPECT_FALSE(anything_runs(folder_ + "/program.py"));
}

TEST_F(SlowSandbox, ItFillsNeitherDiskNorMemory) {
  const Outcome disk = python(
      "for path in ('big', '/tmp/big', '/dev/shm/big'):\n"
      "    try:\n"
      "        with open(path, 'wb') as f:\n"
      "            for _ in range(200): f.write(bytes(1 << 20))\n"
      "        print('filled')\n"
      "    except OSError as e: print('full')\n");
  EXPECT_EQ(disk.output.find("filled"), std::string::npos) << disk.output << disk.errors;
  const Outcome memory = python("x = []\nwhile True: x.append(bytearray(8 << 20))");
  EXPECT_TRUE(memory.ending == Ending::kMemory || memory.errors.find("MemoryError") != std::string::npos)
      << int(memory.ending) << memory.errors;
  const Outcome many = python(
      "import os, time\n"
      "for _ in range(8):\n"
      "    if os.fork() == 0:\n"
      "        x = bytearray(200 << 20)\n"
      "        for i in range(0, len(x), 4096): x[i] = 1\n"
      "        time.sleep(15); os._exit(0)\n"
      "time.sleep(15)");
  EXPECT_EQ(many.ending, Ending::kMemory) << many.errors;
}

TEST_F(SlowSandbox, SignalsThatAreIgnoredDoNotKeepIt) {
  limits_.seconds = 2;
  const Outcome done = python(
      "import signal, time\n"
      "for s in range(1, 65):\n"
      "    try: signal.signal(s, signal.SIG_IGN)\n"
      "    except (OSError, ValueError): pass\n"
      "while True: time.sleep(1)");
  EXPECT_EQ(done.ending, Ending::kTimeout);
  EXPECT_LT(done.seconds, 6);
}

TEST_F(SlowSandbox, EndlessOutputEnds) {
  const Outcome done = python("while True: print('x' * 1000)");
  EXPECT_EQ(done.ending, Ending::kOutput);
  EXPECT_LT(done.output.size(), size_t(3) << 20);
}

TEST_F(SlowSandbox, WhatItLeavesRunningEndsWithIt) {
  for (const char* code : {"import os, time\n"
                           "if os.fork() == 0:\n"
                           "    os.setsid()\n"
                           "    if os.fork() == 0:\n"
                           "        time.sleep(60)\n"
                           "    os._exit(0)\n"
                           "print('done')",
                           "import subprocess\nsubprocess.Popen(['/bin/sh', '-c', 'sleep 60 &'])\nprint('done')"}) {
    const Outcome done = python(code);
    EXPECT_EQ(done.output, "done\n") << done.errors;
    EXPECT_LT(done.seconds, 15);
    EXPECT_FALSE(anything_runs(folder_ + "/program.py"));
  }
}

TEST_F(SlowSandbox, ItsOwnFolderIsDeletedForNobodyElse) {
  const Outcome done = python("import shutil, os\nshutil.rmtree(os.getcwd(), ignore_errors=True)\nprint('gone')");
  EXPECT_EQ(done.output, "gone\n") << done.errors;
  EXPECT_TRUE(fs::exists(folder_ + "/program.py"));
}

TEST_F(SlowSandbox, OtherProcessesAreNotThere) {
  const Outcome done =
      python(fmt::format("import ctypes, os\n"
                         "print(os.path.exists('/proc/{}/root'), ctypes.CDLL(None).ptrace(16, {}, 0, 0), len([p for p "
                         "in os.listdir('/proc') if "
                         "p.isdigit()]) < 5)",
                         getpid(), getpid()));
  EXPECT_EQ(done.output.substr(done.output.find(' ')), " -1 True\n") << done.output << done.errors;
}

TEST_F(SlowSandbox, LinksLeadOutToReadOnlyPlaces) {
  fs::create_symlink(outside_, folder_ + "/out");
  const Outcome done = python(
      "import os\n"
      "os.symlink(os.environ['OUTSIDE'], 'link')\n"
      "for path in ('out/new', 'link/new'):\n"
      "    try: open(path, 'w').write('x'); print('wrote')\n"
      "    except OSError: print('refused')");
  EXPECT_EQ(done.output, "refused\nrefused\n") << done.errors;
  EXPECT_FALSE(fs::exists(outside_ + "/new"));
}

TEST_F(SlowSandbox, HugeFilesAreCutOff) {
  const Outcome done = python(
      "try:\n"
      "    with open('huge', 'wb') as f:\n"
      "        f.seek(1 << 40); f.write(b'x')\n"
      "    print('wrote')\n"
      "except OSError: print('refused')");
  EXPECT_NE(done.output, "wrote\n") << done.errors;
}

TEST_F(SlowSandbox, AFileCanStandInForAnother) {
  std::ofstream(folder_ + "/other.py") << "print('other')";
  std::ofstream(folder_ + "/program.py") << "print('first')";
  Sandbox sandbox;
  std::ofstream(sandbox.folder() + "/instead.py") << "print('instead')";
  Command command;
  command.words = {"/usr/bin/python3", folder_ + "/program.py"}, command.folder = folder_;
  command.replaced = {{folder_ + "/program.py", sandbox.folder() + "/instead.py"}};
  EXPECT_EQ(sandbox.run(command, limits_).output, "instead\n");
  command.replaced.clear();
  EXPECT_EQ(sandbox.run(command, limits_).output, "first\n");
}

TEST(Groups, ThatOfTheProcessItselfIsTheParent) {
  EXPECT_EQ(own_group("0::/user.slice/user-1000.slice/app.slice/term.scope\n"),
            "/sys/fs/cgroup/user.slice/user-1000.slice/app.slice/term.scope");
  EXPECT_EQ(own_group("4:memory:/x\n0::/\n"), "/sys/fs/cgroup");
  EXPECT_EQ(own_group("0::/../outside\n"), "");
  EXPECT_EQ(own_group("4:memory:/x\n"), "");
}

/// The driver is killed while a program runs: the program, the folder and the groups are gone soon after.
TEST_F(SlowSandbox, NothingIsLeftWhenTheDriverIsKilled) {
  std::ofstream(folder_ + "/program.py") << "import time\ntime.sleep(60)";
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t driver = fork();
  if (driver == 0) {
    Sandbox sandbox;
    const std::string place = sandbox.folder() + "\n";
    [[maybe_unused]] ssize_t wrote = write(ends[1], place.data(), place.size());
    Command command;
    command.words = {"/usr/bin/python3", folder_ + "/program.py"}, command.folder = folder_;
    sandbox.run(command, limits_);
    _exit(0);
  }
  close(ends[1]);
  std::string place;
  for (char c = 0; read(ends[0], &c, 1) == 1 && c != '\n';) place += c;
  close(ends[0]);
  for (int i = 0; i < 100 && !anything_runs(folder_ + "/program.py"); ++i) usleep(50000);
  EXPECT_TRUE(anything_runs(folder_ + "/program.py"));
  kill(driver, SIGKILL);
  waitpid(driver, nullptr, 0);
  for (int i = 0; i < 100 && (anything_runs(folder_ + "/program.py") || fs::exists(place)); ++i) usleep(50000);
  EXPECT_FALSE(anything_runs(folder_ + "/program.py"));
  EXPECT_FALSE(fs::exists(place));
  std::stringstream told;
  told << std::ifstream("/proc/self/cgroup").rdbuf();
  for (const std::string& kind :
       {std::string("/sys/fs/cgroup/memory"), std::string("/sys/fs/cgroup/pids"), own_group(told.str())})
    EXPECT_FALSE(fs::exists(fmt::format("{}/netmend-{}-1", kind, driver))) << kind;
}

}  // namespace
}  // namespace netmend::sandbox
