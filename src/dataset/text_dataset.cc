// Sentences as rows of ids: text:FILE with a label column or a sentence per line, and the built-in movie reviews.
#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "dataset/csv_dataset.h"
#include "dataset/labels.h"
#include "dataset/locate.h"
#include "dataset/options.h"
#include "dataset/readers.h"
#include "dataset/words.h"

namespace netmend::dataset {
namespace {

constexpr int64_t kLongest = 512;  ///< what sentences are cut to unless told otherwise

struct Sentences {
  Table table;
  int64_t column = 0;          ///< of the text
  std::vector<int64_t> order;  ///< rows of the samples; empty: all
  bool lower_case = true, clean = false;

  int64_t size() const { return order.empty() ? table.rows() : int64_t(order.size()); }
  int64_t row(int64_t sample) const { return order.empty() ? sample : order.at(size_t(sample)); }
  std::vector<std::string> words(const std::string& text) const {
    return clean ? words_of(clean_sentence(text), false) : words_of(text, lower_case);
  }
};

/// What training sentences tell: their words, and how long the longest is.
struct Fitted {
  std::unordered_map<std::string, int64_t> counts;
  int64_t longest = 1;

  explicit Fitted(const Sentences& train) {
    std::vector<int64_t> rows = train.order;
    if (rows.empty()) {
      rows.resize(size_t(train.table.rows()));
      std::iota(rows.begin(), rows.end(), 0);
    }
    train.table.read(rows, [&](int64_t, const Row& row) {
      std::vector<std::string> words = train.words(row[size_t(train.column)]);
      longest = std::max(longest, int64_t(words.size()));
      for (std::string& word : words) ++counts[std::move(word)];
    });
  }
};

class TextDataset : public Dataset {
 public:
  struct Setup {
    Sentences sentences;
    Vocabulary vocabulary;
    int64_t length = 0;
    std::optional<LabelColumn> label;
    std::vector<std::string> classes;  ///< when there is no label column: rows from `second_class` on are of the second
    int64_t second_class = 0;
    std::string id;
    std::vector<std::string> files;
  };

  explicit TextDataset(Setup setup) : setup_(std::move(setup)) {
    const Table& table = setup_.sentences.table;
    info_.size = setup_.sentences.size();
    Feature feature{"ids", {setup_.length}, at::kLong};
    feature.vocabulary = setup_.vocabulary.size();
    feature.pad = setup_.vocabulary.pad();
    feature.unknown = setup_.vocabulary.unknown();
    info_.features = {feature};
    info_.files = setup_.files;
    if (!setup_.id.empty()) id_position_ = table.position(setup_.id);
    info_.classes = setup_.classes;
    if (!setup_.classes.empty()) info_.labels = LabelKind::kClass;
    if (!setup_.label) return;
    label_position_ = table.position(setup_.label->name());
    info_.labels = setup_.label->kind();
    info_.classes = setup_.label->classes();
    table.for_all(
        [&](int64_t row, const Row& words) { setup_.label->value(table, row, words[size_t(label_position_)]); });
  }

  Batch read(std::span<const int64_t> samples) const override {
    const int64_t count = int64_t(samples.size()), length = setup_.length;
    Batch batch;
    at::Tensor ids = at::full({count, length}, setup_.vocabulary.pad(), at::kLong);
    at::Tensor mask = at::zeros({count, length}, at::kBool);
    if (info_.labels != LabelKind::kNone)
      batch.labels = at::empty({count}, info_.labels == LabelKind::kNumber ? at::kFloat : at::kLong);
    std::vector<int64_t> rows;
    for (int64_t sample : samples) rows.push_back(setup_.sentences.row(sample));
    setup_.sentences.table.read(rows, [&](int64_t position, const Row& row) {
      std::vector<std::string> words = setup_.sentences.words(row[size_t(setup_.sentences.column)]);
      const int64_t used = std::min(length, int64_t(words.size()));
      for (int64_t i = 0; i < used; ++i)
        ids.data_ptr<int64_t>()[position * length + i] = setup_.vocabulary.id(words[size_t(i)]);
      std::fill_n(mask.data_ptr<bool>() + position * length, used, true);
      if (info_.labels == LabelKind::kNumber)
        batch.labels.data_ptr<float>()[position] = float(label(rows[size_t(position)], row));
      else if (info_.labels == LabelKind::kClass)
        batch.labels.data_ptr<int64_t>()[position] = int64_t(label(rows[size_t(position)], row));
    });
    batch.inputs = {ids};
    batch.masks = {mask};
    batch.samples.assign(samples.begin(), samples.end());
    return batch;
  }

  std::string id(int64_t sample) const override {
    if (id_position_ < 0) return std::to_string(sample);
    return setup_.sentences.table.row(setup_.sentences.row(sample))[size_t(id_position_)];
  }

  Display display(int64_t sample) const override {
    Row row = setup_.sentences.table.row(setup_.sentences.row(sample));
    return {Display::kText, 0, 0, 0, {}, std::string(trim(row[size_t(setup_.sentences.column)]))};
  }

 private:
  double label(int64_t number, const Row& row) const {
    if (!setup_.label) return number >= setup_.second_class;
    return setup_.label->value(setup_.sentences.table, number, row[size_t(label_position_)]);
  }

  Setup setup_;
  int64_t label_position_ = -1, id_position_ = -1;
};

void refuse_preprocessing(const Spec& spec) {
  for (const auto& [key, value] : spec.options)
    if (std::find(preprocess_keys().begin(), preprocess_keys().end(), key) != preprocess_keys().end())
      fail("{}= does not apply to {}: words cannot be scaled, shifted or resized", key, spec.text);
}

/// Without a label column a file is a sentence per line, unless it says which column is the text.
Sentences open_sentences(const Spec& spec, const std::string& path) {
  const bool lines = !spec.options.count("label") && !spec.options.count("text");
  TableFormat format = table_format(path, spec.options);
  if (lines) format = {0, false, true, 0, false};
  Sentences sentences{Table(open_bytes(path), format)};
  const std::string label = text_option(spec.options, "label");
  if (!lines) {
    std::string column = text_option(spec.options, "text");
    for (const char* usual : {"text", "sentence", "review", "content"})
      if (column.empty() && sentences.table.find(usual) >= 0) column = usual;
    if (column.empty() && sentences.table.columns().size() == 2)
      column = sentences.table.columns()[sentences.table.columns()[0] == label ? 1 : 0];
    if (column.empty())
      throw InputError(fmt::format("{} has several columns: {}", path, join(sentences.table.columns(), ", ")),
                       "Say which one is the text: text=COLUMN.");
    sentences.column = sentences.table.position(column);
  }
  sentences.lower_case = yes_option(spec.options, "lower", true);
  sentences.clean = yes_option(spec.options, "clean", false);
  return sentences;
}

}  // namespace

std::unique_ptr<Dataset> open_text(const Spec& spec) {
  refuse_preprocessing(spec);
  Sentences sentences = open_sentences(spec, spec.rest);
  std::vector<std::string> files = {spec.rest};
  std::optional<Sentences> train;
  const std::string train_file = text_option(spec.options, "train"), vocab_file = text_option(spec.options, "vocab");
  if (!train_file.empty()) train = open_sentences(spec, train_file), files.push_back(train_file);
  const Sentences& source = train ? *train : sentences;
  std::optional<Fitted> fitted;
  if (vocab_file.empty() || !spec.options.count("length")) fitted.emplace(source);
  Vocabulary vocabulary = vocab_file.empty() ? Vocabulary(fitted->counts) : Vocabulary(*open_bytes(vocab_file));
  if (!vocab_file.empty()) files.push_back(vocab_file);
  const int64_t length =
      int_option(spec.options, "length", fitted ? std::min(fitted->longest, kLongest) : 1, 1, 1 << 20);
  std::optional<LabelColumn> label;
  if (spec.options.count("label")) label.emplace(source.table, spec.options.at("label"), spec.options);
  return std::make_unique<TextDataset>(TextDataset::Setup{std::move(sentences),
                                                          std::move(vocabulary),
                                                          length,
                                                          std::move(label),
                                                          {},
                                                          0,
                                                          text_option(spec.options, "id"),
                                                          files});
}

namespace {

/// A tenth of each class is for testing; which sentences, and their order, depend on nothing but their number.
std::vector<int64_t> review_order(int64_t negative, int64_t total, const std::string& split) {
  std::vector<int64_t> chosen;
  for (int64_t part = 0; part < 2; ++part) {
    std::vector<int64_t> rows(size_t(part ? total - negative : negative));
    std::iota(rows.begin(), rows.end(), part ? negative : 0);
    Random(42, uint64_t(part)).shuffle(rows);
    const auto cut = rows.begin() + int64_t(rows.size() / 10);
    if (split != "train") chosen.insert(chosen.end(), rows.begin(), cut);
    if (split != "test") chosen.insert(chosen.end(), cut, rows.end());
  }
  Random(42, 2).shuffle(chosen);
  return chosen;
}

}  // namespace

std::unique_ptr<Dataset> open_rt_polarity(const Spec& spec) {
  refuse_preprocessing(spec);
  std::string negative_file, positive_file;
  for (const std::string& folder : data_folders("rt-polarity")) {
    if (!negative_file.empty() && !positive_file.empty()) break;
    negative_file = file_in(folder, {"rt-polarity.neg", "rt-polaritydata/rt-polarity.neg"});
    positive_file = file_in(folder, {"rt-polarity.pos", "rt-polaritydata/rt-polarity.pos"});
  }
  if (negative_file.empty() || positive_file.empty())
    data_missing("rt-polarity", "rt-polarity.neg and rt-polarity.pos (sentence polarity data set 1.0)");
  const TableFormat lines{0, false, true, 0, false};
  BytesPtr negative = open_bytes(negative_file), positive = open_bytes(positive_file);
  const int64_t first = Table(negative, lines).rows();
  Sentences sentences{Table(joined({negative, positive}), lines)};
  sentences.clean = true;
  const int64_t total = sentences.table.rows();
  sentences.order = review_order(first, total, "train");
  Fitted fitted(sentences);
  sentences.order = review_order(first, total, spec.rest.empty() ? "test" : spec.rest);
  std::vector<std::string> classes = class_names(spec.options, 2, {"negative", "positive"});
  const int64_t length = int_option(spec.options, "length", 56, 1, 1 << 20);
  return std::make_unique<TextDataset>(TextDataset::Setup{std::move(sentences),
                                                          Vocabulary(fitted.counts),
                                                          length,
                                                          std::nullopt,
                                                          classes,
                                                          first,
                                                          "",
                                                          {negative_file, positive_file}});
}

}  // namespace netmend::dataset
