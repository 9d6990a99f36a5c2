#include "base/escape.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <sstream>
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

std::string csv_of(const std::string& text) {
  std::ostringstream out;
  CsvWriter(out, "").row(text);
  return out.str().substr(1, out.str().size() - 2);
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
    EXPECT_EQ(ShellPlace::read("netmend why " + word), Shell::of("netmend why {}", name)) << word;
    // bash -c '…' with the command as a script of its own: nothing of it is read twice.
    const std::string script = "printf %s " + word;
    std::string quoted = "'";
    for (char c : script) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    EXPECT_EQ(output_of("bash -c " + quoted + "'"), name) << word;
  }
}

TEST(Shell, OfALineStartsNothingElse) {
  for (const char* line : {"netmend why x; id", "netmend why $(id)", "netmend why `id`", "rm -rf x", "netmendx y",
                           "netmend why 'a", "netmend why > x", "netmend why x & id", "netmend why \"$(id)\"",
                           "netmend why \n id", "netmend why $'a", "netmend why $HOME", ""})
    EXPECT_FALSE(ShellPlace::read(line)) << line;
  EXPECT_TRUE(ShellPlace::read("netmend failures m.onnx --on 'confusion=a b:c'"));
  EXPECT_TRUE(ShellPlace::read("python relabel.py", ""));
  for (const char* line : {"", "rm -rf ~", "a; b", "a $(b)", "a > b", "a\n", "a |b", "(a)", "!1"})
    EXPECT_FALSE(ShellPlace::read(line, "")) << line;
}

TEST(CsvField, ComesBackAndIsNoFormula) {
  for (const std::string& name : hostile()) {
    std::string field = csv_of(name), plain = field;
    if (field.starts_with('"')) {
      plain.clear();
      for (size_t i = 1; i + 1 < field.size(); ++i) plain += field[i], i += field[i] == '"';
    }
    EXPECT_EQ(from_csv_field(plain), name);
    double number = 0;
    const bool formula = !plain.empty() && std::string_view("=+-@\t\r").find(plain[0]) != std::string_view::npos;
    EXPECT_TRUE(!formula || parse_double(plain, number)) << field;
  }
  EXPECT_EQ(csv_of("-1.5"), "-1.5");
  EXPECT_EQ(csv_of("=1+1"), "'=1+1");
}

TEST(CsvWriter, RowsHaveTheColumnsOfTheHead) {
  std::ostringstream text;
  const std::vector<std::string> more = {"a,b", "=c"};
  CsvWriter out(text, "id,loss", more);
  out.row("x", Digits{0.123456789}, 3, true);
  out << "" << Digits{NAN, 6, true} << Digits{NAN} << int8_t(65);
  out.end();
  EXPECT_EQ(text.str(), "id,loss,\"a,b\",'=c\nx,0.123457,3,1\n,,nan,65\n");
}

// Forgetting to escape does not compile: nothing but literals and values makes a document, and not those of another.
template <typename Document, typename Value>
concept Takes = requires(const Value& value) {
  Document::of("{}", value);
};
static_assert(Takes<Xml, std::string> && Takes<Xml, Xml> && Takes<Xml, double> && !Takes<Xml, Markdown>);
static_assert(!Takes<Markdown, Shell> && !Takes<Shell, Xml> && !Takes<Markdown, std::vector<std::string>>);
static_assert(!std::is_constructible_v<Xml, std::string> && !std::is_convertible_v<std::string, Markdown>);
static_assert(!std::is_constructible_v<Shell, const char*> && !std::is_assignable_v<Xml&, std::string>);
static_assert(!std::is_constructible_v<OwnWords, std::string> && !std::is_constructible_v<OwnWords, std::string_view>);
template <typename Value>
concept Field = requires(CsvWriter& out, Value value) {
  out << value;
};
static_assert(Field<std::string> && Field<int64_t> && Field<Digits> && !Field<double> && !Field<float>);

TEST(XmlText, HoldsNoMarkupAndNoForbiddenCharacter) {
  for (const std::string& name : hostile()) {
    const std::string text = Xml::of("{}", name).text();
    EXPECT_EQ(text.find_first_of("<>\"'"), std::string::npos) << text;
    EXPECT_EQ(text, printable(text));
    EXPECT_EQ(text.find("\xef\xbf\xbe"), std::string::npos);
  }
  EXPECT_EQ(Xml::of("<i>{}</i>{}", "a<b>&'\"", 3).text(), "<i>a&lt;b&gt;&amp;&#39;&quot;</i>3");
}

TEST(MarkdownText, StaysInItsCell) {
  EXPECT_EQ(Markdown::of("| {} |", "a|b*[x](y)<z>\n&").text(), "| a\\|b\\*\\[x\\](y)\\<z\\>?\\& |");
}

TEST(MarkdownText, ABlockIsNotLeft) {
  EXPECT_EQ(MarkdownPlace::block("diff", "a\n```\n# b\n").text(), "````diff\na\n```\n# b\n````\n");
}

TEST(ShellText, WordsAreQuoted) {
  const Shell more = Shell::of(" --data {}", "a b");
  EXPECT_EQ(Shell::of("netmend why {}{}", "$(id)", more).text(), "netmend why '$(id)' --data 'a b'");
}

}  // namespace
}  // namespace netmend
