// Trials in a PostgreSQL database. A worker is a row that says until when it counts as alive, by the server's clock
// alone; a lease is a trial's row with that worker in it. Who falls silent loses its leases, and a result is taken from
// whoever holds the lease, or from anybody where nobody does: so each trial gets one result, once.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/pool.h"
#include "base/text.h"
#include "trials/libpq.h"
#include "trials/store_impl.h"

namespace netmend::trials {
namespace {

using Clock = std::chrono::steady_clock;
using Key = std::string;

constexpr int64_t kLongest = 64 << 20;  ///< bytes of a result
constexpr size_t kTogether = 2000;      ///< keys that are named in one statement
constexpr double kIdle = 5;             ///< seconds after which a connection that nobody uses is closed
constexpr double kPatience = 10;        ///< leases that a lost database is waited for

/// Something that may be gone in a moment: no connection, no free place, two transactions in each other's way.
struct Broken {
  std::string message;
};

bool passes(const std::string& state) {
  for (const char* one : {"08", "57P", "53300", "40001", "40P01", "55P03", "57014"})
    if (state.starts_with(one)) return true;
  return state.empty();
}

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }
void sleep_for(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

struct TableShape {
  const char *name, *columns, *definition;
};
/// Columns as the catalogue tells them, and the statements that make them.
constexpr TableShape kTables[] = {
    {"netmend_studies", "id:integer name:text settings:text version:integer looked:timestamp with time zone",
     "CREATE TABLE netmend_studies (id serial PRIMARY KEY, name text NOT NULL UNIQUE, settings text NOT NULL, version "
     "integer NOT NULL, looked timestamptz NOT NULL DEFAULT clock_timestamp())"},
    {"netmend_workers", "id:bigint study:integer alive_until:timestamp with time zone",
     "CREATE TABLE netmend_workers (id bigserial PRIMARY KEY, study integer NOT NULL, alive_until timestamptz NOT "
     "NULL)"},
    {"netmend_trials", "study:integer key:text part:text worker:bigint result:text",
     "CREATE TABLE netmend_trials (study integer NOT NULL, key text NOT NULL, part text NOT NULL, worker bigint, "
     "result "
     "text, PRIMARY KEY (study, key))"},
};
constexpr const char* kIndexes[] = {
    "CREATE INDEX netmend_free ON netmend_trials (study, part, key) WHERE worker IS NULL AND result IS NULL",
    "CREATE INDEX netmend_held ON netmend_trials (study, worker) WHERE worker IS NOT NULL AND result IS NULL",
};

class DatabaseStore : public Store::Impl {
 public:
  DatabaseStore(const std::string& place, const std::string& study, int version, double lease)
      : place_(database_place(place)), lease_(lease) {
    const size_t comma = study.find(", ");
    name_ = study.substr(0, comma), settings_ = comma == std::string::npos ? "" : study.substr(comma + 2);
    version_ = version;
    connect_first();
    retried([&] { join(); });
    beating_ = std::thread([this] { beat_until_stopped(); });
  }

  ~DatabaseStore() override {
    {
      std::lock_guard lock(stop_mutex_);
      stop_ = true;
    }
    stopped_.notify_all();
    if (beating_.joinable()) beating_.join();
    try {  // what cannot be said now, the end of the lease says
      std::lock_guard lock(mutex_);
      if (!connection_) return;
      connection_->run("UPDATE netmend_trials SET worker = NULL WHERE study = $1 AND worker = $2 AND result IS NULL",
                       {study_, worker_});
      connection_->run("DELETE FROM netmend_workers WHERE id = $1", {worker_});
    } catch (...) {
    }
  }

  std::optional<std::string> find(const Key& key) override {
    const Rows rows = ask("SELECT result FROM netmend_trials WHERE study = $1 AND key = $2", {study_, key}).rows;
    return rows.empty() ? std::nullopt : checked(key, rows[0][0]);
  }

  void put(const Key& key, const std::string& result) override {
    check_size(key, result);
    ask("INSERT INTO netmend_trials (study, key, part, worker, result) VALUES ($1, $2, '', $3, $4) "
        "ON CONFLICT (study, key) DO UPDATE SET result = excluded.result, worker = excluded.worker "
        "WHERE netmend_trials.result IS NULL",
        {study_, key, worker_, result});
  }

  std::vector<std::pair<Key, std::string>> all() override {
    std::vector<std::pair<Key, std::string>> found;
    Key after;
    for (size_t got = kTogether; got == kTogether;) {  // some at a time: a study may hold more than fits into a reply
      const Rows rows = ask("SELECT key, result FROM netmend_trials WHERE study = $1 AND result IS NOT NULL AND "
                            "key COLLATE \"C\" > $2 ORDER BY key COLLATE \"C\" LIMIT 2000",
                            {study_, after})
                            .rows;
      got = rows.size();
      for (const auto& row : rows) found.emplace_back(*row[0], *checked(*row[0], row[1]));
      if (got) after = found.back().first;
    }
    return found;
  }

  int64_t count() override {
    return number(ask("SELECT count(*) FROM netmend_trials WHERE study = $1 AND result IS NOT NULL", {study_}));
  }

  std::string once(const Key& key, const std::function<std::string()>& run) override {
    for (double pause = 0.05;; pause = std::min(2 * pause, 1.0)) {
      const int64_t mine =
          ask("INSERT INTO netmend_trials (study, key, part, worker) VALUES ($1, $2, '', $3) ON CONFLICT "
              "(study, key) DO UPDATE SET worker = $3 WHERE netmend_trials.result IS NULL AND "
              "(netmend_trials.worker IS NULL OR netmend_trials.worker = $3)",
              {study_, key, worker_})
              .changed;
      if (!mine)
        if (auto known = find(key)) return *known;
      if (mine) {
        hold(key);
        std::string result;
        try {
          result = run();
        } catch (...) {
          give_back();
          throw;
        }
        if (finish({{key, result}})[0]) return result;
        continue;
      }
      stop_if_interrupted();
      sleep_for(pause);
      look_for_dead();
    }
  }

  bool shared() const override { return true; }

  void plan(const std::string& part, const std::vector<Key>& keys) override {
    for (size_t first = 0; first < keys.size(); first += kTogether) {
      const std::vector<Key> some(keys.begin() + int64_t(first),
                                  keys.begin() + int64_t(std::min(first + kTogether, keys.size())));
      // In one order, so that two processes that name the same trials do not wait for each other.
      ask("INSERT INTO netmend_trials (study, key, part) SELECT $1::integer, k, $2 FROM unnest($3::text[]) AS k "
          "ORDER BY k ON CONFLICT (study, key) DO NOTHING",
          {study_, part, text_list(some)});
    }
  }

  std::vector<Key> lease(const std::string& part, int64_t most) override {
    // Not durable by itself: a server that crashes forgets who had a trial, never a result.
    static const char* kLease =
        "WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)), "
        "free AS MATERIALIZED (SELECT key FROM netmend_trials WHERE study = $1 AND part = $2 AND worker IS NULL AND "
        "result IS NULL ORDER BY key LIMIT $3 FOR UPDATE SKIP LOCKED) "
        "UPDATE netmend_trials t SET worker = $4 FROM free, quick WHERE t.study = $1 AND t.key = free.key "
        "RETURNING t.key";
    std::vector<Key> found;
    retried([&] {
      std::lock_guard lock(mutex_);
      if (unsure_) {  // the answer to an earlier lease was lost: what it took is ours
        const Rows taken = query("SELECT key FROM netmend_trials WHERE study = $1 AND worker = $2 AND result IS NULL",
                                 {study_, worker_})
                               .rows;
        unsure_ = false;
        for (const auto& row : taken)
          if (!held_.count(*row[0])) forgotten_.push_back(*row[0]);
      }
      if (!forgotten_.empty()) {
        query(
            "UPDATE netmend_trials SET worker = NULL WHERE study = $1 AND worker = $2 AND result IS NULL AND key = ANY "
            "($3::text[])",
            {study_, worker_, text_list(forgotten_)});
        forgotten_.clear();
      }
      unsure_ = true;
      const Rows rows = query(kLease, {study_, part, std::to_string(most), worker_}).rows;
      unsure_ = false;
      for (const auto& row : rows) found.push_back(*row[0]), held_.insert(*row[0]);
    });
    return found;
  }

  std::vector<bool> finish(const std::vector<std::pair<Key, std::string>>& done) override {
    for (const auto& [key, result] : done) check_size(key, result);
    Finished mine{done};
    std::unique_lock lock(finish_mutex_);
    finished_.push_back(&mine);
    while (!mine.written) {
      if (writing_) {
        written_.wait(lock);
        continue;
      }
      // Whoever comes first writes for all who came meanwhile: one sync of the disk serves them.
      const std::vector<Finished*> batch = std::move(finished_);
      finished_.clear();
      writing_ = true;
      lock.unlock();
      std::exception_ptr error;
      try {
        write(batch);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      writing_ = false;
      for (Finished* one : batch) one->written = true, one->error = error;
      written_.notify_all();
    }
    if (mine.error) std::rethrow_exception(mine.error);
    return mine.taken;
  }

  void give_back() override {
    ask("UPDATE netmend_trials SET worker = NULL WHERE study = $1 AND worker = $2 AND result IS NULL",
        {study_, worker_});
    std::lock_guard lock(mutex_);
    held_.clear();
  }

  int64_t open(const std::string& part) override {
    look_for_dead();
    return number(
        ask("SELECT count(*) FROM netmend_trials WHERE study = $1 AND part = $2 AND result IS NULL", {study_, part}));
  }

  int64_t before() override { return before_; }

 private:
  struct Finished {
    const std::vector<std::pair<Key, std::string>>& done;
    std::vector<bool> taken = {};
    bool written = false;
    std::exception_ptr error = nullptr;
  };

  static int64_t number(const QueryResult& result) { return std::atoll(result.rows.at(0).at(0).value_or("0").c_str()); }

  std::optional<std::string> checked(const Key& key, const std::optional<std::string>& result) const {
    if (result) check_size(key, *result);
    return result;
  }
  void check_size(const Key& key, const std::string& result) const {
    if (int64_t(result.size()) > kLongest)
      fail("{}: the result of the trial {} has {}, more than a trial has", place_.shown, printable(key),
           bytes_text(double(result.size())));
  }

  void hold(const Key& key) {
    std::lock_guard lock(mutex_);
    held_.insert(key);
  }

  void write(const std::vector<Finished*>& batch) {
    static const char* kFinish =
        "WITH durable AS MATERIALIZED (SELECT CASE current_setting('synchronous_commit') WHEN 'off' THEN "
        "set_config('synchronous_commit', 'on', true) END) "
        "UPDATE netmend_trials t SET result = n.result, worker = $2 FROM "
        "unnest($3::text[], $4::text[]) AS n(key, result), durable WHERE t.study = $1 AND t.key = n.key AND t.result "
        "IS "
        "NULL AND (t.worker = $2 OR t.worker IS NULL) RETURNING t.key";
    std::vector<Key> keys, results;
    for (const Finished* one : batch)
      for (const auto& [key, result] : one->done) keys.push_back(key), results.push_back(result);
    const std::vector<std::string> values = {study_, worker_, text_list(keys), text_list(results)};
    std::set<Key> taken;
    for (const auto& row : ask(kFinish, values).rows) taken.insert(*row[0]);
    if (taken.size() < keys.size())  // an answer that was lost on its way: they stand there already
      for (const auto& row :
           ask("SELECT key FROM netmend_trials WHERE study = $1 AND worker = $2 AND result IS NOT NULL "
               "AND key = ANY ($3::text[])",
               {study_, worker_, text_list(keys)})
               .rows)
        taken.insert(*row[0]);
    for (Finished* one : batch)
      for (const auto& [key, unused] : one->done) one->taken.push_back(taken.count(key) > 0);
    std::lock_guard lock(mutex_);
    for (const Key& key : keys) held_.erase(key);
  }

  // ---- the connection ----

  /// Runs one statement on the connection, which the caller has the mutex of. Throws Broken, InputError.
  QueryResult query(const char* statement, const std::vector<std::string>& values) {
    if (!connection_) connect();
    used_ = Clock::now();
    QueryResult result = connection_->run(statement, values);
    if (result.ok) return result;
    if (!connection_->alive()) connection_.reset();
    if (passes(result.state)) throw Broken{result.message};
    throw InputError(fmt::format("{} refuses: {}", place_.shown, result.message), hint_for(result.state));
  }

  std::string hint_for(const std::string& state) const {
    if (state == "42501") return "The user needs the right to make and change tables there.";
    if (state == "25006") return "It can only be read; give the address of the primary server.";
    if (state == "53100") return "Its disk is full; the study goes on where it was when there is room.";
    if (state.starts_with("42")) return "If its tables were changed, give another database or schema.";
    return "";
  }

  void connect() {
    std::string problem;
    auto fresh = std::make_unique<Connection>(place_, problem);
    if (!problem.empty()) throw Broken{problem};
    connection_ = std::move(fresh);
  }

  /// Waits for nothing but a server that is starting or full: anything else is said at once.
  void connect_first() {
    for (const auto start = Clock::now();;) {
      std::string problem;
      connection_ = std::make_unique<Connection>(place_, problem);
      if (problem.empty()) return;
      const bool wants_password = connection_->lacks_password();
      connection_.reset();
      const bool soon = problem.find("starting up") != std::string::npos ||
                        problem.find("too many") != std::string::npos ||
                        problem.find("remaining connection slots") != std::string::npos;
      if (!soon || seconds_since(start) > kPatience * lease_)
        throw InputError(fmt::format("{} cannot be reached: {}", place_.shown, problem),
                         wants_password
                             ? "Put the password into a file named by PGPASSFILE, or into PGPASSWORD."
                             : "Is the server running, and are address, user and password right? Passwords are "
                               "taken from PGPASSFILE or PGPASSWORD.");
      stop_if_interrupted();
      sleep_for(0.5);
    }
  }

  /// Again and again while the database is away, for ten leases; then gives up with what it said last.
  template <typename F>
  void retried(const F& work) {
    std::optional<Clock::time_point> start;
    for (double pause = 0.02;; pause = std::min(2 * pause, 2.0)) try {
        work();
        if (start && told_.exchange(false)) std::fprintf(stderr, "%s is back\n", place_.shown.c_str());
        return;
      } catch (const Broken& broken) {
        if (!start) start = Clock::now();
        if (seconds_since(*start) > kPatience * lease_)
          throw InputError(fmt::format("{} did not come back within {}: {}", place_.shown,
                                       duration_text(kPatience * lease_), broken.message),
                           "What was finished is kept; the same command goes on from there.");
        if (seconds_since(*start) > 1 && !told_.exchange(true))
          std::fprintf(stderr, "%s is away (%s); trying again for %s\n", place_.shown.c_str(), broken.message.c_str(),
                       duration_text(kPatience * lease_).c_str());
        stop_if_interrupted();
        sleep_for(pause);
      }
  }

  QueryResult ask(const char* statement, const std::vector<std::string>& values) {
    QueryResult result;
    retried([&] {
      std::lock_guard lock(mutex_);
      result = query(statement, values);
    });
    return result;
  }

  /// Several statements that hold together.
  template <typename F>
  void transaction(const F& work) {
    std::lock_guard lock(mutex_);
    query("BEGIN", {});
    try {
      work();
      query("COMMIT", {});
    } catch (...) {
      if (connection_) connection_->run("ROLLBACK");
      throw;
    }
  }

  // ---- the study ----

  void join() {
    transaction([&] {
      query("SELECT pg_advisory_xact_lock(7307213140)", {});  // who comes first makes the tables
      bool made = false;
      for (const TableShape& table : kTables) made = make_table(table) || made;
      if (made)
        for (const char* index : kIndexes) query(index, {});
      query("INSERT INTO netmend_studies (name, settings, version) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING",
            {name_, settings_, std::to_string(version_)});
      const Rows rows = query("SELECT id, settings, version FROM netmend_studies WHERE name = $1", {name_}).rows;
      if (rows.empty()) fail("{} keeps nothing of what is put into netmend_studies", place_.shown);
      check_same(*rows[0][1], *rows[0][2]);
      study_ = *rows[0][0];
      worker_ =
          *query(
               "INSERT INTO netmend_workers (study, alive_until) VALUES ($1, clock_timestamp() + $2 * interval '1 "
               "second') RETURNING id",
               {study_, fmt::format("{}", lease_)})
               .rows.at(0)
               .at(0);
      before_ =
          number(query("SELECT count(*) FROM netmend_workers WHERE study = $1 AND alive_until > clock_timestamp() "
                       "AND id < $2",
                       {study_, worker_}));
    });
  }

  void check_same(const std::string& settings, const std::string& version) const {
    const std::string another = "Give another database, or another schema with ?options=-csearch_path%3DNAME.";
    if (version != std::to_string(version_))
      throw InputError(fmt::format("{} holds the study {}, version {}; this is version {}", place_.shown, name_,
                                   printable(version), version_),
                       another + " Results of different versions are not mixed.");
    if (settings != settings_)
      throw InputError(fmt::format("{} holds the study {} with other settings: {}; asked for: {}", place_.shown, name_,
                                   printable(settings), settings_),
                       "Give the same settings, or another database or schema (?options=-csearch_path%3DNAME).");
  }

  /// Whether it was not there. Somebody else's table of that name is left alone.
  bool make_table(const TableShape& table) {
    const Rows rows = query(
                          "SELECT c.relkind = 'r' AND NOT c.relhastriggers AND NOT c.relhasrules AND NOT "
                          "c.relrowsecurity, (SELECT string_agg(a.attname || ':' || format_type(a.atttypid, -1), ' ' "
                          "ORDER BY a.attnum) FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT "
                          "a.attisdropped) FROM pg_class c WHERE c.oid = to_regclass($1)",
                          {table.name})
                          .rows;
    if (rows.empty()) {
      query(table.definition, {});
      return true;
    }
    if (rows[0][0].value_or("f") != "t" || rows[0][1].value_or("") != table.columns)
      throw InputError(
          fmt::format("{} has a table {} that is not netmend's: {}", place_.shown, table.name,
                      rows[0][0].value_or("f") == "t" ? "its columns are others"
                                                      : "it has rules, triggers or policies, or is a view"),
          "Give another database, or another schema with ?options=-csearch_path%3DNAME.");
    return false;
  }

  // ---- staying alive ----

  void beat_until_stopped() {
    std::unique_lock lock(stop_mutex_);
    auto last = Clock::now();
    while (
        !stopped_.wait_for(lock, std::chrono::duration<double>(std::min(lease_ / 4, kIdle)), [&] { return stop_; })) {
      lock.unlock();
      std::unique_lock own(mutex_, std::try_to_lock);  // whoever works with it keeps it open
      if (own.owns_lock() || seconds_since(last) >= lease_ / 4) {
        if (!own.owns_lock()) own.lock();
        try {
          if (seconds_since(last) >= 0.99 * lease_ / 4)
            last = Clock::now(), beat();
          else if (seconds_since(used_) >= kIdle)
            connection_.reset();
        } catch (const Broken&) {  // the next one may get through; who works says it
        } catch (const InputError&) {
        }
      }
      own = {};
      lock.lock();
    }
  }

  /// Also where others already took us for dead: what they have not taken is still ours.
  void beat() {
    query(
        "WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)) "
        "INSERT INTO netmend_workers (id, study, alive_until) SELECT $1::bigint, $2::integer, clock_timestamp() + $3 * "
        "interval '1 second' FROM quick ON CONFLICT (id) DO UPDATE SET alive_until = excluded.alive_until",
        {worker_, study_, fmt::format("{}", lease_)});
  }

  /// One process of all looks, and not more often than four times a lease.
  void look_for_dead() {
    retried([&] {
      const std::string pause = fmt::format("{}", lease_ / 4);
      {
        std::lock_guard lock(mutex_);
        const Rows due = query(
                             "SELECT 1 FROM netmend_studies WHERE id = $1 AND looked < clock_timestamp() - $2 * "
                             "interval '1 second'",
                             {study_, pause})
                             .rows;
        if (due.empty()) return;
      }
      transaction([&] {
        if (query(
                "UPDATE netmend_studies SET looked = clock_timestamp() WHERE id = $1 AND looked < clock_timestamp() - "
                "$2 * interval '1 second'",
                {study_, pause})
                .changed == 0)
          return;
        query("DELETE FROM netmend_workers WHERE study = $1 AND alive_until < clock_timestamp()", {study_});
        query(
            "UPDATE netmend_trials t SET worker = NULL WHERE study = $1 AND result IS NULL AND worker IS NOT NULL AND "
            "NOT EXISTS (SELECT 1 FROM netmend_workers w WHERE w.id = t.worker)",
            {study_});
      });
    });
  }

  const DatabasePlace place_;
  const double lease_;
  std::string name_, settings_, study_, worker_;
  int version_ = 0;
  int64_t before_ = 0;

  std::mutex mutex_;  ///< of the connection and of what is known to be held
  std::unique_ptr<Connection> connection_;
  Clock::time_point used_ = Clock::now();
  std::set<Key> held_;
  std::vector<Key> forgotten_;
  bool unsure_ = false;
  std::atomic<bool> told_{false};

  std::mutex finish_mutex_;
  std::condition_variable written_;
  std::vector<Finished*> finished_;
  bool writing_ = false;

  std::mutex stop_mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;
  std::thread beating_;
};

}  // namespace

void check_place(const std::string& place) { database_place(place); }

std::unique_ptr<Store::Impl> open_database_store(const std::string& place, const std::string& study, int version,
                                                 double lease) {
  return std::make_unique<DatabaseStore>(place, study, version, lease);
}

}  // namespace netmend::trials
