// Sentences into words, words into ids.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "dataset/bytes.h"

namespace netmend::dataset {

/// Words between blanks.
std::vector<std::string> words_of(std::string_view sentence, bool lower_case);

/// The cleaning that goes with sentence networks since Kim 2014 (arXiv:1408.5882): only letters, digits and ( ) , ! ? '
/// ` stay, punctuation and endings such as 's and n't become words of their own, all in lower case.
std::string clean_sentence(std::string_view sentence);

class Vocabulary {
 public:
  /// 0 pads, 1 is any unknown word, then the words by how often they occur, those of equal count in the order of
  /// letters.
  explicit Vocabulary(const std::unordered_map<std::string, int64_t>& counts);
  /// A word per line. When [PAD] and [UNK] (or <pad> and <unk>) are among them, ids are line numbers from 0; otherwise
  /// the first line is id 2.
  explicit Vocabulary(const Bytes& file);

  int64_t size() const { return size_; }  ///< all ids are below
  int64_t pad() const { return pad_; }
  int64_t unknown() const { return unknown_; }
  int64_t id(const std::string& word) const {
    auto hit = ids_.find(word);
    return hit == ids_.end() ? unknown_ : hit->second;
  }

 private:
  std::unordered_map<std::string, int64_t> ids_;
  int64_t size_ = 0, pad_ = 0, unknown_ = 1;
};

}  // namespace netmend::dataset
