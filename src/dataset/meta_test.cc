#include <ATen/ATen.h>

#include "dataset/dataset.h"
#include "dataset/image_file.h"
#include "dataset/meta_dataset.h"
#include "dataset/test_files.h"

namespace netmend::dataset {
namespace {

using Words = std::vector<std::string>;

struct Photos {
  TemporaryFolder folder;
  Photos() {
    for (const char* name : {"pics/cat/1.png", "pics/cat/2.png", "pics/dog/3.png"})
      folder.write(name, encode_png(1, 1, 1, {7}));
  }
  std::unique_ptr<Dataset> open(const std::string& meta, const std::string& options = "") {
    return dataset::open("images:" + folder.path() + "/pics,meta=" + folder.write("meta.csv", meta) + options);
  }
};

TEST(Meta, JoinedByPathOrFileName) {
  Photos photos;
  auto data = photos.open("hour,id,camera\n7,./cat/1.png,left\n8,2.png,?\n9,dog/3.png,right\n");
  EXPECT_EQ(data->info().groups, (Words{"hour", "camera"}));
  EXPECT_EQ(data->groups(0), (Words{"7", "left"}));
  EXPECT_EQ(data->groups(1), (Words{"8", ""}));
  EXPECT_EQ(data->groups(2), (Words{"9", "right"}));
  EXPECT_TRUE(data->info().notes.empty());
  EXPECT_EQ(data->id(1), "cat/2.png");
  EXPECT_EQ(data->read(std::vector<int64_t>{2}).labels.item<int64_t>(), 1);
  auto named = photos.open("camera,path,hour\nleft,cat/1.png,7\n", ",meta_id=path,meta_groups=hour");
  EXPECT_EQ(named->groups(0), (Words{"7"}));
  EXPECT_EQ(named->groups(2), (Words{""}));
  ASSERT_EQ(named->info().notes.size(), 1u);
  EXPECT_TRUE(mentions(named->info().notes[0], "no row for 2 of 3 samples (the first is cat/2.png)"));
}

TEST(Meta, MistakesAreNamed) {
  Photos photos;
  auto error = [&](const std::string& meta, const std::string& options = "") {
    return error_of([&] { photos.open(meta, options); });
  };
  std::string twice = error("path,hour\ncat/1.png,7\ncat/2.png,7\ncat/1.png,8\n");
  EXPECT_TRUE(mentions(twice, "'cat/1.png' twice"));
  EXPECT_TRUE(mentions(twice, "line 2"));
  EXPECT_TRUE(mentions(twice, "line 4"));
  std::string none = error("path,hour\n17,7\n18,8\n");
  EXPECT_TRUE(mentions(none, "it has '17', the data has 'cat/1.png'"));
  EXPECT_TRUE(mentions(error("path\ncat/1.png\n"), "no columns beside"));
  EXPECT_TRUE(mentions(error("path,hour\ncat/1.png,7\n", ",meta_groups=hours"), "did you mean hour"));
  EXPECT_TRUE(mentions(error("path,hour\ncat/1.png,7\n", ",meta_id=file"), "file"));
  EXPECT_TRUE(mentions(error_of([&] { open("glyphs,meta_id=path"); }), "needs meta=FILE.csv"));
  photos.folder.write("pics/dog/1.png", encode_png(1, 1, 1, {7}));
  EXPECT_TRUE(mentions(error("path,hour\n1.png,7\n"), "matches two samples, cat/1.png and dog/1.png"));
}

TEST(Meta, MissingGroupsOfATable) {
  TemporaryFolder folder;
  auto data = open("csv:" + folder.write("p.csv", "age,sex\n1,f\n2,?\n3,\n") + ",groups=sex");
  EXPECT_EQ(data->groups(0), (Words{"f"}));
  EXPECT_EQ(data->groups(1), (Words{""}));
  EXPECT_EQ(data->groups(2), (Words{""}));
  ASSERT_EQ(data->info().notes.size(), 1u);
  EXPECT_TRUE(mentions(data->info().notes[0], "rows without a value in the group column sex: 2 of 3"));
}

}  // namespace
}  // namespace netmend::dataset
