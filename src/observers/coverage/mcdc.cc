#include "observers/coverage/mcdc.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/random.h"
#include "observers/coverage/materials.h"

namespace netmend::observers {
namespace {

int64_t words_for(int64_t bits) { return (bits + 63) / 64; }

/// Which values are above 0.
void signs(const float* values, int64_t count, uint64_t* words) {
  for (int64_t first = 0; first < count; first += 64) {
    uint64_t word = 0;
    for (int64_t i = 0; i < std::min<int64_t>(64, count - first); ++i) word |= uint64_t(values[first + i] > 0) << i;
    *words++ = word;
  }
}

bool all_numbers(const float* values, int64_t count) {
  float sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += values[i] * 0;
  return sum == 0;
}

}  // namespace

SignTable::SignTable(int64_t lower, int64_t upper)
    : lower_(lower), upper_(upper), lower_words_(words_for(lower)), upper_words_(words_for(upper)), slots_(64) {
  for (int64_t bit = 0; bit < lower; ++bit) keys_.push_back(Random::hash(uint64_t(bit) + 1));
  scratch_.resize(size_t(lower_words_ + upper_words_));
}

uint64_t SignTable::hash(const uint64_t* pattern) const {
  uint64_t sum = 0;
  for (int64_t word = 0; word < lower_words_; ++word)
    for (uint64_t left = pattern[word]; left; left &= left - 1)
      sum ^= keys_[size_t(word * 64 + std::countr_zero(left))];
  return sum;
}

int64_t SignTable::find(const uint64_t* wanted, uint64_t hash, int64_t flipped) const {
  const size_t mask = slots_.size() - 1;
  for (size_t at = hash & mask; slots_[at] > 0; at = (at + 1) & mask) {
    const int64_t entry = slots_[at] - 1;
    if (hashes_[size_t(entry)] != hash) continue;
    const uint64_t* there = pattern(entry);
    bool same = true;
    for (int64_t word = 0; word < lower_words_; ++word)
      same = same &&
             there[word] == (wanted[word] ^ (flipped / 64 == word && flipped >= 0 ? uint64_t(1) << flipped % 64 : 0));
    if (same) return entry;
  }
  return -1;
}

int64_t SignTable::find_or_add(const uint64_t* wanted, uint64_t hash) {
  if (int64_t entry = find(wanted, hash); entry >= 0) return entry;
  if (2 * (hashes_.size() + 1) > slots_.size()) grow();
  const auto entry = int64_t(hashes_.size());
  hashes_.push_back(hash);
  patterns_.insert(patterns_.end(), wanted, wanted + lower_words_);
  seen_.resize(seen_.size() + size_t(2 * upper_words_));
  size_t at = hash & (slots_.size() - 1);
  while (slots_[at] > 0) at = (at + 1) & (slots_.size() - 1);
  slots_[at] = int32_t(entry) + 1;
  return entry;
}

void SignTable::grow() {
  slots_.assign(slots_.size() * 4, 0);
  for (size_t entry = 0; entry < hashes_.size(); ++entry) {
    size_t at = hashes_[entry] & (slots_.size() - 1);
    while (slots_[at] > 0) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = int32_t(entry) + 1;
  }
}

void SignTable::add(const float* lower, const float* upper) {
  if (!all_numbers(lower, lower_) || !all_numbers(upper, upper_)) return;
  signs(lower, lower_, scratch_.data());
  signs(upper, upper_, scratch_.data() + lower_words_);
  uint64_t* to = seen(find_or_add(scratch_.data(), hash(scratch_.data())));
  for (int64_t word = 0; word < upper_words_; ++word) {
    const uint64_t plus = scratch_[size_t(lower_words_ + word)];
    to[word] |= plus;
    to[upper_words_ + word] |= ~plus;
  }
}

void SignTable::merge(const SignTable& later) {
  for (int64_t entry = 0; entry < later.patterns(); ++entry) {
    uint64_t* to = seen(find_or_add(later.pattern(entry), later.hashes_[size_t(entry)]));
    const uint64_t* from = later.seen(entry);
    for (int64_t word = 0; word < 2 * upper_words_; ++word) to[word] |= from[word];
  }
}

std::vector<uint64_t> SignTable::covered() const {
  std::vector<uint64_t> pairs(size_t(lower_ * upper_words_));
  for (int64_t entry = 0; entry < patterns(); ++entry)
    for (int64_t bit = 0; bit < lower_; ++bit) {
      if (pattern(entry)[bit / 64] >> (bit % 64) & 1) continue;  // each two patterns once
      const int64_t other = find(pattern(entry), hashes_[size_t(entry)] ^ keys_[size_t(bit)], bit);
      if (other < 0) continue;
      const uint64_t *here = seen(entry), *there = seen(other);
      for (int64_t word = 0; word < upper_words_; ++word) {
        const uint64_t last = word + 1 == upper_words_ && upper_ % 64 ? (uint64_t(1) << upper_ % 64) - 1 : ~uint64_t(0);
        pairs[size_t(bit * upper_words_ + word)] |=
            last & ((here[word] & there[upper_words_ + word]) | (here[upper_words_ + word] & there[word]));
      }
    }
  return pairs;
}

void SignTable::save(std::ostream& out) const {
  std::vector<int64_t> order(hashes_.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return std::lexicographical_compare(pattern(a), pattern(a) + lower_words_, pattern(b), pattern(b) + lower_words_);
  });
  std::string bytes;
  for (int64_t entry : order) {
    bytes.append(reinterpret_cast<const char*>(pattern(entry)), size_t(lower_words_) * 8);
    bytes.append(reinterpret_cast<const char*>(seen(entry)), size_t(upper_words_) * 16);
  }
  stream::put(out, bytes);
}

void SignTable::load(std::istream& in) {
  const std::string bytes = stream::get_text(in);
  const size_t each = size_t(lower_words_) * 8 + size_t(upper_words_) * 16;
  if (bytes.size() % each != 0) fail("the state file is damaged");
  *this = SignTable(lower_, upper_);
  std::vector<uint64_t> words(each / 8);
  for (size_t at = 0; at < bytes.size(); at += each) {
    std::copy_n(bytes.data() + at, each, reinterpret_cast<char*>(words.data()));
    const uint64_t beyond = lower_ % 64 ? ~((uint64_t(1) << lower_ % 64) - 1) : 0;
    if (words[size_t(lower_words_ - 1)] & beyond) fail("the state file is damaged");
    const int64_t before = patterns(), entry = find_or_add(words.data(), hash(words.data()));
    if (entry != before) fail("the state file is damaged");
    std::copy(words.begin() + lower_words_, words.end(), seen(entry));
  }
}

std::unique_ptr<Tally> Mcdc::fresh() const { return std::make_unique<McdcTally>(space_); }

double Mcdc::bytes(int64_t inputs) const {
  double each = 0;
  for (const auto& [lower, upper] : space_->connections())
    each += 24 + 8 * double(words_for(space_->units(lower))) + 16 * double(words_for(space_->units(upper)));
  return each * double(inputs);
}

Figure Mcdc::figure(const Tally& tally) const {
  const auto& signs = dynamic_cast<const McdcTally&>(tally);
  Figure figure{name(), {}};
  figure.total = 0;
  std::vector<std::vector<uint64_t>> shared;  // DeepImportance's: pairs by number, whatever the layers
  for (size_t l = 0; l < signs.tables.size(); ++l) {
    const auto [lower, upper] = space_->connections()[l];
    Figure::Part part{space_->layers()[lower].name + " → " + space_->layers()[upper].name};
    part.total = double(space_->units(lower)) * double(space_->units(upper));
    const std::vector<uint64_t> pairs = signs.tables[l].covered();
    const auto words = size_t(signs.tables[l].upper_words());
    for (size_t at = 0; at < pairs.size(); ++at) {
      if (published_ == Published::kDeepImportance) {
        shared.resize(std::max(shared.size(), at / words + 1));
        auto& row = shared[at / words];
        row.resize(std::max(row.size(), words));
        part.covered += std::popcount(pairs[at] & ~row[at % words]);
        row[at % words] |= pairs[at];
      } else {
        part.covered += std::popcount(pairs[at]);
      }
    }
    figure.covered += part.covered, figure.total += part.total;
    figure.layers.push_back(std::move(part));
  }
  figure.value = figure.total > 0 ? figure.covered / figure.total : 0;
  if (signs.tables.empty()) figure.notes.push_back("needs two connected layers at least");
  return figure;
}

McdcTally::McdcTally(SpacePtr space) : space_(std::move(space)) {
  for (const auto& [lower, upper] : space_->connections())
    tables.emplace_back(space_->units(lower), space_->units(upper));
}

void McdcTally::add(const UnitBatch& batch) {
  for (int64_t row = 0; row < batch.count(); ++row)
    for (size_t l = 0; l < tables.size(); ++l)
      tables[l].add(batch.input(row) + space_->first(space_->connections()[l].first),
                    batch.input(row) + space_->first(space_->connections()[l].second));
}

void McdcTally::merge(const Tally& later) {
  const auto& other = dynamic_cast<const McdcTally&>(later);
  for (size_t l = 0; l < tables.size(); ++l) tables[l].merge(other.tables[l]);
}

void McdcTally::save(std::ostream& out) const {
  for (const SignTable& table : tables) table.save(out);
}

void McdcTally::load(std::istream& in) {
  for (SignTable& table : tables) table.load(in);
}

CriterionRow mcdc_row() {
  return {.name = "MCDC",
          .full_name = "sign-sign modified condition/decision coverage",
          .asks = "each unit's sign decides signs in a layer that reads it",
          .reference = "Sun, Huang, Kroening: Testing Deep Neural Networks, 2018",
          .also = "MC/DC",
          .needs = {.layers = 2},
          .memory = CriterionRow::Memory::kPerInput,
          .make = [](const CriterionMaterials& m) { return make_criterion<Mcdc>(m.space, m.published); }};
}

}  // namespace netmend::observers
