#include "base/json.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace netmend {
namespace {

std::string said(const std::string& text, const JsonLimits& limits = {}) {
  try {
    JsonDocument(text, "f.json", limits, "hint");
  } catch (const InputError& error) {
    EXPECT_EQ(error.hint(), "hint");
    return error.what();
  }
  return "";
}

template <typename Ask>
std::string asked(const std::string& text, const Ask& ask) {
  const JsonDocument document(text, "f.json");
  try {
    ask(document.top());
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Json, IsReadAsItIs) {
  const std::string text = R"({"a": [1, -2, 2.5, true, null, "é𝄞\n"], "b": {"c": {}}})";
  EXPECT_EQ(JsonDocument(text, "f").json(), nlohmann::json::parse(text));
  EXPECT_EQ(JsonDocument("\xef\xbb\xbf[1]", "f").json(), nlohmann::json::parse("[1]"));
  EXPECT_EQ(JsonDocument("3", "f").json(), nlohmann::json(3));
}

TEST(Json, WhatIsNoJsonIsRefusedWithItsPlace) {
  EXPECT_EQ(said("{\n \"a\": }").substr(0, 45), "f.json, line 2, column 7: this is not JSON: s");
  for (const char* text : {"", "{", "[1,]", "nan", "{\"a\" 1}", "[1] x", "\"\xe9\"", "1e999", "'a'", "\"\n\""})
    EXPECT_NE(said(text), "") << text;
  EXPECT_EQ(said(R"({"a": 1, "b": {"a": 2, "a": 3}})"), "f.json: the key `a` occurs twice in an object");
}

TEST(Json, LimitsHoldBeforeMemoryIsTaken) {
  EXPECT_EQ(said(std::string(200'000, '[')), "f.json: it is nested more than 64 deep");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_EQ(said(objects), "f.json: it is nested more than 64 deep");
  EXPECT_EQ(said("[1,2,3,4,5]", {.values = 5}), "f.json: it holds more than 5 values");
  EXPECT_EQ(said("[[],[],[]]", {.values = 31}), "f.json: it holds more than 31 values");
  EXPECT_NE(said("[1,2,3]", {.bytes = 3}).find("too large"), std::string::npos);
  std::string brackets = "[";
  for (int i = 0; i < 2'000'000; ++i) brackets += "[],";
  EXPECT_EQ(said(brackets + "[]]", {.values = 1'000'000}), "f.json: it holds more than 1,000,000 values");
}

TEST(Json, WrongTypesNameTheirPlace) {
  const std::string text = R"({"a": [{"b": "x"}, 3], "n": null, "big": 18446744073709551615, "t": true})";
  EXPECT_EQ(asked(text, [](JsonView top) { top.at("c"); }), "f.json: `c` is missing");
  EXPECT_EQ(asked(text, [](JsonView top) { top.at("a").at(0).at("c"); }), "f.json: `a[0].c` is missing");
  EXPECT_EQ(asked(text, [](JsonView top) { top.at("a").at(0).at("b").number(); }),
            "f.json: `a[0].b` is the string 'x', expected a number");
  EXPECT_EQ(asked(text, [](JsonView top) { top.at("a").at(1).at("b"); }), "f.json: `a[1]` is 3, expected an object");
  EXPECT_EQ(asked(text, [](JsonView top) { top.at("a").numbers(); }), "f.json: `a[0]` is an object, expected a number");
  EXPECT_EQ(asked(text, [](JsonView top) { top.at("a").texts(); }), "f.json: `a[0]` is an object, expected a string");
  EXPECT_EQ(asked(text, [](JsonView top) { top.at("n").text(); }), "f.json: `n` is null, expected a string");
  EXPECT_EQ(asked(text, [](JsonView top) { top.at("t").whole(); }), "f.json: `t` is true, expected a whole number");
  EXPECT_EQ(asked(text, [](JsonView top) { top.at("big").whole(); }),
            "f.json: `big` is 18446744073709551615, expected a whole number");
  EXPECT_EQ(asked(text, [](JsonView top) { top.at("a").at(1).whole(5, 9); }), "f.json: `a[1]` is 3, expected 5 to 9");
  EXPECT_EQ(asked(text, [](JsonView top) { top.at("a").at(1).whole(5); }), "f.json: `a[1]` is 3, expected 5 or more");
  EXPECT_EQ(asked(text, [](JsonView top) { top.at("a").size(3, 4); }), "f.json: `a` has 2 entries, expected 3 to 4");
  EXPECT_EQ(asked(text,
                  [](JsonView top) {
                    top.at("a").at(0).at("b").choice({"y", "z"});
                  }),
            "f.json: `a[0].b` is 'x', expected one of y, z");
  EXPECT_EQ(asked("[1]", [](JsonView top) { top.at("a"); }), "f.json: the document is a list, expected an object");
}

TEST(Json, AnyBytesCanBeWritten) {
  const std::string text = json_text(nlohmann::json{{"a", "caf\xe9"}});
  EXPECT_EQ(JsonDocument(text, "f").top().at("a").text(), "caf\xef\xbf\xbd");
  EXPECT_TRUE(json_or_null("{'a'").is_null());
}

}  // namespace
}  // namespace netmend
