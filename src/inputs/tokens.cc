// Changes of sentences, token by token: left out, exchanged with a neighbour, replaced by another word of the data.
// `eps` is the share of the tokens, at least one of them. Padding stays padding, and tokens that every sentence has
// (its begin and end) stay where they are.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "inputs/method.h"

namespace netmend::inputs {
namespace {

/// What the words of the data are like, from some of its rows.
struct Words {
  std::set<int64_t> fixed;      ///< ids that (nearly) every row has: markers, not words
  std::vector<int64_t> others;  ///< ids as often as they occur

  Words(const at::Tensor& pool, const dataset::Feature& about) {
    if (!pool.defined()) return;
    std::map<int64_t, int64_t> rows_with;
    for (int64_t row = 0; row < pool.size(0); ++row) {
      const int64_t* ids = pool.data_ptr<int64_t>() + row * pool.size(1);
      std::set<int64_t> own(ids, ids + pool.size(1));
      for (int64_t id : own) ++rows_with[id];
    }
    if (pool.size(0) >= 8)
      for (const auto& [id, count] : rows_with)
        if (id != about.pad && count * 100 >= pool.size(0) * 99) fixed.insert(id);
    for (int64_t i = 0; i < pool.numel(); ++i) {
      const int64_t id = pool.data_ptr<int64_t>()[i];
      if (id != about.pad && id != about.unknown && !fixed.count(id)) others.push_back(id);
    }
  }
};

/// One sentence on its way: ids and which positions count.
struct Sentence {
  std::vector<int64_t> ids;
  std::vector<uint8_t> counts;
  std::vector<int64_t> words;  ///< positions that may change
};

using Change = bool (*)(Sentence& sentence, int64_t position, const Words& words, int64_t pad, Random& random);

Changed change_words(const Network& network, const Originals& originals, const Settings& settings,
                     std::string_view name, Change change) {
  const Subject& subject = network.changed();
  const Words words(settings.pool, subject.about);
  at::Tensor ids = originals.units.clone().contiguous(), mask = mask_of(originals.batch, subject).clone().contiguous();
  const int64_t length = ids.size(1), pad = std::max<int64_t>(subject.about.pad, 0);
  Changed changed;
  for (int64_t row = 0; row < ids.size(0); ++row) {
    int64_t* own = ids.data_ptr<int64_t>() + row * length;
    bool* counts = mask.data_ptr<bool>() + row * length;
    Sentence sentence{{own, own + length}, {counts, counts + length}, {}};
    for (int64_t i = 0; i < length; ++i)
      if (counts[i] && !words.fixed.count(own[i])) sentence.words.push_back(i);
    const auto many = std::max<int64_t>(1, std::llround(settings.eps * double(sentence.words.size())));
    Random random = random_for(settings.seed, name, originals.batch.samples[size_t(row)], settings.attempt);
    std::vector<int64_t> places = sentence.words;
    random.shuffle(places);
    places.resize(size_t(std::min<int64_t>(many, int64_t(places.size()))));
    std::sort(places.rbegin(), places.rend());  // from the end, so that positions before stay what they are
    bool any = false;
    for (int64_t place : places) any = change(sentence, place, words, pad, random) || any;
    changed.made.push_back(any);
    std::copy(sentence.ids.begin(), sentence.ids.end(), own);
    std::copy(sentence.counts.begin(), sentence.counts.end(), counts);
  }
  changed.units = ids, changed.mask = mask;
  return changed;
}

/// The last word is never left out: an empty sentence is no sentence.
bool drop(Sentence& s, int64_t position, const Words&, int64_t pad, Random&) {
  int64_t last = int64_t(s.ids.size()) - 1, left = 0;
  while (last >= 0 && !s.counts[size_t(last)]) --last;
  for (uint8_t counts : s.counts) left += counts;
  if (left <= 1) return false;
  for (int64_t i = position; i < last; ++i) s.ids[size_t(i)] = s.ids[size_t(i) + 1];
  s.ids[size_t(last)] = pad, s.counts[size_t(last)] = 0;
  return true;
}

/// With the next word that may change, else with the one before.
bool swap(Sentence& s, int64_t position, const Words&, int64_t, Random&) {
  auto at = std::find(s.words.begin(), s.words.end(), position);
  auto other = at + 1 != s.words.end() ? at + 1 : at == s.words.begin() ? s.words.end() : at - 1;
  if (other == s.words.end() || s.ids[size_t(*at)] == s.ids[size_t(*other)]) return false;
  std::swap(s.ids[size_t(*at)], s.ids[size_t(*other)]);
  return true;
}

bool replace(Sentence& s, int64_t position, const Words& words, int64_t, Random& random) {
  for (int draw = 0; draw < 50 && !words.others.empty(); ++draw) {
    const int64_t id = words.others[random.below(words.others.size())];
    if (id == s.ids[size_t(position)]) continue;
    s.ids[size_t(position)] = id;
    return true;
  }
  return false;
}

}  // namespace

Changed token_drop(const Network& n, const Originals& o, const Settings& s) {
  return change_words(n, o, s, "token-drop", drop);
}
Changed token_swap(const Network& n, const Originals& o, const Settings& s) {
  return change_words(n, o, s, "token-swap", swap);
}
Changed token_replace(const Network& n, const Originals& o, const Settings& s) {
  return change_words(n, o, s, "token-replace", replace);
}

}  // namespace netmend::inputs
