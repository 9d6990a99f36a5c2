// Relevance of single inputs: whose picture lies in which file, and what is said about predictions of every kind.
#include "evidence/input_maps.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "base/file.h"
#include "evidence/points_for_test.h"
#include "session/split.h"

namespace netmend::evidence {
namespace {

namespace fs = std::filesystem;

std::vector<InputMap> maps_of(PointCase& points, const std::string& out, const std::vector<int64_t>& samples) {
  points.out = out;
  session::Session& session = points.open();
  const observers::PredictionSettings task = session.task();
  observers::InputExplainer explainer(session.test().subject, task);
  return map_inputs(task, *session.test().data, session.folder("explain"), samples, explainer);
}

TEST(InputMaps, ColumnsAddUpToTheLogitOfThePrediction) {
  RunFolderForTest folder;
  PointCase points(20);
  for (const InputMap& map : maps_of(points, folder.path, {0, 3, 11})) {
    const at::Tensor row = points.x[map.sample];
    EXPECT_EQ(map.kind, "columns");
    EXPECT_EQ(map.predicted, row[1].item<float>() > row[0].item<float>() ? "above" : "below");
    EXPECT_EQ(map.label, points.classes[size_t(points.y[map.sample].item<int64_t>())]);
    EXPECT_NEAR(map.start, row.max().item<double>(), 1e-5);
    ASSERT_EQ(map.parts.size(), 2u);
    // The larger column is the logit; the other one has no say in it.
    EXPECT_EQ(map.parts[0].name, row[1].item<float>() > row[0].item<float>() ? "b" : "a");
    EXPECT_NEAR(map.parts[0].relevance, map.start, 1e-4);
    EXPECT_NEAR(map.parts[1].relevance, 0, 1e-4);
  }
}

TEST(InputMaps, OfInputsThatAreNanSaySoInsteadOfAClass) {
  RunFolderForTest folder;
  PointCase points(20);
  points.x[2].fill_(NAN);
  points.remake();
  const auto maps = maps_of(points, folder.path, {2, 3});
  ASSERT_EQ(maps.size(), 2u);
  EXPECT_EQ(maps[0].predicted, "NaN or Inf");
  EXPECT_TRUE(std::isfinite(maps[1].start)) << "its neighbour in the batch is not touched";
}

TEST(InputMaps, PicturesOfDifferentInputsLieInDifferentFilesWhateverTheirNames) {
  RunFolderForTest folder;
  PointCase points(6);
  at::Tensor pixels = at::rand({6, 1, 1, 2});
  points.data = std::make_shared<NamedData>(dataset::picture_feature(2), pixels, points.y, points.classes);
  points.data->info_to_change().features[0].shape = {1, 1, 2};
  points.data->ids = {"a/b",  "a_b", "../../etc/x", std::string(100, 'q') + "1", "p" + std::string(99, 'q') + "1",
                      "a_b-1"};
  for (int64_t i = 0; i < 6; ++i) {
    dataset::Display display;
    display.kind = dataset::Display::kImage, display.height = 1, display.width = 2, display.channels = 1;
    display.pixels = {uint8_t(40 * i), 0};
    points.data->pictures.push_back(display);
  }
  const auto maps = maps_of(points, folder.path, {0, 1, 2, 3, 4, 5});
  std::set<std::string> files, contents;
  for (const InputMap& map : maps) {
    EXPECT_EQ(map.kind, "image");
    EXPECT_EQ(map.file.find('/'), std::string::npos) << map.file;
    ASSERT_TRUE(fs::exists(folder.path + "/" + map.file)) << map.file;
    files.insert(map.file), contents.insert(read_file(folder.path + "/" + map.file, 1 << 24));
  }
  EXPECT_EQ(files.size(), 6u);
  EXPECT_EQ(contents.size(), 6u);
}

}  // namespace
}  // namespace netmend::evidence
