#include "dataset/words.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/text.h"

namespace netmend::dataset {

std::vector<std::string> words_of(std::string_view sentence, bool lower_case) {
  std::vector<std::string> words;
  const char* blanks = " \t\r\n\f\v";
  for (size_t begin = sentence.find_first_not_of(blanks); begin != sentence.npos;) {
    size_t end = std::min(sentence.find_first_of(blanks, begin), sentence.size());
    std::string_view word = sentence.substr(begin, end - begin);
    words.push_back(lower_case ? lower(word) : std::string(word));
    begin = sentence.find_first_not_of(blanks, end);
  }
  return words;
}

std::string clean_sentence(std::string_view sentence) {
  std::string kept;
  for (char c : sentence) {
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    kept += letter || (c && std::strchr("(),!?'`", c)) ? c : ' ';
  }
  std::string out;
  for (size_t at = 0; at < kept.size();) {
    size_t length = 0;
    for (std::string_view ending : {"'s", "'ve", "n't", "'re", "'d", "'ll"})
      if (std::string_view(kept).substr(at).starts_with(ending)) length = std::max(length, ending.size());
    if (length) {
      out += ' ';
      out.append(kept, at, length);
      at += length;
    } else if (std::strchr(",!()?", kept[at])) {
      out += {' ', kept[at++], ' '};
    } else {
      out += kept[at++];
    }
  }
  return join(words_of(out, true), " ");
}

Vocabulary::Vocabulary(const std::unordered_map<std::string, int64_t>& counts) {
  std::vector<std::pair<int64_t, std::string>> order;
  for (const auto& [word, count] : counts) order.emplace_back(-count, word);
  std::sort(order.begin(), order.end());
  size_ = 2;
  for (auto& [count, word] : order) ids_.emplace(std::move(word), size_++);
}

Vocabulary::Vocabulary(const Bytes& file) {
  if (file.size() > int64_t(256) << 20) fail("{} is too large for a vocabulary", file.name());
  std::string text(size_t(file.size()), '\0');
  file.read(0, file.size(), reinterpret_cast<uint8_t*>(text.data()));
  const char* const expected = "A vocabulary has one word per line; the number of the line is the word's id.";
  if (text.find('\0') != std::string::npos || utf8(text) != text)
    throw InputError(fmt::format("{} is not text in UTF-8", file.name()), expected);
  if (const size_t first = text.find_first_not_of(" \t\r\n"); first != std::string::npos)
    if (text.substr(first, 2) == "{\"" || text.substr(first, 2) == "[\"" || text.substr(first, 2) == "{\n" ||
        text.substr(first, 2) == "[\n" || text.substr(first, 2) == "[[")
      throw InputError(fmt::format("{} is JSON, not a list of words", file.name()), expected);
  std::vector<std::string> lines = split(text, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  int64_t pad = -1, unknown = -1;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].ends_with('\r')) lines[i].pop_back();
    std::string word = lower(lines[i]);
    if (word == "[pad]" || word == "<pad>") pad = int64_t(i);
    if (word == "[unk]" || word == "<unk>") unknown = int64_t(i);
  }
  if (lines.empty()) fail("{} holds no words", file.name());
  if ((pad < 0) != (unknown < 0))
    fail("{} has an entry for {} but none for {}", file.name(), pad < 0 ? "unknown words" : "padding",
         pad < 0 ? "padding ([PAD] or <pad>)" : "unknown words ([UNK] or <unk>)");
  int64_t first = 2;
  if (pad >= 0) first = 0, pad_ = pad, unknown_ = unknown;
  for (size_t i = 0; i < lines.size(); ++i) ids_.emplace(std::move(lines[i]), first + int64_t(i));
  size_ = first + int64_t(lines.size());
}

}  // namespace netmend::dataset
