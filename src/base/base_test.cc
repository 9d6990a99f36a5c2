#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/lock.h"
#include "base/npy.h"
#include "base/pool.h"
#include "base/random.h"
#include "base/text.h"

namespace netmend {
namespace {

std::string temporary(const std::string& name) {
  static std::string folder = [] {
    char path[] = "/tmp/netmend-test-XXXXXX";
    return std::string(mkdtemp(path));
  }();
  return folder + "/" + name;
}

TEST(Text, ShapesAndNumbersReadWell) {
  EXPECT_EQ(shape_text(std::vector<int64_t>{1, 28, -1}), "1×28×?");
  EXPECT_EQ(shape_text({}), "scalar");
  EXPECT_EQ(with_commas(107786), "107,786");
  EXPECT_EQ(with_commas(-1000), "-1,000");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(printable("a\x1b[31m\nb×"), "a?[31m?b×");
  EXPECT_EQ(printable("ü× 𝄞"), "ü× 𝄞");
  EXPECT_EQ(printable("a\u202egnp.exe\u2066\u2028"),
            "a???gnp.exe??????");                           // a byte each: the order of what is behind, and a line
  EXPECT_EQ(printable("\xf4x\xc3"), "?x?");                 // no UTF-8
  EXPECT_EQ(printable("\xc0\xafz\xed\xa0\x80"), "??z???");  // longer than needed; half a pair
  EXPECT_EQ(printable("\xc2\x9b"
                      "5m"),
            "??5m");  // a control character in two bytes
  EXPECT_EQ(bytes_text(4.1e6), "4.1 MB");
}

TEST(Text, AmountsOfMemory) {
  EXPECT_EQ(parse_bytes("512M"), 512 << 20);
  EXPECT_EQ(parse_bytes("2GB"), int64_t(2) << 30);
  EXPECT_EQ(parse_bytes("100"), 100);
  for (const char* bad : {"", "G", "-1G", "1X", "nan", "1e30G"}) EXPECT_THROW(parse_bytes(bad), InputError) << bad;
}

TEST(Text, TheNearestNameIsSuggestedOnlyWhenNear) {
  std::vector<std::string> names{"conv1", "conv2", "dense"};
  EXPECT_EQ(nearest("cnov1", names), "conv1");
  EXPECT_EQ(nearest("zzzzzzz", names), "");
  EXPECT_EQ(did_you_mean("dence", names), " (did you mean dense?)");
}

TEST(Locks, AreHeldByOneAndGoneAfterwards) {
  const std::string path = temporary("a.lock");
  {
    Lock lock(path, "the folder a");
    try {
      Lock second(path, "the folder a");
      ADD_FAILURE() << "two hold it";
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find(fmt::format("the folder a is in use by process {} on ", getpid())),
                std::string::npos)
          << error.what();
    }
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  write_file(path, "process 1 on nowhere since long ago");  // left by a process that was killed
  Lock lock(path, "the folder a");
}

TEST(Locks, ThoseWhoChangeAFileTakeTurns) {
  const std::string path = temporary("count.txt");
  write_file(path, "0");
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      for (int n = 0; n < 5; ++n) {
        const Lock lock = lock_for_change(path);
        write_file(path, std::to_string(std::stoi(read_file(path)) + 1));
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(read_file(path), "40");
}

TEST(Files, AreWrittenCompletelyOrNotAtAll) {
  std::string path = temporary("whole.txt");
  write_file(path, "first");
  EXPECT_THROW(write_file(path, [](std::ostream&) { fail("half-way"); }), InputError);
  EXPECT_EQ(read_file(path), "first");
  std::string full = temporary("full");  // a link to a device is written to, never replaced
  std::filesystem::create_symlink("/dev/full", full);
  EXPECT_THROW(write_file(full, std::string(1 << 20, 'x')), InputError);
  EXPECT_TRUE(std::filesystem::is_symlink(full));
  std::filesystem::remove(full);
  EXPECT_THROW(write_file(temporary("no/such/folder"), "x"), InputError);
  EXPECT_THROW(read_file(temporary("missing")), InputError);
  EXPECT_THROW(read_file("/tmp"), InputError);
  EXPECT_THROW(read_file(path, 3), InputError);
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(path).parent_path()))
    EXPECT_EQ(entry.path().filename().string().find(".part"), std::string::npos) << entry.path();
}

TEST(Files, OnlyRegularFilesAreRead) {
  for (const char* path : {"/dev/zero", "/dev/null", "/tmp"}) EXPECT_THROW(read_file(path), InputError) << path;
  const std::string pipe = temporary("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THROW(read_file(pipe), InputError);  // and does not wait for a writer
  std::filesystem::remove(pipe);
  const std::string holes = temporary("holes");
  write_file(holes, "x");
  std::filesystem::resize_file(holes, uintmax_t(900) << 30);
  EXPECT_THROW(read_file(holes), InputError);
  std::filesystem::remove(holes);
}

TEST(Files, LinksStayAndWhatTheyLeadToIsReplaced) {
  const std::string file = temporary("aim"), link = temporary("link"), second = temporary("link2");
  write_file(file, "old");
  std::filesystem::permissions(file, std::filesystem::perms(0640));
  std::filesystem::create_symlink("aim", link);
  std::filesystem::create_symlink("link", second);
  write_file(second, "new");
  EXPECT_TRUE(std::filesystem::is_symlink(second) && std::filesystem::is_symlink(link));
  EXPECT_EQ(read_file(file), "new");
  EXPECT_EQ(std::filesystem::status(file).permissions(), std::filesystem::perms(0640));
  std::filesystem::remove(file);
  write_file(link, "made");  // a link that leads to nothing yet
  EXPECT_EQ(read_file(file), "made");
  for (const std::string& path : {file, link, second}) std::filesystem::remove(path);
}

TEST(Files, AnOpenStreamIsWrittenTo) {
  int ends[2] = {};
  ASSERT_EQ(pipe(ends), 0);
  write_file("/dev/fd/" + std::to_string(ends[1]), "through");
  char text[8] = {};
  EXPECT_EQ(read(ends[0], text, 7), 7);
  EXPECT_STREQ(text, "through");
  close(ends[0]), close(ends[1]);
}

TEST(Files, NoFileIsInputAndProductOfOneProcess) {
  const std::string input = temporary("input"), hard = temporary("hard"), link = temporary("soft"),
                    product = temporary("product");
  write_file(temporary("made"), "x");
  std::filesystem::copy_file(temporary("made"), input);  // not by us: what we wrote ourselves may be read again
  std::filesystem::create_hard_link(input, hard);
  std::filesystem::create_symlink("input", link);
  read_file(input);
  for (const std::string& name : {input, hard, link}) EXPECT_THROW(claim_product(name, "-o"), InputError) << name;
  EXPECT_THROW(refuse_input(hard), InputError);
  EXPECT_NO_THROW(refuse_input(temporary("made")));
  // And the other way round: first claimed, then read.
  std::filesystem::copy_file(temporary("made"), product);
  claim_product(product, "-o");
  EXPECT_NO_THROW(claim_product(product, "-o"));
  EXPECT_THROW(claim_product(product, "--plan"), InputError);
  EXPECT_THROW(read_file(product), InputError);
  EXPECT_EQ(read_file(product, 100, FileRole::kOwn), "x");
  write_file(product, "new");
  EXPECT_EQ(read_file(product), "new");  // ours now
  EXPECT_EQ(partial_name("a/adv.npz"), "a/adv.partial.npz");
  EXPECT_EQ(partial_name("model"), "model.partial");
  claim_product("/dev/null", "-o");
  claim_product("/dev/null", "--plan");
  EXPECT_THROW(claim_product(temporary("no/such/folder"), "-o"), InputError);
  for (const std::string& path : {input, hard, link, product, temporary("made")}) std::filesystem::remove(path);
}

TEST(Files, RemainsOfKilledProcessesAreRemoved) {
  const std::string path = temporary("model.onnx"), dead = path + ".part4194303", other = path + ".party",
                    alive = path + ".part" + std::to_string(getpid());
  for (const std::string& name : {dead, other, alive}) write_file(name, "x");
  claim_product(path, "-o of this test");
  EXPECT_FALSE(std::filesystem::exists(dead));
  EXPECT_TRUE(std::filesystem::exists(other) && std::filesystem::exists(alive));
  std::filesystem::remove(other), std::filesystem::remove(alive);
}

TEST(Text, NamesBecomeDifferentInNoMoreThanTheirNumber) {
  UniqueNames names;
  EXPECT_EQ(names.add("a"), "a");
  EXPECT_EQ(names.add("a_2"), "a_2");
  EXPECT_EQ(names.add("a"), "a_3");
  EXPECT_EQ(names.add("a", ".", 1), "a.4");
  std::set<std::string> all;
  for (int i = 0; i < 200'000; ++i) all.insert(names.add("same"));
  EXPECT_EQ(all.size(), 200'000u);
  EXPECT_EQ(utf8("a\x1b\xe9z"), "a\x1b\xef\xbf\xbdz");
}

TEST(Files, ChecksumsTellContentApart) {
  std::set<std::string> sums;
  for (int length = 0; length < 40; ++length) sums.insert(checksum(std::string(size_t(length), 'a')));
  sums.insert(checksum(std::string(8, '\0')));
  sums.insert(checksum(std::string(7, '\0')));
  EXPECT_EQ(sums.size(), 42u);
  for (size_t length : {size_t(0), size_t(13), size_t(1) << 20, (size_t(2) << 20) + 5}) {
    std::string content(length, 'x');
    write_file(temporary("sum"), content);
    EXPECT_EQ(file_checksum(temporary("sum")), checksum(content)) << length;
  }
}

TEST(Pool, HandsOverInOrderForAnyNumberOfWorkers) {
  for (int workers : {1, 2, 3, 8}) {
    std::vector<int64_t> results(500), order;
    in_order(
        500, workers, [](int) {}, [&](int64_t item, int) { results[size_t(item)] = item * item; },
        [&](int64_t item) {
          EXPECT_EQ(results[size_t(item)], item * item);
          order.push_back(item);
        });
    ASSERT_EQ(order.size(), 500u);
    for (int64_t i = 0; i < 500; ++i) EXPECT_EQ(order[size_t(i)], i);
  }
}

TEST(Pool, AFailureStopsEverythingAndIsThrown) {
  for (int workers : {1, 4}) {
    std::atomic<int> done{0};
    auto work = [&](int64_t item, int) {
      if (item == 7) fail("seven");
      ++done;
    };
    EXPECT_THROW(in_order(
                     100000, workers, [](int) {}, work, [](int64_t) {}),
                 InputError);
    EXPECT_LT(done, 1000);
  }
}

TEST(Pool, FewItemsAndNone) {
  int handed = 0;
  in_order(
      0, 4, [](int) {}, [](int64_t, int) {}, [&](int64_t) { ++handed; });
  in_order(
      1, 4, [](int) {}, [](int64_t, int) {}, [&](int64_t) { ++handed; });
  EXPECT_EQ(handed, 1);
}

TEST(Random, DependsOnSeedAndStreamAlone) {
  Random a(1), b(1), c(2), d(1, 1);
  EXPECT_EQ(a.bits(), b.bits());
  EXPECT_NE(a.bits(), c.bits());
  EXPECT_NE(b.bits(), d.bits());
  double sum = 0, squares = 0;
  Random normal(3);
  for (int i = 0; i < 100000; ++i) {
    double x = normal.normal();
    sum += x, squares += x * x;
  }
  EXPECT_NEAR(sum / 1e5, 0, 0.02);
  EXPECT_NEAR(squares / 1e5, 1, 0.02);
}

TEST(Npy, HeadersAreAlignedAndNamed) {
  std::string header = npy_header("<f4", std::vector<int64_t>{3, 4});
  EXPECT_EQ(header.size() % 64, 0u);
  EXPECT_NE(header.find("'shape': (3, 4)"), std::string::npos);
  EXPECT_NE(npy_header("<i8", std::vector<int64_t>{7}).find("(7,)"), std::string::npos);
  EXPECT_NE(npy_header("<i8", {}).find("()"), std::string::npos);
}

}  // namespace
}  // namespace netmend
