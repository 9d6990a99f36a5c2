#include "trials/store.h"

#include <sqlite3.h>

#include "base/error.h"
#include "base/lock.h"
#include "base/text.h"

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

}  // namespace

struct Store::Impl {
  std::string path;
  std::optional<Lock> lock;
  sqlite3* file = nullptr;

  ~Impl() {
    if (file) sqlite3_close_v2(file);  // the last connection puts the journal into the file
  }

  void execute(const char* text) { Statement(file, text, path).step(); }
};

Store::Store(const std::string& path, const std::string& study, int version) : impl_(std::make_unique<Impl>()) {
  impl_->path = path;
  impl_->lock.emplace(path + ".lock", path);
  if (sqlite3_open(path.c_str(), &impl_->file) != SQLITE_OK)
    fail("cannot open {}: {}", path, impl_->file ? sqlite3_errmsg(impl_->file) : "no memory");
  // Somebody else may have made the file: nothing that its schema says is run, and what it says is looked at first.
  sqlite3_db_config(impl_->file, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(impl_->file, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(impl_->file, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(impl_->file, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  sqlite3_limit(impl_->file, SQLITE_LIMIT_LENGTH, kLongest);
  {
    Statement whole(impl_->file, "PRAGMA quick_check(1)", path);
    if (whole.step() && whole.text(0) != "ok")
      throw InputError(fmt::format("{} is damaged: {}", path, printable(whole.text(0))),
                       "Give another --out, or remove it to start over.");
  }
  {
    // Somebody else's database is left alone.
    Statement tables(impl_->file, "SELECT COUNT(*), SUM(name = 'about') FROM sqlite_master WHERE type = 'table'", path);
    tables.step();
    if (tables.number(0) > 0 && tables.number(1) == 0)
      throw InputError(fmt::format("{} is a database, but not that of a study", path), "Give another --out.");
  }
  impl_->execute("PRAGMA journal_mode=WAL");
  impl_->execute("PRAGMA synchronous=NORMAL");
  impl_->execute("CREATE TABLE IF NOT EXISTS about (study TEXT NOT NULL, version TEXT NOT NULL)");
  impl_->execute("CREATE TABLE IF NOT EXISTS trials (key TEXT PRIMARY KEY, result TEXT NOT NULL) WITHOUT ROWID");
  Statement about(impl_->file, "SELECT study, version FROM about", path);
  if (!about.step()) {
    Statement(impl_->file, "INSERT INTO about VALUES (?, ?)", path)
        .bind(1, study)
        .bind(2, std::to_string(version))
        .step();
    return;
  }
  if (about.text(0) != study || about.text(1) != std::to_string(version))
    throw InputError(fmt::format("{} holds the study {}, version {}; this is {}, version {}", path, about.text(0),
                                 about.text(1), study, version),
                     "Give another --out; results of different versions are not mixed.");
}

Store::~Store() = default;

std::optional<std::string> Store::find(const std::string& key) const {
  Statement row(impl_->file, "SELECT result FROM trials WHERE key = ?", impl_->path);
  row.bind(1, key);
  return row.step() ? std::optional<std::string>(row.text(0)) : std::nullopt;
}

void Store::put(const std::string& key, const std::string& result) {
  Statement(impl_->file, "INSERT OR REPLACE INTO trials VALUES (?, ?)", impl_->path)
      .bind(1, key)
      .bind(2, result)
      .step();
}

std::vector<std::pair<std::string, std::string>> Store::all() const {
  std::vector<std::pair<std::string, std::string>> found;
  Statement rows(impl_->file, "SELECT key, result FROM trials ORDER BY key", impl_->path);
  while (rows.step()) found.emplace_back(rows.text(0), rows.text(1));
  return found;
}

int64_t Store::count() const {
  Statement rows(impl_->file, "SELECT COUNT(*) FROM trials", impl_->path);
  rows.step();
  return rows.number(0);
}

JsonDocument trial_document(const std::string& key, const std::string& result) {
  return {result, "the store's trial " + printable(key), {}, "Give another --out, or remove trials.db to start over."};
}

}  // namespace netmend::trials
