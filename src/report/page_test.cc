#include "report/page.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "report/template.h"

namespace netmend::report {
namespace {

using Json = nlohmann::json;

Json smallest() {
  return {{"format", "netmend.report/1"},
          {"run", Json::object()},
          {"verdict", "fine"},
          {"findings", Json::array()},
          {"skipped", Json::array()}};
}

/// What stands between the tags, as a browser would see it: up to the first thing that ends a script element.
std::string embedded(const std::string& page) {
  std::string open = R"(<script type="application/json" id="report">)";
  size_t start = page.find(open);
  EXPECT_NE(start, std::string::npos);
  start += open.size();
  return page.substr(start, page.find("</", start) - start);
}

std::string refusal(const std::string& document) {
  try {
    draw_page(document, "evidence.json");
  } catch (const InputError& error) {
    EXPECT_FALSE(error.hint().empty());
    return error.what();
  }
  return "";
}

TEST(Page, TheTemplateIsWholeAndLoadsNothing) {
  std::string all = std::string(template_head()) + std::string(template_tail());
  EXPECT_EQ(all.substr(0, 15), "<!doctype html>");
  EXPECT_NE(all.find("</html>"), std::string::npos);
  EXPECT_NE(all.find("Content-Security-Policy"), std::string::npos);
  EXPECT_NE(all.find("default-src 'none'"), std::string::npos);
  EXPECT_EQ(all.find("<link"), std::string::npos);
  EXPECT_EQ(all.find("<script src"), std::string::npos);
  EXPECT_EQ(all.find("@NETMEND"), std::string::npos);
}

TEST(Page, TheDocumentComesBackAsItWas) {
  Json json = smallest();
  json["verdict"] = "quotes \" ' ` and \\ and € and 𝄞 and \n\t";
  json["inputs"] = {{"id", {"a", "b"}}, {"loss", {0.1, nullptr}}};
  EXPECT_EQ(Json::parse(embedded(draw_page(json.dump(), "x"))), json);
  EXPECT_EQ(Json::parse(embedded(draw_page("\xEF\xBB\xBF" + json.dump(1), "x"))), json);
}

TEST(Page, NothingInADocumentEndsItsElement) {
  for (std::string name : {"</script><script>alert(1)</script>", "<!--", "<!--<script>", "]]>", "</SCRIPT >", "<",
                           "<<</script", "\"><img src=x onerror=alert(1)>", "-->", "@NETMEND_REPORT@"}) {
    Json json = smallest();
    json["verdict"] = name;
    json[name] = Json::array({name});
    std::string page = draw_page(json.dump(), "x");
    EXPECT_EQ(Json::parse(embedded(page)), json) << name;
    EXPECT_EQ(embedded(page).find('<'), std::string::npos);
    EXPECT_EQ(page.substr(0, template_head().size()), template_head());
    EXPECT_EQ(page.substr(page.size() - template_tail().size()), template_tail());
  }
}

TEST(Page, WhatIsNoReportIsRefusedInWords) {
  EXPECT_NE(refusal(""), "");
  EXPECT_NE(refusal("{\"format\": \"netmend.report/1\"").find("not JSON"), std::string::npos);
  EXPECT_NE(refusal("{\"verdict\": NaN}"), "");
  EXPECT_NE(refusal("\"\xff\xfe\""), "");
  EXPECT_NE(refusal("[]").find("format"), std::string::npos);
  EXPECT_NE(refusal("{\"format\": 7}").find("format"), std::string::npos);
  EXPECT_NE(refusal("{\"format\": \"netmend.report/9\"}").find("netmend.report/9"), std::string::npos);
  for (std::string key : {"run", "verdict", "findings", "skipped"}) {
    Json json = smallest();
    json.erase(key);
    EXPECT_NE(refusal(json.dump()).find(key), std::string::npos);
    json[key] = 3;
    EXPECT_NE(refusal(json.dump()).find(key), std::string::npos);
  }
}

TEST(Page, DeepNestingIsRefusedAndDoesNotCrash) {
  Json json = smallest();
  std::string text = json.dump();
  text.pop_back();
  EXPECT_NE(refusal(text + ",\"x\":" + std::string(1000000, '[') + std::string(1000000, ']') + "}").find("deep"),
            std::string::npos);
}

TEST(Page, AFolderWithoutEvidenceSaysWhatWritesIt) {
  char path[] = "/tmp/netmend-page-XXXXXX";
  std::string folder = mkdtemp(path);
  EXPECT_THROW(write_page(folder), InputError);
  EXPECT_THROW(write_page(folder + "/missing"), InputError);
  write_file(folder + "/" + kEvidence, smallest().dump());
  write_page(folder);
  EXPECT_EQ(Json::parse(embedded(read_file(folder + "/" + kPage))), smallest());
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace netmend::report
