#include "trials/store.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "trials/boxes.h"
#include "trials/network_folder.h"
#include "trials/parts.h"

namespace netmend::trials {
namespace {

std::string fresh_path(const std::string& name) {
  std::string folder = testing::TempDir() + "store_test";
  std::filesystem::create_directories(folder);
  std::string path = folder + "/" + name + ".db";
  for (const char* end : {"", ".lock", "-wal", "-shm"}) std::filesystem::remove(path + end);
  return path;
}

TEST(Store, KeepsWhatWasPut) {
  std::string path = fresh_path("keeps");
  {
    Store store(path, "study", 1);
    store.put("b", "{\"x\": 1}");
    store.put("a", "two\nlines and ünicode");
    store.put("b", "again");
  }
  Store store(path, "study", 1);
  EXPECT_EQ(store.count(), 2);
  EXPECT_EQ(store.find("b"), "again");
  EXPECT_EQ(store.find("c"), std::nullopt);
  EXPECT_EQ(store.all()[0], (std::pair<std::string, std::string>("a", "two\nlines and ünicode")));
}

TEST(Store, RefusesOthersAndDamage) {
  std::string path = fresh_path("refuses");
  { Store store(path, "study", 1); }
  EXPECT_THROW(Store(path, "other", 1), InputError);
  EXPECT_THROW(Store(path, "study", 2), InputError);
  {
    Store first(path, "study", 1);
    EXPECT_THROW(Store(path, "study", 1), InputError);
  }
  std::string junk = fresh_path("junk");
  std::ofstream(junk) << std::string(5000, 'x');
  EXPECT_THROW(Store(junk, "study", 1), InputError);
  EXPECT_THROW(Store("/nowhere/at/all.db", "study", 1), InputError);
}

TEST(Store, SurvivesBeingKilled) {
  std::string path = fresh_path("killed");
  pid_t child = fork();
  if (child == 0) {
    Store store(path, "study", 1);
    for (int i = 0;; ++i) store.put(std::to_string(i), std::string(1000, 'y'));
  }
  usleep(200000);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  Store store(path, "study", 1);
  const int64_t count = store.count();
  EXPECT_GT(count, 0);
  // What was put stays, in order, whole.
  for (int64_t i = 0; i < count; ++i) EXPECT_EQ(store.find(std::to_string(i)), std::string(1000, 'y'));
}

TEST(Store, RunsPartsInOrderAndGoesOn) {
  std::string path = fresh_path("parts");
  Store store(path, "study", 1);
  store.put("b", "0");
  std::vector<std::string> told;
  int prepared = 0;
  auto part = [&](std::string name, std::vector<std::string> keys) {
    return Part{std::move(name), std::move(keys), [&]() -> RunTrial {
                  ++prepared;
                  return [](const std::string& key) { return key + key; };
                }};
  };
  run_parts(store, {part("one", {"c", "b", "a"}), part("two", {"b"})},
            {2, {}, [&](const std::string& key, const std::string&) { told.push_back(key); }});
  EXPECT_EQ(told, (std::vector<std::string>{"c", "a"}));
  EXPECT_EQ(prepared, 1);  // nothing of the second is missing
  EXPECT_EQ(store.find("a"), "aa");
  EXPECT_EQ(store.find("b"), "0");
}

TEST(Store, IsNotOnANetworkFileSystem) {
  EXPECT_EQ(network_kind(0x6969), "NFS");
  EXPECT_EQ(network_kind(int(0xFF534D42)), "CIFS");
  EXPECT_EQ(network_kind(0x0BD00BD0), "Lustre");
  EXPECT_EQ(network_kind(0xEF53), "");      // ext4
  EXPECT_EQ(network_kind(0x01021994), "");  // tmpfs
  EXPECT_EQ(network_kind_at(fresh_path("local")), "");
}

TEST(Store, RefusesAddressesThatAreNone) {
  EXPECT_THROW(Store("mysql://server/x", "study", 1), InputError);
  try {
    Store("postgresql://me:geheim@nowhere.invalid/x", "study", 1);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(std::string(error.what() + error.hint()).find("geheim"), std::string::npos);
  }
}

TEST(Boxes, WhiskersEndWithinTheFences) {
  std::vector<double> values = {1, 2, 3, 4, 5, 100, NAN};
  const Box with = fenced_box("a", values, true), without = fenced_box("a", values, false);
  EXPECT_EQ(with.most, 5);
  EXPECT_EQ(with.outside, std::vector<double>{100});
  EXPECT_EQ(with.count, 6u);
  EXPECT_EQ(without.count, 5u);
  EXPECT_TRUE(without.outside.empty());
  EXPECT_NE(boxes_svg("t", {with}, 3).find("<circle"), std::string::npos);
  EXPECT_EQ(boxes_svg("t", {without}, 3).find("<circle"), std::string::npos);
}

}  // namespace
}  // namespace netmend::trials
