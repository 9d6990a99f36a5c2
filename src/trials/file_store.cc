#include <sqlite3.h>

#include "base/error.h"
#include "base/lock.h"
#include "base/text.h"
#include "trials/network_folder.h"
#include "trials/store_impl.h"

namespace netmend::trials {
namespace {

constexpr int kLongest = 64 << 20;  ///< bytes of a row: results of trials are small

/// One prepared statement.
class Statement {
 public:
  Statement(sqlite3* file, const char* text, const std::string& path) : file_(file), path_(path) {
    if (sqlite3_prepare_v2(file, text, -1, &statement_, nullptr) != SQLITE_OK) refuse();
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;

  Statement& bind(int place, const std::string& text) {
    if (sqlite3_bind_text(statement_, place, text.data(), int(text.size()), SQLITE_TRANSIENT) != SQLITE_OK) refuse();
    return *this;
  }
  /// False at the end.
  bool step() {
    const int code = sqlite3_step(statement_);
    if (code != SQLITE_ROW && code != SQLITE_DONE) refuse();
    return code == SQLITE_ROW;
  }
  std::string text(int column) const {
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    return bytes ? std::string(bytes, size_t(sqlite3_column_bytes(statement_, column))) : "";
  }
  int64_t number(int column) const { return sqlite3_column_int64(statement_, column); }

 private:
  [[noreturn]] void refuse() const {
    throw InputError(fmt::format("{} cannot be used: {}", path_, printable(sqlite3_errmsg(file_))),
                     "If it is damaged or another kind of file, give another --out, or remove it to start over.");
  }
  sqlite3* file_;
  sqlite3_stmt* statement_ = nullptr;
  const std::string& path_;
};

class FileStore : public Store::Impl {
 public:
  FileStore(const std::string& path, const std::string& study, int version);
  ~FileStore() override {
    if (file_) sqlite3_close_v2(file_);  // the last connection puts the journal into the file
  }
  std::optional<std::string> find(const std::string& key) override;
  void put(const std::string& key, const std::string& result) override;
  std::vector<std::pair<std::string, std::string>> all() override;
  int64_t count() override;
  std::string once(const std::string& key, const std::function<std::string()>& run) override;

 private:
  void execute(const char* text) { Statement(file_, text, path_).step(); }

  std::string path_;
  std::optional<Lock> lock_;
  sqlite3* file_ = nullptr;
};

FileStore::FileStore(const std::string& path, const std::string& study, int version) : path_(path) {
  refuse_network_folder(path);
  lock_.emplace(path + ".lock", path);
  if (sqlite3_open(path.c_str(), &file_) != SQLITE_OK)
    fail("cannot open {}: {}", path, file_ ? sqlite3_errmsg(file_) : "no memory");
  // Somebody else may have made the file: nothing that its schema says is run, and what it says is looked at first.
  sqlite3_db_config(file_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(file_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(file_, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(file_, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  sqlite3_limit(file_, SQLITE_LIMIT_LENGTH, kLongest);
  {
    Statement whole(file_, "PRAGMA quick_check(1)", path);
    if (whole.step() && whole.text(0) != "ok")
      throw InputError(fmt::format("{} is damaged: {}", path, printable(whole.text(0))),
                       "Give another --out, or remove it to start over.");
  }
  {
    // Somebody else's database is left alone.
    Statement tables(file_, "SELECT COUNT(*), SUM(name = 'about') FROM sqlite_master WHERE type = 'table'", path);
    tables.step();
    if (tables.number(0) > 0 && tables.number(1) == 0)
      throw InputError(fmt::format("{} is a database, but not that of a study", path), "Give another --out.");
  }
  execute("PRAGMA journal_mode=WAL");
  execute("PRAGMA synchronous=NORMAL");
  execute("CREATE TABLE IF NOT EXISTS about (study TEXT NOT NULL, version TEXT NOT NULL)");
  execute("CREATE TABLE IF NOT EXISTS trials (key TEXT PRIMARY KEY, result TEXT NOT NULL) WITHOUT ROWID");
  Statement about(file_, "SELECT study, version FROM about", path);
  if (!about.step()) {
    Statement(file_, "INSERT INTO about VALUES (?, ?)", path).bind(1, study).bind(2, std::to_string(version)).step();
    return;
  }
  if (about.text(0) != study || about.text(1) != std::to_string(version))
    throw InputError(fmt::format("{} holds the study {}, version {}; this is {}, version {}", path, about.text(0),
                                 about.text(1), study, version),
                     "Give another --out; results of different versions are not mixed.");
}

std::optional<std::string> FileStore::find(const std::string& key) {
  Statement row(file_, "SELECT result FROM trials WHERE key = ?", path_);
  row.bind(1, key);
  return row.step() ? std::optional<std::string>(row.text(0)) : std::nullopt;
}

void FileStore::put(const std::string& key, const std::string& result) {
  Statement(file_, "INSERT OR REPLACE INTO trials VALUES (?, ?)", path_).bind(1, key).bind(2, result).step();
}

std::vector<std::pair<std::string, std::string>> FileStore::all() {
  std::vector<std::pair<std::string, std::string>> found;
  Statement rows(file_, "SELECT key, result FROM trials ORDER BY key", path_);
  while (rows.step()) found.emplace_back(rows.text(0), rows.text(1));
  return found;
}

int64_t FileStore::count() {
  Statement rows(file_, "SELECT COUNT(*) FROM trials", path_);
  rows.step();
  return rows.number(0);
}

std::string FileStore::once(const std::string& key, const std::function<std::string()>& run) {
  if (auto known = find(key)) return *known;
  const std::string result = run();
  put(key, result);
  return result;
}

}  // namespace

std::unique_ptr<Store::Impl> open_file_store(const std::string& path, const std::string& study, int version) {
  return std::make_unique<FileStore>(path, study, version);
}

}  // namespace netmend::trials
