// The fuzzer of the reader that NETMEND_READER names.
#include <cstdio>
#include <cstdlib>

#include "executor/runtime.h"
#include "readers.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace netmend::fuzz;
  static const Reader* reader = [] {
    netmend::executor::start_runtime(int64_t(256) << 20);
    const char* name = std::getenv("NETMEND_READER");
    return find_reader(name ? name : "");
  }();
  if (!reader) {
    std::fprintf(stderr, "NETMEND_READER names a reader:");
    for (const Reader& one : readers()) std::fprintf(stderr, " %s", one.name);
    std::fprintf(stderr, "\n");
    std::exit(2);
  }
  read_any(*reader, {reinterpret_cast<const char*>(data), size});
  return 0;
}
