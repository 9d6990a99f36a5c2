#include "dataset/cifar.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"

namespace netmend::dataset {
namespace {

constexpr int64_t kPixels = 3 * 32 * 32, kRecord = 1 + kPixels;

bool belongs(const std::string& name, const std::string& split) {
  if (!name.ends_with(".bin") && !name.ends_with(".bin.gz")) return false;
  bool test = name.find("test") != name.npos;
  bool train = name.find("train") != name.npos || name.starts_with("data_batch_");
  return (train && split != "test") || (test && split != "train");
}

}  // namespace

CifarArrays read_cifar(const std::vector<BytesPtr>& files) {
  int64_t size = 0;
  for (const BytesPtr& file : files) {
    if (file->size() % kRecord != 0 || file->size() == 0)
      fail("{} is not a CIFAR-10 binary file: expected records of {} bytes, the file has {} bytes", file->name(),
           kRecord, file->size());
    size += file->size();
  }
  BytesPtr all = joined(files);
  const int64_t count = size / kRecord;
  CifarArrays arrays;
  arrays.images = {all, 1, Element::kU8, false, {count, 3, 32, 32}, kRecord};
  arrays.labels = {all, 0, Element::kU8, false, {count}, kRecord};
  return arrays;
}

std::vector<std::string> cifar_files(const std::string& folder, const std::string& split) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
    if (belongs(entry.path().filename().string(), split)) files.push_back(entry.path().string());
  // A folder with the whole set beside a part of it: the whole set counts.
  for (const char* standard : {"data_batch_", "test_batch"}) {
    bool test = std::string(standard) == "test_batch";
    auto name = [](const std::string& path) { return fs::path(path).filename().string(); };
    if (std::none_of(files.begin(), files.end(), [&](auto& path) { return name(path).starts_with(standard); }))
      continue;
    std::erase_if(files, [&](const std::string& path) {
      return (name(path).find("test") != std::string::npos) == test && !name(path).starts_with(standard);
    });
  }
  // Training records come first; within a part the numbers in the names give the order.
  std::sort(files.begin(), files.end(), [](const std::string& a, const std::string& b) {
    bool late_a = fs::path(a).filename().string().find("test") != std::string::npos;
    bool late_b = fs::path(b).filename().string().find("test") != std::string::npos;
    return std::tie(late_a, a) < std::tie(late_b, b);
  });
  return files;
}

}  // namespace netmend::dataset
