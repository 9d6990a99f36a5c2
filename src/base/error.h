// The two ways to fail. InputError: the user's file, flag or data is at fault (exit 2). Any other exception is our own
// mistake (exit 3). Both are thrown. An InputError is caught on the way to add where it happened, or where the rest
// of the work can go on without the part that failed. Anything else goes on to main; what libraries throw about a
// user's file or model becomes an InputError where it is read or run.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace netmend {

class InputError : public std::runtime_error {
 public:
  explicit InputError(const std::string& what, std::string hint = "")
      : std::runtime_error(what), hint_(std::move(hint)) {}
  /// What to try next; empty when there is nothing useful to say.
  const std::string& hint() const { return hint_; }

 private:
  std::string hint_;
};

/// A model asks for something netmend does not do (an operator, an element type): the file may be perfectly right.
class Unsupported : public InputError {
 public:
  using InputError::InputError;
};

/// Throws an InputError; the message is one clear sentence that names the file or value and what was expected.
template <typename... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw InputError(fmt::format(format, std::forward<Args>(args)...));
}

/// A broken invariant of ours, not the user's doing.
template <typename... Args>
void check(bool holds, fmt::format_string<Args...> format, Args&&... args) {
  if (!holds) throw std::logic_error(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace netmend
