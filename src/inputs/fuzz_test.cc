#include "inputs/fuzz.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "adequacy/choice.h"
#include "base/error.h"
#include "base/file.h"
#include "inputs/case_for_test.h"
#include "inputs/criteria_choice.h"
#include "stream/layers.h"

namespace netmend::inputs {
namespace {

std::string folder() {
  static const std::string path = [] {
    char name[] = "/tmp/netmend-fuzz-XXXXXX";
    return std::string(mkdtemp(name));
  }();
  return path;
}

struct Setting {
  std::unique_ptr<TestCase> test = random_case(17, 1, false, 30);
  observers::SpacePtr space = observers::make_unit_space(test->subject, stream::find_layers(test->subject), {});
  observers::Criteria::List criteria =
      make_criteria(adequacy::parse_criteria("NC:0.5,TKNC:2,TKNP:2"), space, nullptr, 6);

  FuzzResult run(const std::string& file, int64_t rounds, int jobs = 1) {
    Novelty novelty(criteria);
    FuzzOptions options;
    options.jobs = jobs, options.quiet = true, options.rounds = rounds;
    options.queue = file, options.about = "a test";
    return fuzz(*test->network, test->subject, test->settings, test->chosen, space, novelty, options);
  }
};

TEST(Fuzz, GoesOnWhereItWasKilled) {
  Setting setting;
  const std::string whole = folder() + "/whole.queue", broken = folder() + "/broken.queue";
  FuzzResult all = setting.run(whole, 3);
  const std::string expected = read_file(whole);
  EXPECT_EQ(all.rounds, 3);
  EXPECT_GT(all.kept, 0);
  EXPECT_GT(all.covered, all.covered_before);
  // Killed at any moment: the file ends anywhere.
  Random random(1);
  for (int trial = 0; trial < 4; ++trial) {
    std::ofstream(broken, std::ios::binary) << expected.substr(0, trial == 0 ? 5 : random.below(expected.size()));
    FuzzResult resumed = setting.run(broken, 3, 1 + trial % 3);
    EXPECT_EQ(read_file(broken), expected) << trial;
    EXPECT_EQ(resumed.covered, all.covered);
    EXPECT_EQ(resumed.tried, all.tried);
    EXPECT_TRUE(at::equal(resumed.made.raw, all.made.raw));
  }
  FuzzResult more = setting.run(whole, 4);
  EXPECT_EQ(more.resumed, 3);
  EXPECT_EQ(more.rounds, 4);
  EXPECT_GE(more.covered, all.covered);
}

TEST(Fuzz, KeepsWhatCoversMoreAndWhatFails) {
  Setting setting;
  FuzzResult found = setting.run(folder() + "/kept.queue", 3);
  // Goals counted afresh, over seeds and everything kept, are all the goals there are.
  Novelty fresh(setting.criteria), seeds_only(setting.criteria);
  EXPECT_EQ(found.made.attempts.size(), size_t(found.made.raw.size(0)));
  Originals all = setting.test->originals();
  const stream::RawRange& range = *setting.test->range;
  EXPECT_GE(found.made.raw.min().item<double>(), 0);
  EXPECT_LE(found.made.raw.max().item<double>(), 255);
  int64_t failing = 0;
  for (size_t i = 0; i < found.made.attempts.size(); ++i) {
    const Attempt& attempt = found.made.attempts[i];
    Originals one = all.rows(at::tensor({attempt.sample}, at::kLong));
    at::Tensor units = range.units(range.fed(found.made.raw.narrow(0, int64_t(i), 1)));
    EXPECT_EQ(setting.test->network->predictions(one, units)[0].item<int64_t>(), attempt.after) << i;
    failing += attempt.success();
  }
  EXPECT_LE(failing, found.failing);
  EXPECT_EQ(found.kept + failing, int64_t(found.made.attempts.size()));
}

TEST(Novelty, CountsAsTalliesDo) {
  Setting setting;
  observers::Criteria observer(setting.test->settings, setting.space, setting.criteria);
  stream::PassOptions how;
  how.quiet = true;
  auto done = stream::run_pass(setting.test->subject, {&observer}, how);
  auto state = done.collected[0].fold(observer);
  double covered = 0;
  for (size_t c = 0; c < setting.criteria.size(); ++c)
    covered += setting.criteria[c]->figure(*dynamic_cast<observers::CriteriaState&>(*state).tallies[c]).covered;
  EXPECT_EQ(setting.run(folder() + "/none.queue", 0).covered_before, int64_t(covered));
  auto together = make_criteria(adequacy::parse_criteria("NLC"), setting.space, nullptr, 6);
  EXPECT_THROW(Novelty{together}, InputError);
  EXPECT_THROW(make_criteria(adequacy::parse_criteria("KMNC"), setting.space, nullptr, 6), InputError);
  EXPECT_THROW(make_criteria(adequacy::parse_criteria("DSC"), setting.space, nullptr, 6), InputError);
}

TEST(Queue, RefusesWhatIsNotItsOwn) {
  const std::string path = folder() + "/other.queue";
  {
    QueueFile file(path, "one run", 4);
    file.append({{1, 2}, 7, 3, {{0, 0, 1, 2, false, true, {1, 2, 3, 4}}}});
  }
  QueueFile again(path, "one run", 4);
  ASSERT_EQ(again.rounds().size(), 1u);
  EXPECT_EQ(again.rounds()[0].kept[0].values, (std::vector<float>{1, 2, 3, 4}));
  EXPECT_TRUE(again.rounds()[0].kept[0].moved);
  EXPECT_THROW(QueueFile(path, "another run", 4), InputError);
  std::ofstream(path, std::ios::binary) << "something else altogether, and long enough to be a queue";
  EXPECT_THROW(QueueFile(path, "one run", 4), InputError);
  EXPECT_THROW(QueueFile(folder() + "/no/such/folder/x.queue", "one run", 4), InputError);
}

TEST(Queue, WhatIsChangedIsNoticedAndWhatIsCutOffGoesOn) {
  const std::string path = folder() + "/three.queue";
  const QueueRound round{{0, 1}, 7, 3, {{0, 0, 1, 2, false, true, {1, 2, 3, 4}}}};
  {
    QueueFile file(path, "one run", 4);
    for (int i = 0; i < 3; ++i) file.append(round);
  }
  const std::string whole = read_file(path);
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string flipped = whole;
    flipped[at] = char(flipped[at] ^ 4);
    write_file(path, flipped);
    // Of the last round alone it cannot be told whether it was ever whole.
    try {
      EXPECT_EQ(QueueFile(path, "one run", 4).rounds().size(), 2u) << at;
      EXPECT_GT(at, whole.size() * 2 / 3);
    } catch (const InputError&) {
    }
  }
  for (size_t size = whole.size() * 2 / 3; size < whole.size(); size += 7) {
    write_file(path, whole.substr(0, size));
    size_t rounds = 0;
    {
      QueueFile cut(path, "one run", 4);
      rounds = cut.rounds().size();
      EXPECT_LT(rounds, 3u);
      cut.append(round);
      EXPECT_THROW(QueueFile(path, "one run", 4), InputError);  // one writer at a time
    }
    EXPECT_EQ(QueueFile(path, "one run", 4).rounds().size(), rounds + 1);
  }
  write_file(path, "netmend-queue 1\n" + std::string(200, 'x'));
  EXPECT_THROW(QueueFile(path, "one run", 4), InputError);
}

TEST(Queue, CountsAndNumbersMustBePossible) {
  const std::string path = folder() + "/odd.queue";
  for (const QueueRound& round :
       {QueueRound{{}, 1, 2, {}}, QueueRound{{}, 0, 0, {{0, 0, 1, 2, false, true, {1, 2, 3, 4}}}},
        QueueRound{{}, -5, -6, {}}, QueueRound{{}, 4, 1, {{0, 0, 1, 2, false, true, {1, 2, 3, NAN}}}}}) {
    std::filesystem::remove(path);
    QueueFile(path, "one run", 4).append(round);
    EXPECT_THROW(QueueFile(path, "one run", 4), InputError);
  }
}

}  // namespace
}  // namespace netmend::inputs
