// LibTorch's exceptions, caught at the boundary of a verb and given the place they happened at.
#pragma once

#include <c10/util/Exception.h>

#include <string>

#include "base/memory_error.h"

namespace netmend::model {

/// The first line of a LibTorch error, without its backtrace and its advice to LibTorch's developers.
std::string plain_reason(const c10::Error& error);

/// The memory of a GPU does not hold what an operator asks for; fewer inputs at once may fit.
class DeviceMemoryError : public InputError {
 public:
  using InputError::InputError;
};

/// Runs `body`; an error of LibTorch or a user's error in it becomes an InputError that begins with `where()`.
template <typename Where, typename Body>
decltype(auto) guarded(const Where& where, const Body& body) {
  try {
    return body();
  } catch (const Unsupported& error) {
    throw Unsupported(fmt::format("{}: {}", where(), error.what()), error.hint());
  } catch (const DeviceMemoryError& error) {
    throw DeviceMemoryError(fmt::format("{}: {}", where(), error.what()), error.hint());
  } catch (const MemoryError& error) {
    throw MemoryError(fmt::format("{}: {}", where(), error.what()), error.hint());
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", where(), error.what()), error.hint());
  } catch (const c10::OutOfMemoryError&) {
    throw DeviceMemoryError(fmt::format("{}: the GPU does not have enough memory", where()), "Try --device cpu.");
  } catch (const c10::Error& error) {
    throw InputError(fmt::format("{}: {}", where(), plain_reason(error)));
  } catch (const std::runtime_error& error) {  // some of LibTorch's shape checks throw these
    throw InputError(fmt::format("{}: {}", where(), error.what()));
  } catch (const std::bad_alloc&) {
    throw MemoryError(fmt::format("{}: not enough memory", where()));
  } catch (const std::logic_error&) {  // a mistake of our own
    throw;
  } catch (const std::exception& error) {  // the libraries below LibTorch (oneDNN's errors are of no other kind)
    throw InputError(fmt::format("{}: {}", where(), error.what()));
  }
}

}  // namespace netmend::model
