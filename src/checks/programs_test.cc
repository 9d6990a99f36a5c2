// Checks of the user's own: what a program may print, how it may fail, and that an error always names it.
#include "checks/programs.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/pool.h"

namespace netmend::checks {
namespace {

namespace fs = std::filesystem;

/// A folder with programs in it; the user's own configuration lies there too.
struct ProgramFolder {
  std::string path;
  ProgramFolder() {
    std::string name = (fs::temp_directory_path() / "programs-XXXXXX").string();
    path = mkdtemp(name.data());
    setenv("XDG_CONFIG_HOME", path.c_str(), 1);
  }
  ~ProgramFolder() {
    unsetenv("XDG_CONFIG_HOME");
    fs::remove_all(path);
  }
  std::string program(const std::string& name, const std::string& body) const {
    const std::string file = path + "/" + name;
    write_file(file, "#!/bin/sh\n" + body + "\n");
    fs::permissions(file, fs::perms::owner_all);
    return file;
  }
  void config(const std::string& text) const {
    fs::create_directories(path + "/netmend");
    write_file(path + "/netmend/config.toml", text);
  }
};

/// The message, with its hint, that running one program ends with; "" when all is well.
std::string failure_of(const std::string& program, Checkup* into = nullptr) {
  Checkup own;
  try {
    run_programs({program}, "/run/folder", into ? *into : own);
  } catch (const InputError& error) {
    return std::string(error.what()) + " | " + error.hint();
  }
  return "";
}
bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

const char* const kOneFinding = R"(echo '{"findings": [{"kind": "k", "level": "minor", "title": "T."}]}')";

TEST(ProgramRuns, GetTheRunFolderAsTheirOnlyArgumentAndNothingToRead) {
  ProgramFolder folder;
  const std::string program = folder.program("mine.py", R"(read line && exit 4
test $# -eq 1 || exit 5
echo "{\"findings\": [{\"kind\": \"k\", \"level\": \"note\", \"title\": \"$1\"}]}")");
  Checkup checkup;
  EXPECT_EQ(failure_of(program, &checkup), "");
  ASSERT_EQ(checkup.results.findings.size(), 1u);
  EXPECT_EQ(checkup.results.findings[0].title, "/run/folder");
  EXPECT_EQ(checkup.results.findings[0].id(), "user:mine/k") << "named by the file without its ending";
}

TEST(ProgramRuns, ThatFailAreNamedWithWhatHappened) {
  ProgramFolder folder;
  struct Case {
    const char *name, *body, *said;
  };
  for (const Case& one :
       {Case{"exits", "exit 3", "exit status 3"}, Case{"crashes", "kill -SEGV $$", "crashed"},
        Case{"silent", "true", "did not print findings"}, Case{"words", "echo hello", "did not print findings"},
        Case{"cut", "printf '{\"findings\": [{\"kind\"'", "did not print findings"},
        Case{"twice", "echo '{\"findings\": []}'; echo '{\"findings\": []}'", "did not print findings"},
        Case{"latin1", "printf '{\"findings\": [], \"x\": \"\\351\"}'", "did not print findings"}}) {
    const std::string said = failure_of(folder.program(one.name, one.body));
    EXPECT_TRUE(holds(said, one.said)) << one.name << ": " << said;
    EXPECT_TRUE(holds(said, one.name)) << said;
  }
}

/// Its findings do not count when it then fails: they may be half of what it had to say.
TEST(ProgramRuns, ThatPrintFindingsAndThenFailAddNothing) {
  ProgramFolder folder;
  Checkup checkup;
  EXPECT_TRUE(holds(failure_of(folder.program("late", std::string(kOneFinding) + "\nexit 1"), &checkup), "late"));
  EXPECT_TRUE(checkup.results.findings.empty());
}

TEST(ProgramRuns, ThatCannotBeStartedSayWhatAProgramMustBe) {
  ProgramFolder folder;
  write_file(folder.path + "/plain", "#!/bin/sh\n");
  for (const std::string& program : {folder.path + "/plain", folder.path + "/none", folder.path}) {
    const std::string said = failure_of(program);
    EXPECT_TRUE(holds(said, program) && holds(said, "executable")) << said;
  }
  EXPECT_EQ(failure_of(folder.path + "/no\x1b[2Jne").find('\x1b'), std::string::npos);
}

TEST(ProgramRuns, ThatPrintWithoutEndAreStopped) {
  ProgramFolder folder;
  const auto begin = std::chrono::steady_clock::now();
  const std::string said = failure_of(folder.program("endless", "exec yes findings"));
  EXPECT_TRUE(holds(said, "endless") && holds(said, "16 MB")) << said;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
}

/// Ctrl-C ends the wait, whether the program keeps its output open or has closed it and goes on.
TEST(ProgramRuns, ThatHangAreEndedByCtrlC) {
  ProgramFolder folder;
  stop_on_interrupt();
  for (const char* body : {"exec sleep 5", "exec sleep 5 >&-"}) {
    const auto begin = std::chrono::steady_clock::now();
    std::thread hand([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      raise(SIGINT);
    });
    Checkup checkup;
    EXPECT_THROW(run_programs({folder.program("hangs", body)}, "/run/folder", checkup), Interrupted) << body;
    hand.join();
    forget_interrupt();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2)) << body;
  }
  stop_on_interrupt();  // nothing of it is left for the tests behind this one
  signal(SIGINT, SIG_DFL), signal(SIGTERM, SIG_DFL);
}

TEST(ProgramRuns, KeepTheOrderOfTheCommandLineAndJoinWhatIsThere) {
  ProgramFolder folder;
  Checkup checkup;
  findings::Finding own;
  own.kind = "weak-class", own.where = "cat", own.title = "Cat.", own.level = findings::Level::kSerious;
  checkup.results.findings = {own};
  run_programs({folder.program("one", kOneFinding), folder.program("two", kOneFinding)}, folder.path, checkup);
  ASSERT_EQ(checkup.results.findings.size(), 3u);
  EXPECT_EQ(checkup.results.findings[0].id(), "weak-class:cat") << "the most serious first";
  EXPECT_EQ(checkup.results.findings[1].id(), "user:one/k");
  EXPECT_EQ(checkup.results.findings[2].id(), "user:two/k");
  EXPECT_EQ(checkup.verdict, "One thing matters: cat.");
}

std::string document(const std::string& finding) { return "{\"findings\": [" + finding + "]}"; }

TEST(ProgramFindings, ErrorsNameTheProgramWhateverIsWrong) {
  for (const char* wrong : {R"({"kind": "x"})", R"({"kind": "x", "level": "awful", "title": "t"})",
                            R"({"kind": "x", "level": "blocker", "title": "t"})",
                            R"({"kind": "x", "level": "note", "title": "t", "certainty": "sure"})",
                            R"({"kind": 7, "level": "note", "title": "t"})", R"({"level": "note", "title": "t"})",
                            R"({"kind": "x", "level": "note", "title": "t", "where": []})", "null", "3"}) {
    try {
      parse_program_findings(document(wrong), "my-check");
      ADD_FAILURE() << wrong << " was taken";
    } catch (const InputError& error) {
      EXPECT_TRUE(holds(error.what(), "my-check")) << wrong << ": " << error.what();
    }
  }
}

TEST(ProgramFindings, CannotBeTakenForOursNorForAnotherPrograms) {
  const auto found = parse_program_findings(
      document(R"({"kind": "weak-class", "where": "cat", "level": "serious", "title": "Low."})"), "age");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].id(), "user:age/weak-class:cat");
  EXPECT_EQ(found[0].brief, "Low.") << "the title stands in for the evidence";
}

TEST(ProgramFindings, TakeEveryKeyOfTheDocumentation) {
  const auto found = parse_program_findings(
      document(R"({"kind": "k", "level": "serious", "certainty": "confirmed", "title": "T.", "brief": "b",
                   "evidence": "e", "gain": 0.25, "value": 3, "next": ["a", "b", 7, "c", "d", "e", "f"], "more": 1})"),
      "p");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].level, findings::Level::kSerious);
  EXPECT_EQ(found[0].certainty, findings::Certainty::kConfirmed);
  EXPECT_EQ(found[0].effect.gain, 0.25);
  EXPECT_EQ(found[0].value, 3);
  EXPECT_EQ(found[0].evidence, "e");
  ASSERT_EQ(found[0].next.size(), 5u) << "texts alone, at most five";
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(found[0].next[i], std::string(1, char('a' + i)));
}

TEST(ProgramFindings, KeepMarkupAndControlCharactersAsTextAndCutLongOnesAtAWholeCharacter) {
  const auto found = parse_program_findings(
      document(R"({"kind": "k", "level": "note", "title": "<script>alert(1)</script>\u001b[2J\u0000end"})"), "p");
  EXPECT_EQ(found[0].title, std::string("<script>alert(1)</script>\x1b[2J\0end", 33));
  std::string accents;
  for (int i = 0; i < 3000; ++i) accents += "é";
  for (const std::string& text : {accents, "x" + accents}) {
    const std::string title =
        parse_program_findings(document(R"({"kind": "k", "level": "note", "title": ")" + text + "\"}"), "p")[0].title;
    EXPECT_GE(title.size(), 3990u);
    EXPECT_LE(title.size(), 4000u);
    EXPECT_NO_THROW(findings::Json(title).dump()) << "half of a character is left";
  }
}

TEST(ProgramFindings, ThousandAreTakenAndOneMoreIsRefused) {
  std::string list;
  for (int i = 0; i < 1000; ++i)
    list += std::string(i ? "," : "") + R"({"kind": "k)" + std::to_string(i) + R"(", "level": "note", "title": "t"})";
  EXPECT_EQ(parse_program_findings(document(list), "p").size(), 1000u);
  EXPECT_THROW(parse_program_findings(document(list + R"(,{"kind": "k", "level": "note", "title": "t"})"), "p"),
               InputError);
}

TEST(ProgramsToRun, AreThoseTypedAndThenThoseOfTheUsersOwnConfiguration) {
  ProgramFolder folder;
  EXPECT_EQ(programs_to_run({"a"}), std::vector<std::string>{"a"});
  folder.config("[checks]\nprograms = [\"/b\", \"c\"]\n");
  EXPECT_EQ(programs_to_run({"a"}), (std::vector<std::string>{"a", "/b", "c"}));
  folder.config("other = 1\n");
  EXPECT_EQ(programs_to_run({}), std::vector<std::string>{});
}

TEST(ProgramsToRun, ABrokenConfigurationIsNamed) {
  ProgramFolder folder;
  for (const char* text :
       {"[checks]\nprograms = [\"a\"", "[checks]\nprograms = [3]\n", "[checks]\nprograms = \"a\"\n"}) {
    folder.config(text);
    try {
      programs_to_run({});
      ADD_FAILURE() << text;
    } catch (const InputError& error) {
      EXPECT_TRUE(holds(error.what(), "config.toml")) << error.what();
    }
  }
}

}  // namespace
}  // namespace netmend::checks
