#include "trials/libpq.h"

#include <dlfcn.h>

#include <cstdlib>
#include <memory>

#include "base/error.h"
#include "base/text.h"

namespace netmend::trials {
namespace {

struct PqOption {  ///< PQconninfoOption
  char *keyword, *environment, *compiled, *value, *label, *shown;
  int size;
};

/// The functions that are used, under the library's names.
struct Library {
  void* (*PQconnectdb)(const char*);
  void (*PQfinish)(void*);
  int (*PQstatus)(const void*);
  char* (*PQerrorMessage)(const void*);
  int (*PQconnectionNeedsPassword)(const void*);
  void* (*PQexecParams)(void*, const char*, int, const unsigned*, const char* const*, const int*, const int*, int);
  int (*PQresultStatus)(const void*);
  char* (*PQresultErrorField)(const void*, int);
  char* (*PQresultErrorMessage)(const void*);
  int (*PQntuples)(const void*);
  int (*PQnfields)(const void*);
  char* (*PQgetvalue)(const void*, int, int);
  int (*PQgetisnull)(const void*, int, int);
  int (*PQgetlength)(const void*, int, int);
  char* (*PQcmdTuples)(void*);
  void (*PQclear)(void*);
  PqOption* (*PQconninfoParse)(const char*, char**);
  void (*PQconninfoFree)(PqOption*);
  void (*PQfreemem)(void*);
};

Library load() {
  void* handle = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    throw InputError("a postgresql:// store needs PostgreSQL's client library, and libpq.so.5 cannot be loaded",
                     "Debian's package is libpq5.");
  Library pq{};
  auto find = [&]<typename F>(F& function, const char* name) {
    function = reinterpret_cast<F>(dlsym(handle, name));
    if (!function) throw InputError(fmt::format("libpq.so.5 has no {}: it is too old", name), "Install libpq5.");
  };
  find(pq.PQconnectdb, "PQconnectdb"), find(pq.PQfinish, "PQfinish"), find(pq.PQstatus, "PQstatus");
  find(pq.PQerrorMessage, "PQerrorMessage"), find(pq.PQconnectionNeedsPassword, "PQconnectionNeedsPassword");
  find(pq.PQexecParams, "PQexecParams"), find(pq.PQresultStatus, "PQresultStatus");
  find(pq.PQresultErrorField, "PQresultErrorField"), find(pq.PQresultErrorMessage, "PQresultErrorMessage");
  find(pq.PQntuples, "PQntuples"), find(pq.PQnfields, "PQnfields"), find(pq.PQgetvalue, "PQgetvalue");
  find(pq.PQgetisnull, "PQgetisnull"), find(pq.PQgetlength, "PQgetlength"), find(pq.PQcmdTuples, "PQcmdTuples");
  find(pq.PQclear, "PQclear"), find(pq.PQconninfoParse, "PQconninfoParse");
  find(pq.PQconninfoFree, "PQconninfoFree"), find(pq.PQfreemem, "PQfreemem");
  return pq;
}

const Library& pq() {
  static const Library library = load();
  return library;
}

/// One line without what a terminal would act on.
std::string one_line(const char* text) {
  std::string line(trim(text ? text : ""));
  for (char& c : line)
    if (c == '\n' || c == '\t') c = ' ';
  return printable(line);
}

/// A word of a connection string.
std::string quoted(const std::string& value) {
  std::string out = "'";
  for (char c : value) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

constexpr int kOk = 0, kCommandOk = 1, kTuplesOk = 2, kSqlState = 'C', kMessage = 'M';

}  // namespace

DatabasePlace database_place(const std::string& place) {
  char* wrong = nullptr;
  PqOption* parsed = pq().PQconninfoParse(place.c_str(), &wrong);
  // The library's message may repeat what it was given, a password among it.
  if (wrong) pq().PQfreemem(wrong);
  if (!parsed)
    throw InputError("--store: this is no valid address of a database",
                     "Write postgresql://USER@HOST:PORT/DATABASE, with %-escapes for other characters.");
  std::unique_ptr<PqOption, void (*)(PqOption*)> options(parsed, pq().PQconninfoFree);
  DatabasePlace out;
  std::string host, port, name;
  bool secret = false;
  // A dead server is noticed within half a minute, whatever the system's defaults are.
  std::vector<std::pair<std::string, std::string>> usual = {{"connect_timeout", "10"},      {"keepalives_idle", "10"},
                                                            {"keepalives_interval", "5"},   {"keepalives_count", "4"},
                                                            {"tcp_user_timeout", "30000"},  {"client_encoding", "UTF8"},
                                                            {"application_name", "netmend"}};
  for (const PqOption* one = parsed; one->keyword; ++one) {
    if (!one->value) continue;
    const std::string key = one->keyword, value = one->value;
    if (key == "password" || key == "sslpassword") secret = true;
    if (key == "host" || (key == "hostaddr" && host.empty())) host = value;
    if (key == "port") port = value;
    if (key == "dbname") name = value;
    std::erase_if(usual, [&](const auto& pair) { return pair.first == key; });
    out.words += key + "=" + quoted(value) + " ";
  }
  if (secret)
    throw InputError("--store: a password stands in the address, where every user of the machine could read it",
                     "Leave it out, and put it into a file named by PGPASSFILE (or into PGPASSWORD).");
  for (const auto& [key, value] : usual) out.words += key + "=" + quoted(value) + " ";
  out.shown = printable("postgresql://" + host + (port.empty() ? "" : ":" + port) + "/" + name);
  return out;
}

Connection::Connection(const DatabasePlace& place, std::string& problem)
    : connection_(pq().PQconnectdb(place.words.c_str())) {
  problem = !connection_                        ? "no memory"
            : pq().PQstatus(connection_) == kOk ? ""
                                                : one_line(pq().PQerrorMessage(connection_));
}

Connection::~Connection() {
  if (connection_) pq().PQfinish(connection_);
}

bool Connection::alive() const { return connection_ && pq().PQstatus(connection_) == kOk; }
bool Connection::lacks_password() const { return connection_ && pq().PQconnectionNeedsPassword(connection_); }

QueryResult Connection::run(const char* statement, const std::vector<std::string>& values) {
  std::vector<const char*> texts;
  for (const std::string& value : values) texts.push_back(value.c_str());
  std::unique_ptr<void, void (*)(void*)> result(
      pq().PQexecParams(connection_, statement, int(texts.size()), nullptr, texts.data(), nullptr, nullptr, 0),
      pq().PQclear);
  QueryResult out;
  const int status = result ? pq().PQresultStatus(result.get()) : -1;
  out.ok = status == kCommandOk || status == kTuplesOk;
  if (!out.ok) {
    const char* state = result ? pq().PQresultErrorField(result.get(), kSqlState) : nullptr;
    const char* message = result ? pq().PQresultErrorField(result.get(), kMessage) : nullptr;
    out.state = alive() && state ? state : "";
    out.message = one_line(message ? message : pq().PQerrorMessage(connection_));
    return out;
  }
  out.changed = std::atoll(pq().PQcmdTuples(result.get()));
  const int rows = pq().PQntuples(result.get()), columns = pq().PQnfields(result.get());
  for (int r = 0; r < rows; ++r) {
    auto& row = out.rows.emplace_back();
    for (int c = 0; c < columns; ++c)
      if (pq().PQgetisnull(result.get(), r, c))
        row.emplace_back();
      else
        row.emplace_back(
            std::string(pq().PQgetvalue(result.get(), r, c), size_t(pq().PQgetlength(result.get(), r, c))));
  }
  return out;
}

std::string text_list(const std::vector<std::string>& texts) {
  std::string out = "{";
  for (const std::string& text : texts) {
    if (out.size() > 1) out += ',';
    out += '"';
    for (char c : text) {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
    out += '"';
  }
  return out + "}";
}

}  // namespace netmend::trials
