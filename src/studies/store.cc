#include "studies/store.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/text.h"

namespace netmend::studies {
namespace {

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
    throw InputError(fmt::format("{} cannot be used: {}", path_, sqlite3_errmsg(file_)),
                     "If it is damaged or something else, give another --out, or remove it to begin anew.");
  }
  sqlite3* file_;
  sqlite3_stmt* statement_ = nullptr;
  const std::string& path_;
};

}  // namespace

struct Store::Impl {
  std::string path;
  int lock = -1;
  sqlite3* file = nullptr;

  ~Impl() {
    if (file) sqlite3_close(file);
    if (lock >= 0) close(lock);
  }

  /// Gone with the process, however it ends.
  void take_lock() {
    const std::string name = path + ".lock";
    lock = open(name.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
    if (lock < 0) fail("cannot write {}: {}", name, std::string(strerror(errno)));
    if (flock(lock, LOCK_EX | LOCK_NB) != 0)
      throw InputError(fmt::format("another process is working on {}", path), "Wait for it, or give another --out.");
  }

  void execute(const char* text) { Statement(file, text, path).step(); }
};

Store::Store(const std::string& path, const std::string& study, int version) : impl_(std::make_unique<Impl>()) {
  impl_->path = path;
  impl_->take_lock();
  if (sqlite3_open(path.c_str(), &impl_->file) != SQLITE_OK)
    fail("cannot open {}: {}", path, impl_->file ? sqlite3_errmsg(impl_->file) : "no memory");
  {
    // Somebody else's database is left alone.
    Statement tables(impl_->file, "SELECT COUNT(*), SUM(name = 'about') FROM sqlite_master WHERE type = 'table'", path);
    tables.step();
    if (tables.number(0) > 0 && tables.number(1) == 0)
      throw InputError(fmt::format("{} is a database, but no store of a study", path), "Give another --out.");
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
  return {result, "the store's trial " + printable(key), {}, "Give another --out, or remove trials.db to begin anew."};
}

}  // namespace netmend::studies
