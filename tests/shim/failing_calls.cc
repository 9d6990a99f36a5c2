// Loaded before the C library (LD_PRELOAD): makes one call of one function fail, to see what a program leaves behind.
//
// NETMEND_FAIL=write:17 lets the 17th write fail as a full disk would; write:17- that one and all behind it.
// NETMEND_FAIL_COUNT=FILE gets the number of calls, when the program ends by itself. Only programs that end in
// -engine or -files count, not the one that starts them, from their first statement on: that is when the settings are
// read, so that an engine that is loaded once and forked (forked.cc) can be given others each time. Calls of the
// standard streams are left alone.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>

namespace {

enum Function { kOpen, kWrite, kRename, kFsync, kClose, kRead, kMalloc, kThread, kNone };
constexpr const char* kNames[] = {"open", "write", "rename", "fsync", "close", "read", "malloc", "thread"};
constexpr int kErrors[] = {ENOSPC, ENOSPC, ENOSPC, EIO, ENOSPC, EIO, ENOMEM, EAGAIN};

Function which = kNone;
long failing = -1;
bool onwards = false;
std::atomic<bool> begun{false};  ///< what libraries do when they are loaded is theirs
std::atomic<long> calls{0};

/// Whether this call fails.
bool fails(Function function) {
  if (function != which || !begun) return false;
  const long number = ++calls;
  if (failing <= 0 || number < failing || (number > failing && !onwards)) return false;
  errno = kErrors[function];
  return true;
}

template <typename Type>
Type* next(const char* name) {
  return reinterpret_cast<Type*>(dlsym(RTLD_NEXT, name));
}

/// The standard streams, and what the kernel tells LibTorch about the processor: its libraries do not survive that.
std::atomic<bool> spared[4096];
bool is_spared(int file) { return (file >= 0 && file <= 2) || (file > 0 && file < 4096 && spared[file]); }
bool is_kernels(const char* path) { return strncmp(path, "/proc/", 6) == 0 || strncmp(path, "/sys/", 5) == 0; }
int opened(const char* path, int file) {
  if (file > 0 && file < 4096) spared[file] = is_kernels(path);
  return file;
}
FILE* opened(const char* path, FILE* file) {
  if (file) opened(path, fileno(file));
  return file;
}

void begin() {
  char self[4096];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  const char* asked = getenv("NETMEND_FAIL");
  if (length <= 0 || !asked) return;
  self[length] = 0;
  if (!strstr(self, "-engine") && !strstr(self, "-files")) return;
  const char* colon = strchr(asked, ':');
  for (int f = 0; f < kNone; ++f)
    if (strlen(kNames[f]) == size_t(colon - asked) && strncmp(asked, kNames[f], size_t(colon - asked)) == 0)
      which = Function(f);
  failing = strtol(colon + 1, nullptr, 10);
  onwards = asked[strlen(asked) - 1] == '-';
}

__attribute__((destructor)) void end() {
  const Function counted = which;
  which = kNone;
  const char* file = getenv("NETMEND_FAIL_COUNT");
  if (counted == kNone || !file) return;
  if (FILE* out = fopen(file, "w")) fprintf(out, "%ld\n", calls.load()), fclose(out);
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const int mode = va_arg(list, int);
  va_end(list);
  if (!is_kernels(path) && fails(kOpen)) return -1;
  return opened(path, next<int(const char*, int, ...)>("open")(path, flags, mode));
}
int open64(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const int mode = va_arg(list, int);
  va_end(list);
  if (!is_kernels(path) && fails(kOpen)) return -1;
  return opened(path, next<int(const char*, int, ...)>("open64")(path, flags, mode));
}
FILE* fopen(const char* path, const char* mode) {
  if (!is_kernels(path) && fails(kOpen)) return nullptr;
  return opened(path, next<FILE*(const char*, const char*)>("fopen")(path, mode));
}
FILE* fopen64(const char* path, const char* mode) {
  if (!is_kernels(path) && fails(kOpen)) return nullptr;
  return opened(path, next<FILE*(const char*, const char*)>("fopen64")(path, mode));
}
ssize_t write(int file, const void* bytes, size_t count) {
  if (!is_spared(file) && fails(kWrite)) return -1;
  return next<ssize_t(int, const void*, size_t)>("write")(file, bytes, count);
}
ssize_t writev(int file, const iovec* parts, int count) {
  if (!is_spared(file) && fails(kWrite)) return -1;
  return next<ssize_t(int, const iovec*, int)>("writev")(file, parts, count);
}
ssize_t pwrite(int file, const void* bytes, size_t count, off_t at) {
  if (!is_spared(file) && fails(kWrite)) return -1;
  return next<ssize_t(int, const void*, size_t, off_t)>("pwrite")(file, bytes, count, at);
}
ssize_t pwrite64(int file, const void* bytes, size_t count, off64_t at) {
  if (!is_spared(file) && fails(kWrite)) return -1;
  return next<ssize_t(int, const void*, size_t, off64_t)>("pwrite64")(file, bytes, count, at);
}
int rename(const char* from, const char* to) {
  if (fails(kRename)) return -1;
  return next<int(const char*, const char*)>("rename")(from, to);
}
int linkat(int a, const char* from, int b, const char* to, int flags) {
  if (fails(kRename)) return -1;
  return next<int(int, const char*, int, const char*, int)>("linkat")(a, from, b, to, flags);
}
int fsync(int file) {
  if (fails(kFsync)) return -1;
  return next<int(int)>("fsync")(file);
}
int fdatasync(int file) {
  if (fails(kFsync)) return -1;
  return next<int(int)>("fdatasync")(file);
}
int close(int file) {
  const bool bad = !is_spared(file) && fails(kClose);
  const int done = next<int(int)>("close")(file);  // as the kernel does: it is closed in any case
  if (!bad) return done;
  errno = kErrors[kClose];
  return -1;
}
ssize_t read(int file, void* bytes, size_t count) {
  if (!is_spared(file) && fails(kRead)) return -1;
  return next<ssize_t(int, void*, size_t)>("read")(file, bytes, count);
}
ssize_t pread(int file, void* bytes, size_t count, off_t at) {
  if (!is_spared(file) && fails(kRead)) return -1;
  return next<ssize_t(int, void*, size_t, off_t)>("pread")(file, bytes, count, at);
}
ssize_t pread64(int file, void* bytes, size_t count, off64_t at) {
  if (fails(kRead)) return -1;
  return next<ssize_t(int, void*, size_t, off64_t)>("pread64")(file, bytes, count, at);
}

/// The program's first statement unblocks signals.
int pthread_sigmask(int how, const sigset_t* set, sigset_t* before) {
  if (!begun) begin(), begun = true;
  return next<int(int, const sigset_t*, sigset_t*)>("pthread_sigmask")(how, set, before);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* how, void* (*run)(void*), void* with) {
  if (fails(kThread)) return kErrors[kThread];
  return next<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create")(thread, how, run,
                                                                                                 with);
}

void* __libc_malloc(size_t size);
void* malloc(size_t size) {
  if (fails(kMalloc)) return nullptr;
  return __libc_malloc(size);
}
}
