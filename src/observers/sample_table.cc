#include "observers/sample_table.h"

#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/npy.h"
#include "dataset/dataset.h"

namespace netmend::observers {

namespace {

std::string answer_text(double value, const PredictionSettings& settings, bool label) {
  if (std::isnan(value)) return "";
  bool named = settings.by_class() || (settings.task == Task::kNone && !label && settings.outputs > 1);
  if (named && value >= 0 && value < double(settings.classes.size())) return settings.classes[size_t(value)];
  return fmt::format("{:.9g}", value);
}

}  // namespace

SampleTable::SampleTable() : file_(std::tmpfile(), &std::fclose) {
  if (!file_) fail("cannot make a temporary file: {}", std::strerror(errno));
}

void SampleTable::append(const std::vector<SampleRow>& rows) {
  if (std::fwrite(rows.data(), sizeof(SampleRow), rows.size(), file_.get()) != rows.size())
    fail("cannot write a temporary file: {}", std::strerror(errno));
  count_ += int64_t(rows.size());
}

void SampleTable::each(const std::function<void(const SampleRow&)>& visit) const {
  std::rewind(file_.get());
  SampleRow row;
  for (int64_t i = 0; i < count_; ++i) {
    if (std::fread(&row, sizeof row, 1, file_.get()) != 1)
      fail("cannot read a temporary file: {}", std::strerror(errno));
    visit(row);
  }
  std::fseek(file_.get(), 0, SEEK_END);
}

void SampleTable::write_csv(const std::string& path, const PredictionSettings& settings,
                            const dataset::Dataset& data) const {
  netmend::write_csv(path, "sample,id,label,predicted,correct,confidence,loss", [&](CsvWriter& out) {
    each([&](const SampleRow& row) {
      out.row(row.sample, data.id(row.sample), answer_text(row.label, settings, true),
              answer_text(row.predicted, settings, false),
              row.right == SampleRow::kNotJudged ? ""
              : row.right                        ? "1"
                                                 : "0",
              Digits{row.confidence, 6, true}, Digits{row.loss, 6, true});
    });
  });
}

void SampleTable::write_npz(const std::string& path, const PredictionSettings& settings) const {
  struct Column {
    const char* name;
    const char* type;
    std::function<void(std::string&, const SampleRow&)> add;
  };
  auto number = [](auto value, std::string& out) { out.append(reinterpret_cast<const char*>(&value), sizeof value); };
  bool classes = settings.by_class();
  auto answer = [&](double value, std::string& out) {
    classes ? number(std::isnan(value) ? int64_t(-1) : int64_t(value), out) : number(value, out);
  };
  const char* answer_type = classes ? "<i8" : "<f8";
  Column columns[] = {
      {"sample", "<i8", [&](std::string& out, const SampleRow& row) { number(row.sample, out); }},
      {"label", answer_type, [&](std::string& out, const SampleRow& row) { answer(row.label, out); }},
      {"predicted", answer_type, [&](std::string& out, const SampleRow& row) { answer(row.predicted, out); }},
      {"confidence", "<f4", [&](std::string& out, const SampleRow& row) { number(row.confidence, out); }},
      {"loss", "<f4", [&](std::string& out, const SampleRow& row) { number(row.loss, out); }},
  };
  write_file(path, [&](std::ostream& out) {
    ZipWriter zip(out);
    for (const Column& column : columns) {
      std::string content = npy_header(column.type, std::vector<int64_t>{count_});
      each([&](const SampleRow& row) { column.add(content, row); });
      zip.add(std::string(column.name) + ".npy", content);
    }
    zip.finish();
  });
}

}  // namespace netmend::observers
