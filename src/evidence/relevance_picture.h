// Relevance as people see it: an input beside its heat map and the two laid over each other; words with numbers.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "dataset/dataset.h"
#include "dataset/image_file.h"
#include "evidence/explanation.h"

namespace netmend::evidence {

/// `relevance`: rows × columns, the channels added up. Red is relevance for the prediction, blue against it, white is
/// 0; the scale goes as far as the largest value and is written below. `caption` stands above.
dataset::Image relevance_picture(const dataset::Display& input, const at::Tensor& relevance,
                                 const std::string& caption);

/// An image feature's relevance as rows × columns.
at::Tensor relevance_plane(const dataset::Feature& feature, const at::Tensor& relevance);

/// Tokens of a text with their words, where the text has as many words as the input has tokens, else with their ids.
/// `ids` and `relevance` are of one input; padding is left out.
std::vector<NamedRelevance> token_relevance(const dataset::Feature& feature, const dataset::Display& text,
                                            const at::Tensor& ids, const at::Tensor& mask, const at::Tensor& relevance);
/// Columns of a table, the most relevant first.
std::vector<NamedRelevance> column_relevance(const dataset::Feature& feature, const at::Tensor& relevance);

}  // namespace netmend::evidence
