// Inputs on their way to be changed, and what became of them.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "base/random.h"
#include "dataset/dataset.h"

namespace netmend::inputs {

/// What a data set's inputs are to a method.
enum class Kind {
  kImage = 1,    ///< rows, columns, channels
  kNumbers = 2,  ///< real numbers without a picture
  kTable = 4,    ///< columns that have names, words as one column per category
  kTokens = 8,   ///< ids of words
};
std::string kind_words(Kind kind);

/// The feature that methods change: the first image, else real numbers, else ids that are no mask.
struct Subject {
  size_t feature = 0;
  Kind kind = Kind::kImage;
  dataset::Feature about;
  std::vector<size_t> masks;  ///< features that are masks
};
Subject find_subject(const dataset::Info& info);

/// A batch of them. `units` are quantities as parts of their valid range, 0 … 1; ids stay ids.
struct Originals {
  dataset::Batch batch;    ///< as read
  at::Tensor units;        ///< of the feature that is changed
  at::Tensor predictions;  ///< int64: what the network says
  int64_t count() const { return batch.count(); }
  /// Some of them, by position; `index` is int64.
  Originals rows(const at::Tensor& index) const;
};

/// What a method made of a batch, in the same order.
struct Changed {
  at::Tensor units;        ///< like Originals::units
  at::Tensor mask = {};    ///< positions that count, where a method changed them
  std::vector<bool> made;  ///< false where no valid change was found, and the input is as it was; empty: all made
};

/// Which positions of the changed ids count, bool inputs × length: what the data says, else those that are no padding.
at::Tensor mask_of(const dataset::Batch& batch, const Subject& changed);
/// Puts another mask in its place, also where it is an input of its own.
void set_mask(dataset::Batch& batch, const Subject& changed, const at::Tensor& mask);

/// Numbers that depend on seed, method, input and try alone.
Random random_for(uint64_t seed, std::string_view method, int64_t sample, int64_t attempt);

}  // namespace netmend::inputs
