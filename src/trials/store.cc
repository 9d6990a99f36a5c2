#include "trials/store.h"

#include "base/error.h"
#include "base/text.h"
#include "trials/store_impl.h"

namespace netmend::trials {

bool is_database(const std::string& place) {
  const size_t end = place.find("://");
  if (end == std::string::npos) return false;
  const std::string scheme = place.substr(0, end);
  if (scheme == "postgresql" || scheme == "postgres") return true;
  throw InputError(fmt::format("{}:// is no kind of store", printable(scheme)),
                   "Write postgresql://HOST/DATABASE for a database of PostgreSQL.");
}

Store::Store(const std::string& place, const std::string& study, int version, double lease)
    : impl_(is_database(place) ? open_database_store(place, study, version, lease)
                               : open_file_store(place, study, version)) {}
Store::~Store() = default;
Store::Store(Store&&) noexcept = default;

std::optional<std::string> Store::find(const std::string& key) const { return impl_->find(key); }
void Store::put(const std::string& key, const std::string& result) { impl_->put(key, result); }
std::vector<std::pair<std::string, std::string>> Store::all() const { return impl_->all(); }
int64_t Store::count() const { return impl_->count(); }
std::string Store::once(const std::string& key, const std::function<std::string()>& run) {
  return impl_->once(key, run);
}

bool Store::shared() const { return impl_->shared(); }
void Store::plan(const std::string& part, const std::vector<std::string>& keys) { impl_->plan(part, keys); }
std::vector<std::string> Store::lease(const std::string& part, int64_t most) { return impl_->lease(part, most); }
std::vector<bool> Store::finish(const std::vector<std::pair<std::string, std::string>>& done) {
  return impl_->finish(done);
}
void Store::give_back() { impl_->give_back(); }
int64_t Store::open(const std::string& part) { return impl_->open(part); }
int64_t Store::before() const { return impl_->before(); }

JsonDocument trial_document(const std::string& key, const std::string& result) {
  return {
      result,
      "the store's trial " + printable(key),
      {},
      "Give another --out or --store, or remove trials.db (of a database the row of netmend_trials) to run it again."};
}

}  // namespace netmend::trials
