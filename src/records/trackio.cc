#include "records/trackio.h"

#include <sqlite3.h>

#include <filesystem>
#include <memory>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "records/tensorboard.h"

namespace netmend::records {
namespace {

constexpr int64_t kMostRows = 1'000'000;
constexpr int kLongestRow = 1 << 20;
constexpr std::string_view kMagic = "SQLite format 3";

struct Close {
  void operator()(sqlite3* file) const { sqlite3_close(file); }
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};

std::unique_ptr<sqlite3_stmt, Close> prepare(sqlite3* file, const std::string& path, const char* words) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(file, words, -1, &statement, nullptr) != SQLITE_OK)
    throw InputError(fmt::format("{} is a database, but not one of trackio: {}", path, sqlite3_errmsg(file)),
                     "trackio keeps one per project: <project>.db in its cache folder.");
  return std::unique_ptr<sqlite3_stmt, Close>(statement);
}

std::string text_of(sqlite3_stmt* statement, int column) {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
  return bytes ? std::string(bytes, size_t(sqlite3_column_bytes(statement, column))) : "";
}

/// NaN is a word in the database.
double value_of(const nlohmann::json& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return NAN;
  const std::string word = lower(value.get<std::string>());
  return word.find("-inf") == 0 ? -INFINITY : word.find("inf") == 0 ? INFINITY : NAN;
}

}  // namespace

bool is_sqlite(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  const InputFile file(path);
  char begin[kMagic.size()];
  return file.read(0, int64_t(kMagic.size()), begin) == int64_t(kMagic.size()) &&
         std::string_view(begin, kMagic.size()) == kMagic;
}

Record read_trackio(const std::string& path) {
  const InputFile readable(path);  // says what is wrong with it
  sqlite3* opened = nullptr;
  const int status = sqlite3_open_v2(path.c_str(), &opened, SQLITE_OPEN_READONLY, nullptr);
  const std::unique_ptr<sqlite3, Close> file(opened);
  if (status != SQLITE_OK) fail("{} cannot be read: {}", path, opened ? sqlite3_errmsg(opened) : "no memory");
  sqlite3_limit(file.get(), SQLITE_LIMIT_LENGTH, kLongestRow);
  // A stranger's database: its views and triggers call nothing.
  sqlite3_db_config(file.get(), SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(file.get(), SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  Record record;
  record.path = path;
  std::string last;
  std::set<std::string> runs;
  const auto names = prepare(file.get(), path, "SELECT run_name, MAX(id) FROM metrics GROUP BY run_name ORDER BY 2");
  while (sqlite3_step(names.get()) == SQLITE_ROW && runs.size() < 10'000) runs.insert(last = text_of(names.get(), 0));
  if (runs.empty()) fail("{} holds no run of trackio", path);
  const auto rows = prepare(file.get(), path, "SELECT step, metrics FROM metrics WHERE run_name = ? ORDER BY step, id");
  sqlite3_bind_text(rows.get(), 1, last.c_str(), -1, SQLITE_TRANSIENT);
  int64_t damaged = 0, count = 0;
  bool has_loss = false;
  int state = SQLITE_ROW;
  while (++count <= kMostRows && (state = sqlite3_step(rows.get())) == SQLITE_ROW) {
    const nlohmann::json metrics =
        json_or_null(text_of(rows.get(), 1), {.bytes = kLongestRow, .values = 10'000, .depth = 8});
    if (!metrics.is_object()) {
      ++damaged;
      continue;
    }
    Epoch epoch;
    epoch.step = sqlite3_column_int64(rows.get(), 0);
    for (const auto& [name, value] : metrics.items()) {
      if (!value.is_number() && !value.is_string()) continue;
      if (lower(name).find("learning_rate") != std::string::npos || lower(name) == "lr") epoch.rate = value_of(value);
      const std::string usual = scalar_name(name, false);
      if (!usual.empty() && !epoch.metrics.count(usual)) epoch.metrics[usual] = value_of(value);
      has_loss = has_loss || usual == "loss" || usual == "val_loss";
    }
    if (epoch.metrics.empty()) continue;
    // What was logged for one step in several calls belongs together.
    if (!record.epochs.empty() && record.epochs.back().step == epoch.step) {
      record.epochs.back().metrics.insert(epoch.metrics.begin(), epoch.metrics.end());
      continue;
    }
    epoch.epoch = int64_t(record.epochs.size()) + 1;
    record.epochs.push_back(std::move(epoch));
  }
  if (state != SQLITE_ROW && state != SQLITE_DONE)
    record.troubles.push_back(fmt::format("the database is damaged: {}", sqlite3_errmsg(file.get())));
  if (!has_loss)
    throw InputError(fmt::format("{} holds no metric whose name contains loss", path),
                     fmt::format("The last run is `{}`.", printable(last)));
  if (damaged) record.troubles.push_back(fmt::format("{} rows are damaged and were left out", damaged));
  if (runs.size() > 1)
    record.troubles.push_back(fmt::format("there are {} runs; this is the last one, {}", runs.size(), printable(last)));
  record.troubles.emplace_back(
      "trackio keeps no gradients, weights or data: only rules about losses and metrics apply");
  return record;
}

}  // namespace netmend::records
