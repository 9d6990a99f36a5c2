#include "session/toml_edit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>

#include "base/error.h"
#include "base/text.h"
#include "session/config.h"
#include "session/toml.h"

namespace netmend::session {
namespace {

/// Every line of `before` is in `after`, in the same order: nothing of the user's was touched.
bool keeps_lines(const std::string& before, const std::string& after) {
  const std::vector<std::string> old_lines = split(before, '\n'), lines = split(after, '\n');
  size_t at = 0;
  for (const std::string& line : old_lines) {
    while (at < lines.size() && lines[at] != line) ++at;
    if (at++ == lines.size()) return false;
  }
  return true;
}

std::optional<double> number_at(const std::string& text, const std::string& path) {
  return toml::parse(text).at_path(path).value<double>();
}

TEST(TomlEditTables, AddsToATableWhicheverWayItIsWritten) {
  for (const std::string& text : std::vector<std::string>{
           "",
           "goal.metric = \"f1\"\n",
           "goal = { metric = \"f1\" }\n",
           "goal = {}\n",
           "goal = { metric = \"f1\" }  # } braces in words\n",
           "# heading\n\n[goal]\nmetric = \"f1\"  # mine\n\n# about data\n[data]\nid = \"path\"\n",
           "[data]\nid = \"path\"\n\n[goal]\n",
           "classes = [\n  \"a\",\n  \"b\",\n]\n\n[data]\nid = \"path\"\n",
           "[data]\ngroups = [\n  \"a\",  # first\n  \"b\",\n]\n",
           "  [ goal ]\n  metric = \"f1\"\n",
           "model.file = \"ünï.onnx\"\ngoal = { metric = \"f1\", positive = \"ü×\" }\n",
           "[data]\r\nid = \"path\"\r\n\r\n[goal]\r\nmetric = \"f1\"\r\n",
       }) {
    const std::string out =
        updated_toml(text, {{"goal.expect", "0.75", "told"}, {"model.kind", "\"classes\"", "guess"}}, "x");
    const Config read = parse_config(out, "x");
    EXPECT_DOUBLE_EQ(read.expect, 0.75) << out;
    EXPECT_EQ(read.overrides.kind, "classes") << out;
    EXPECT_EQ(read.overrides.metric, parse_config(text, "x").overrides.metric) << out;
    EXPECT_EQ(read.id, parse_config(text, "x").id) << out;
    if (text.find("goal = {") == std::string::npos) {
      EXPECT_TRUE(keeps_lines(text, out)) << out;
    }
    EXPECT_EQ(updated_toml(out, {{"goal.expect", "0.5", ""}, {"model.kind", "\"number\"", ""}}, "x"), out);
  }
}

TEST(TomlEditTables, AddsToATableInsideATable) {
  for (const std::string& text : std::vector<std::string>{
           "[input.x]\nscale = 2\n",
           "[input]\n[input.x]\nscale = 2\n",
           "[input.x]\nscale = 2\n\n[input.y]\nscale = 3\n",
           "[input.y]\nscale = 3\n\n[input.x]\nscale = 2\n",
           "[input]\nx.scale = 2\n",
           "[input]\nx = { scale = 2 }\n",
           "input.x.scale = 2\n",
           "input.x = { scale = 2 }\n",
           "input = { x = { scale = 2 } }\n",
           "input={x={scale=2}}\n",
           "input = { x.scale = 2 }\n",
           "input = { \"ü\" = {}, x = { scale = 2 }, y = {} }\n",
           "[goal]\nexpect = 0.5\n[input.x]\nscale = 2\n",
       }) {
    const std::string out = updated_toml(text, {{"input.x.mean", "0.25", "told"}}, "x");
    EXPECT_EQ(number_at(out, "input.x.mean"), 0.25) << text << "became\n" << out;
    EXPECT_EQ(number_at(out, "input.x.scale"), 2) << out;
    EXPECT_EQ(toml::parse(out).at_path("input").as_table()->size(),
              toml::parse(text).at_path("input").as_table()->size())
        << out;
  }
}

TEST(TomlEditTables, AddsATableBesideThoseWithHeaders) {
  for (const std::string& text :
       std::vector<std::string>{"[input.x]\nscale = 2\n", "[input]\n[input.x]\nscale = 2\n"}) {
    const std::string out = updated_toml(text, {{"input.y.scale", "3", ""}, {"input.x.mean", "4", ""}}, "x");
    EXPECT_EQ(number_at(out, "input.x.scale"), 2) << out;
    EXPECT_EQ(number_at(out, "input.x.mean"), 4) << out;
    EXPECT_EQ(number_at(out, "input.y.scale"), 3) << out;
  }
}

TEST(TomlEditTables, ALineOfAListIsNoHeader) {
  const std::string out = updated_toml("[a]\nlist = [\n  [1, 2],\n  [3],\n]\n\n[c]\n", {{"a.b", "5", ""}}, "x");
  EXPECT_EQ(out, "[a]\nlist = [\n  [1, 2],\n  [3],\n]\nb = 5\n\n[c]\n");
}

TEST(TomlEditTables, AValueOfAnotherKindIsLeftToTheReader) {
  const std::string text = "goal = 3\n";
  EXPECT_EQ(updated_toml(text, {{"goal.expect", "0.9", ""}}, "x"), text);
}

TEST(TomlEditTables, ACommentStandsAboveATableOnOneLineAndBehindOtherValues) {
  EXPECT_EQ(updated_toml("goal = { metric = \"f1\" }\n", {{"goal.expect", "0.9", "told"}}, "x"),
            "# expect = 0.9: told\ngoal = { metric = \"f1\", expect = 0.9 }\n");
  EXPECT_EQ(updated_toml("[goal]\nmetric = \"f1\"\n", {{"goal.expect", "0.9", "told"}}, "x"),
            "[goal]\nmetric = \"f1\"\nexpect = 0.9  # told\n");
  EXPECT_EQ(updated_toml("a = 1", {{"b", "2", ""}}, "x"), "a = 1\nb = 2\n");  // the last line ends now
}

/// Facts in random order, added to random halves of them: what comes out is what went in, however it is written.
TEST(TomlEditTables, AnyMixOfFactsReadsBack) {
  const std::vector<Fact> all = {{"model.file", "\"m.onnx\"", "a"}, {"model.kind", "\"classes\"", ""},
                                 {"goal.metric", "\"f1\"", "b"},    {"goal.expect", "0.5", "c"},
                                 {"data.id", "\"path\"", ""},       {"classes", "[\"a\", \"b\"]", "d"},
                                 {"input.x.scale", "2", "e"},       {"input.x.mean", "[0.5]", ""},
                                 {"gate.accuracy", "\">= 0\"", ""}, {"accept.\"a:b.c\".reason", "\"known\"", "f"}};
  const Config wanted = parse_config(fresh_toml(all, "# all\n"), "x");
  std::mt19937 random(5);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<Fact> facts = all;
    std::shuffle(facts.begin(), facts.end(), random);
    const auto half = facts.begin() + std::ptrdiff_t(random() % facts.size());
    const std::string first = fresh_toml({facts.begin(), half}, "# mine\n");
    const std::string text = updated_toml(first, facts, "x");
    EXPECT_TRUE(keeps_lines(first.substr(0, first.size() - 1), text)) << text;
    const Config read = parse_config(text, "x");
    EXPECT_EQ(read.model, wanted.model);
    EXPECT_EQ(read.overrides.kind, wanted.overrides.kind);
    EXPECT_EQ(read.overrides.metric, wanted.overrides.metric);
    EXPECT_EQ(read.expect, wanted.expect);
    EXPECT_EQ(read.id, wanted.id);
    EXPECT_EQ(read.classes, wanted.classes);
    EXPECT_EQ(read.input, wanted.input);
    EXPECT_EQ(read.gate, wanted.gate);
    ASSERT_EQ(read.accepted.size(), 1u) << text;
    EXPECT_EQ(read.accepted[0].id, "a:b.c");
    const std::string trimmed = trimmed_toml(text, {"goal.metric", "classes", "not.there"}, "x");
    EXPECT_EQ(parse_config(trimmed, "x").overrides.metric, "");
    EXPECT_EQ(parse_config(trimmed, "x").expect, 0.5) << trimmed;
  }
}

TEST(TomlEditTrim, TakesAllLinesOfAValueAndNoOther) {
  const std::string text =
      "# top\nclasses = [\n  \"a\",  # [first]\n  \"b\",\n]  # end\n\n[accept]\n# why\n"
      "\"x:1\" = { reason = \"r\" }  # old\n\"x:2\" = { reason = \"s\" }\n";
  EXPECT_EQ(trimmed_toml(text, {"classes"}, "x"),
            "# top\n\n[accept]\n# why\n\"x:1\" = { reason = \"r\" }  # old\n\"x:2\" = { reason = \"s\" }\n");
  const Config read = parse_config(trimmed_toml(text, {"accept.\"x:1\""}, "x"), "x");
  ASSERT_EQ(read.accepted.size(), 1u);
  EXPECT_EQ(read.accepted[0].id, "x:2");
  EXPECT_EQ(read.classes, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(trimmed_toml(text, {"accept.\"x:3\"", "goal.metric", "classes.a"}, "x"), text);
}

TEST(TomlEditTrim, WhatSharesItsLineIsLeftToAPerson) {
  for (const std::string& text :
       std::vector<std::string>{"accept = { \"a:b\" = { reason = \"r\" } }\n", "[accept]\n\"a:b\".reason = \"r\"\n",
                                "[accept.\"a:b\"]\nreason = \"r\"\n"}) {
    EXPECT_THROW(trimmed_toml(text, {"accept.\"a:b\""}, "x"), InputError) << text;
  }
}

TEST(TomlEditWords, EveryByteOfAsciiComesBack) {
  std::string all;
  for (int c = 1; c < 128; ++c) all += char(c);
  EXPECT_EQ(*toml::parse("v = " + toml_string(all))["v"].value<std::string>(), all);
  EXPECT_EQ(toml::parse(toml_key(all) + " = 1").begin()->first.str(), all);
  EXPECT_EQ(toml_key("plain_Key-1"), "plain_Key-1");
  for (const std::string key : {"", "a.b", "a b", "ü", "\"", "a\\u0041"}) {
    const std::string text = updated_toml("", {{"accept." + toml_key(key) + ".reason", "\"r\"", ""}}, "x");
    EXPECT_TRUE(toml::parse(text)["accept"].as_table()->contains(key)) << text;
    EXPECT_EQ(updated_toml(text, {{"accept." + toml_key(key) + ".reason", "\"s\"", ""}}, "x"), text);
  }
}

}  // namespace
}  // namespace netmend::session
