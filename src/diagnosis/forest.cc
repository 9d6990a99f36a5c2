#include "diagnosis/forest.h"

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/python_package.h"

namespace netmend::diagnosis {
namespace {

constexpr const char* kForestFormat = "netmend.forest/1";
constexpr int64_t kMostTrees = 1000, kMostNodes = 100'000;

}  // namespace

Forest::Forest(const JsonView& file) {
  if (file.at("format").text() != kForestFormat) file.refuse("it is not a forest that this netmend reads");
  classes_ = file.at("classes").texts(1000), features_ = file.at("features").texts(1000);
  if (classes_.empty() || features_.empty()) file.refuse("it names no classes or no features");
  const JsonView trees = file.at("trees");
  const size_t count = trees.size(1, kMostTrees);
  for (size_t t = 0; t < count; ++t) {
    const JsonView tree = trees.at(t);
    const size_t nodes = tree.size(1, kMostNodes);
    std::vector<Node> own(nodes);
    for (size_t n = 0; n < nodes; ++n) {
      const JsonView row = tree.at(n);
      const size_t width = row.size(1, 3000);
      Node& node = own[n];
      node.feature = int32_t(row.at(0).whole(-1, int64_t(features_.size()) - 1));
      if (node.feature < 0) {
        if (width % 2 == 0) row.refuse("a leaf has pairs of class and share");
        for (size_t i = 1; i + 1 < width; i += 2)
          node.votes.emplace_back(int32_t(row.at(i).whole(0, int64_t(classes_.size()) - 1)), row.at(i + 1).number());
        continue;
      }
      if (width != 4) row.refuse("a node has a feature, a threshold and two others that follow it");
      node.threshold = row.at(1).number();
      // Only to later nodes: every way ends.
      node.left = int32_t(row.at(2).whole(int64_t(n) + 1, int64_t(nodes) - 1));
      node.right = int32_t(row.at(3).whole(int64_t(n) + 1, int64_t(nodes) - 1));
    }
    trees_.push_back(std::move(own));
  }
}

std::vector<std::pair<std::string, double>> Forest::vote(
    const std::vector<std::pair<std::string, double>>& features) const {
  std::vector<double> values;
  for (const std::string& name : features_) {
    const auto found =
        std::find_if(features.begin(), features.end(), [&](const auto& one) { return one.first == name; });
    if (found == features.end())
      throw InputError(fmt::format("the forest needs the feature `{}`, which this netmend does not measure", name),
                       "Train it again: python3 -m netmend.study forest.");
    values.push_back(found->second);
  }
  std::vector<double> shares(classes_.size());
  for (const std::vector<Node>& tree : trees_) {
    size_t at = 0;
    while (tree[at].feature >= 0)
      at = size_t(values[size_t(tree[at].feature)] <= tree[at].threshold ? tree[at].left : tree[at].right);
    for (const auto& [one, share] : tree[at].votes) shares[size_t(one)] += share / double(trees_.size());
  }
  std::vector<std::pair<std::string, double>> all;
  for (size_t i = 0; i < classes_.size(); ++i) all.emplace_back(classes_[i], shares[i]);
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return all;
}

const Forest* shipped_forest() {
  static const std::unique_ptr<Forest> forest = []() -> std::unique_ptr<Forest> {
    try {
      const std::string path = python_package_folder() + "/netmend/doctor_forest.json";
      std::error_code error;
      if (!std::filesystem::exists(path, error)) return nullptr;
      const JsonDocument document = read_json(path, {.bytes = 4 << 20, .values = 500'000, .depth = 8});
      return std::make_unique<Forest>(document.top());
    } catch (const InputError&) {
      return nullptr;
    }
  }();
  return forest.get();
}

}  // namespace netmend::diagnosis
