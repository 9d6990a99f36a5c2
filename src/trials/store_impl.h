// What a kind of store does. For store.cc alone.
#pragma once

#include <string>

#include "trials/store.h"

namespace netmend::trials {

struct Store::Impl {
  virtual ~Impl() = default;
  virtual std::optional<std::string> find(const std::string& key) = 0;
  virtual void put(const std::string& key, const std::string& result) = 0;
  virtual std::vector<std::pair<std::string, std::string>> all() = 0;
  virtual int64_t count() = 0;

  virtual std::string once(const std::string& key, const std::function<std::string()>& run) = 0;
  virtual bool shared() const { return false; }
  virtual void plan(const std::string&, const std::vector<std::string>&) {}
  virtual std::vector<std::string> lease(const std::string&, int64_t) { return {}; }
  virtual std::vector<bool> finish(const std::vector<std::pair<std::string, std::string>>& done) {
    for (const auto& [key, result] : done) put(key, result);
    return std::vector<bool>(done.size(), true);
  }
  virtual void give_back() {}
  virtual int64_t open(const std::string&) { return 0; }
  virtual int64_t before() { return 0; }
};

std::unique_ptr<Store::Impl> open_file_store(const std::string& path, const std::string& study, int version);
std::unique_ptr<Store::Impl> open_database_store(const std::string& place, const std::string& study, int version,
                                                 double lease);

}  // namespace netmend::trials
