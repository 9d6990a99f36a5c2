// PostgreSQL's client library, loaded when a database is named: netmend works without it. What is declared here is the
// part of its interface that has not changed since version 9 (libpq.so.5).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace netmend::trials {

/// Rows of text; nothing where the value is NULL.
using Rows = std::vector<std::vector<std::optional<std::string>>>;

struct QueryResult {
  bool ok = false;
  std::string state;    ///< SQLSTATE of an error; "" where the connection broke
  std::string message;  ///< of an error, one line
  Rows rows;
  int64_t changed = 0;  ///< rows
};

/// Where a database is, without a word that is secret.
struct DatabasePlace {
  std::string words;  ///< for the library
  std::string shown;  ///< for people: postgresql://host:port/name
};
/// Throws InputError: the library is missing, the place is no valid one, or a password stands in it.
DatabasePlace database_place(const std::string& place);

/// One connection. One thread at a time.
class Connection {
 public:
  /// Tries once. `problem` is "" when it worked.
  Connection(const DatabasePlace& place, std::string& problem);
  ~Connection();
  Connection(const Connection&) = delete;

  /// One statement with its values $1, $2, ….
  QueryResult run(const char* statement, const std::vector<std::string>& values = {});
  bool alive() const;
  /// A password was asked for and none was there.
  bool lacks_password() const;

 private:
  void* connection_ = nullptr;
};

/// `{"a","b"}`: a list of texts as one value.
std::string text_list(const std::vector<std::string>& texts);

}  // namespace netmend::trials
