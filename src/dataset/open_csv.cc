// Specs whose data lies in tables, and the built-in census data.
#include "base/error.h"
#include "base/text.h"
#include "dataset/csv_dataset.h"
#include "dataset/locate.h"
#include "dataset/options.h"
#include "dataset/readers.h"
#include "dataset/spec.h"

namespace netmend::dataset {
namespace {

/// Options that say how columns are fed; given numbers take the place of fitted ones.
EncoderOptions encoder_options(const Spec& spec) {
  EncoderOptions encoder;
  encoder.columns = list_option(spec.options, "columns");
  encoder.categories = list_option(spec.options, "categories");
  for (const std::string& word : list_option(spec.options, "missing")) encoder.missing.push_back(word);
  if (text_option(spec.options, "standardize") == "minmax")
    encoder.scaling = EncoderOptions::kMinMax;
  else if (!yes_option(spec.options, "standardize", true))
    encoder.scaling = EncoderOptions::kGiven;
  Preprocess given = parse_preprocess(spec.options);
  if (!given.layout.empty() || !given.color.empty() || given.resize || given.per_image || !given.shape.empty())
    fail("layout=, color=, per_image=, shape= and resize= are for images, but {} is a table", spec.text);
  if (given.empty()) return encoder;
  encoder.scaling = EncoderOptions::kGiven;
  encoder.scale = given.scale.value_or(1);
  encoder.mean = given.mean;
  encoder.std = given.std;
  return encoder;
}

std::string find_adult(const std::string& part) {
  for (const char* folder_name : {"fairness", "adult"})
    for (const std::string& folder : data_folders(folder_name))
      if (std::string file = file_in(folder, {"adult." + part}); !file.empty()) return file;
  data_missing("adult", fmt::format("adult.{}[.gz]", part));
}

const char* const kAdultColumns =
    "age,workclass,fnlwgt,education,education-num,marital-status,occupation,relationship,race,sex,capital-gain,"
    "capital-loss,hours-per-week,native-country,income\n";

/// The census files have no header, and the test file begins with a remark; under a header of ours both are plain
/// tables.
Table adult_table(const std::vector<std::string>& files) {
  std::string_view columns = kAdultColumns;
  std::vector<BytesPtr> parts;
  for (const std::string& file : files) {
    BytesPtr bytes = open_bytes(file);
    if (parts.empty()) parts.push_back(bytes_of(file, {columns.begin(), columns.end()}));
    parts.push_back(bytes);
  }
  TableFormat format;
  format.comment = '|';
  return Table(joined(parts), format);
}

}  // namespace

std::unique_ptr<Dataset> open_csv(const Spec& spec) {
  TableFormat format = table_format(spec.rest, spec.options);
  CsvDataset::Setup setup{Table(open_bytes(spec.rest), format)};
  setup.files = {spec.rest};
  std::optional<Table> train;
  if (auto given = spec.options.find("train"); given != spec.options.end()) {
    train.emplace(open_bytes(given->second), format);
    setup.train = &*train;
    setup.files.push_back(given->second);
  }
  setup.encoder = encoder_options(spec);
  setup.drop = list_option(spec.options, "drop");
  setup.groups = list_option(spec.options, "groups");
  setup.label = text_option(spec.options, "label");
  setup.id = text_option(spec.options, "id");
  setup.options = spec.options;
  return std::make_unique<CsvDataset>(std::move(setup));
}

std::unique_ptr<Dataset> open_adult(const Spec& spec) {
  std::string train_file = find_adult("data"), test_file;
  if (spec.rest != "train") test_file = find_adult("test");
  Table train = adult_table({train_file});
  std::vector<std::string> files = {train_file};
  if (spec.rest == "all") files.push_back(test_file);
  if (spec.rest.empty() || spec.rest == "test") files = {test_file};
  CsvDataset::Setup setup{adult_table(files)};
  setup.train = &train;
  setup.files = files;
  if (files.front() != train_file) setup.files.push_back(train_file);
  setup.encoder = encoder_options(spec);
  setup.drop = list_option(spec.options, "drop");
  setup.groups = split_list(text_option(spec.options, "groups", "sex:race"));
  if (setup.encoder.columns.empty())  // here people are judged by all that is known of them, so that it can be seen
    for (const std::string& column : train.columns())
      if (column != "income" && std::find(setup.drop.begin(), setup.drop.end(), column) == setup.drop.end())
        setup.encoder.columns.push_back(column);
  setup.label = "income";
  setup.strip = std::string(1, '.');  // as the labels of the test file end
  setup.options = spec.options;
  return std::make_unique<CsvDataset>(std::move(setup));
}

}  // namespace netmend::dataset
