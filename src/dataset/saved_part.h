// One part of a saved data set, opened: its arrays checked against data.json. Any thread may read.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "dataset/npz.h"
#include "dataset/saved_index.h"

namespace netmend::dataset {

/// Words that lie one after the other, with where each ends.
class PackedWords {
 public:
  /// Members NAME.bytes and NAME.ends with `count` words. Throws InputError when they do not fit each other.
  PackedWords(const Npz& file, const std::string& name, int64_t count);
  std::string word(int64_t number) const;

 private:
  Array bytes_;
  std::vector<int64_t> ends_;
};

class OpenPart {
 public:
  /// `index` must outlive it. Does not look at the checksum.
  OpenPart(const SavedIndex& index, const SavedPart& part);

  /// Samples × shape, or all rows of all samples where lengths differ.
  const Array& input(size_t number) const { return inputs_[number]; }
  /// Where the rows of each sample end, for inputs whose length differs; else empty.
  const std::vector<int64_t>& ends(size_t number) const { return ends_[number]; }
  const std::optional<Array>& labels() const { return labels_; }
  int64_t samples() const { return part_.samples; }
  const std::string& path() const { return part_.path; }

  /// Empty when the part has no names: they are the positions.
  std::string id(int64_t sample) const;
  std::vector<std::string> groups(int64_t sample) const;
  std::string display(int64_t sample) const;  ///< a PNG file or a text
  int64_t unpacked_bytes() const { return file_.unpacked_bytes(); }
  bool has_ids() const { return file_.has("id.bytes"); }

 private:
  void open_input(const SavedInput& input);
  void open_labels();
  const PackedWords& words(std::optional<PackedWords>& place, const std::string& name) const;

  const SavedIndex& index_;
  const SavedPart& part_;
  Npz file_;
  std::vector<Array> inputs_;
  std::vector<std::vector<int64_t>> ends_;
  std::optional<Array> labels_;
  mutable std::mutex lock_;  ///< for the words, which few ask for and which are unpacked when somebody does
  mutable std::optional<PackedWords> ids_, displays_;
  mutable std::vector<std::optional<PackedWords>> groups_;
};

/// The lengths in member `length.NAME`. Throws InputError when there are not `count` or one is impossible.
std::vector<int64_t> read_lengths(const Npz& file, const std::string& input, int64_t count);
/// Reads the whole file. Throws InputError when its CRC32 is not the one that was written.
void check_part(const SavedPart& part);

}  // namespace netmend::dataset
