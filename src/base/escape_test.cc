#include "base/escape.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "base/text.h"

namespace netmend {
namespace {

const std::vector<std::string>& hostile() {
  static const std::vector<std::string> names = {"",
                                                 "plain",
                                                 "$(touch x)",
                                                 "a b",
                                                 "a  b",
                                                 "`id`",
                                                 "x;y",
                                                 "a&b",
                                                 "*",
                                                 "~",
                                                 "a\nb",
                                                 "é",
                                                 "it's",
                                                 "\"q\"",
                                                 "=1+1",
                                                 "=ls",
                                                 "-x",
                                                 "-1.5",
                                                 "@SUM(A1)",
                                                 "\x1b[31mred",
                                                 "caf\xe9",
                                                 "a\\b",
                                                 "\\x1b",
                                                 "<b>&amp;</b>",
                                                 "]]>",
                                                 "a|b",
                                                 "\tx",
                                                 "a,b\"c",
                                                 "\xef\xbf\xbe",
                                                 "\x01\x7f",
                                                 "'",
                                                 "\\'",
                                                 "!!",
                                                 "{a,b}",
                                                 "#x",
                                                 "\xc2\x9b"
                                                 "2J",
                                                 "$HOME",
                                                 "a\rb",
                                                 "x\x1b"
                                                 "33y"};
  return names;
}

std::string output_of(const std::string& command) {
  std::string text;
  std::FILE* pipe = popen(command.c_str(), "r");
  for (int c; (c = std::fgetc(pipe)) != EOF;) text += char(c);
  pclose(pipe);
  return text;
}

TEST(ShellWord, IsPlainWhereItCanBe) {
  EXPECT_EQ(shell_word("mnist:test,scale=1/255"), "mnist:test,scale=1/255");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word("\x1b[2J"), "$'\\033[2J'");
}

TEST(ShellWord, AShellReadsTheSameWord) {
  for (const std::string& name : hostile()) {
    const std::string word = shell_word(name);
    EXPECT_EQ(word, printable(word)) << name;
    EXPECT_TRUE(is_own_command("netmend why " + word)) << word;
    // bash -c '…' with the command as a script of its own: nothing of it is read twice.
    const std::string script = "printf %s " + word;
    std::string quoted = "'";
    for (char c : script) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    EXPECT_EQ(output_of("bash -c " + quoted + "'"), name) << word;
  }
}

TEST(OwnCommand, NothingElseIsStarted) {
  for (const char* line : {"netmend why x; id", "netmend why $(id)", "netmend why `id`", "rm -rf x", "netmendx y",
                           "netmend why 'a", "netmend why > x", "netmend why x & id", "netmend why \"$(id)\"",
                           "netmend why \n id", "netmend why $'a", "netmend why $HOME", ""})
    EXPECT_FALSE(is_own_command(line)) << line;
  EXPECT_TRUE(is_own_command("netmend failures m.onnx --on 'confusion=a b:c'"));
}

TEST(CsvField, ComesBackAndIsNoFormula) {
  for (const std::string& name : hostile()) {
    std::string field = csv_field(name), plain = field;
    if (field.starts_with('"')) {
      plain.clear();
      for (size_t i = 1; i + 1 < field.size(); ++i) plain += field[i], i += field[i] == '"';
    }
    EXPECT_EQ(from_csv_field(plain), name);
    double number = 0;
    const bool formula = !plain.empty() && std::string_view("=+-@\t\r").find(plain[0]) != std::string_view::npos;
    EXPECT_TRUE(!formula || parse_double(plain, number)) << field;
  }
  EXPECT_EQ(csv_field("-1.5"), "-1.5");
  EXPECT_EQ(csv_field("=1+1"), "'=1+1");
}

TEST(XmlText, HoldsNoMarkupAndNoForbiddenCharacter) {
  for (const std::string& name : hostile()) {
    const std::string text = xml_text(name);
    EXPECT_EQ(text.find_first_of("<>\"'"), std::string::npos) << text;
    EXPECT_EQ(text, printable(text));
    EXPECT_EQ(text.find("\xef\xbf\xbe"), std::string::npos);
  }
  EXPECT_EQ(xml_text("a<b>&'\""), "a&lt;b&gt;&amp;&#39;&quot;");
}

TEST(MarkdownText, StaysInItsCell) { EXPECT_EQ(markdown_text("a|b*[x](y)<z>\n&"), "a\\|b\\*\\[x\\](y)\\<z\\>?\\&"); }

}  // namespace
}  // namespace netmend
