// The command line: finds the command, fills its flags, and turns what goes wrong into words and an exit status.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iostream>
#include <new>
#include <set>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "base/number_text.h"
#include "base/pool.h"
#include "base/text.h"
#include "base/version.h"
#include "cluster/ranks.h"
#include "netmend/flags.h"
#include "netmend/ranks.h"
#include "netmend/terminal.h"

namespace netmend::app {

Common common;

CLI::App* command(CLI::App& parent, const std::string& name, const std::string& about, const std::string& examples) {
  CLI::App* app = parent.add_subcommand(name, about);
  app->footer("Examples:\n" + examples);
  app->add_flag("--json", common.json, "Print one JSON document on stdout");
  app->add_flag("--quiet", common.quiet, "No progress, no notes");
  app->add_flag("--wide", common.wide, "Do not wrap lines (default: COLUMNS, else the terminal's width, else 100)");
  app->add_option("--seed", common.seed, "Random seed")->capture_default_str();
  app->add_option("--jobs", common.jobs, "Worker threads (default: one per core); never changes a result")
      ->check(CLI::Range(0, 1024));
  app->add_option("--device", common.device, "cpu, cuda, cuda:N, or auto: a GPU where the work is worth it")
      ->capture_default_str();
  app->add_option("--precision", common.precision, "On a GPU: float32, tf32 (products), half or bf16 (passes)")
      ->capture_default_str();
  app->add_option("--memory", common.memory,
                  "Memory limit for tensors, for example 8G (default: most of what is free)");
  return app;
}

namespace {

struct Product {
  std::string flag;
  std::string* path;
  const CLI::Option* option;
};
std::vector<Product> products;

}  // namespace

CLI::Validator above_zero() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        double number = 0;
        return parse_double(text, number) && number > 0 ? "" : fmt::format("{} is not a number above 0", text);
      },
      "POSITIVE");
}

namespace {

/// A name that ends as one format does is no name for another.
CLI::Validator written_as(const std::string& ending) {
  return CLI::Validator(
      [=](std::string& path) -> std::string {
        const std::string has = std::filesystem::path(path).extension().string();
        static const std::set<std::string> known = {".csv", ".html", ".json", ".npy", ".npz", ".onnx", ".png", ".toml"};
        if (ending.empty() || has == ending || !known.contains(has)) return "";
        return fmt::format("{} would not be a {} file, because {} is written to it. Give it a name that ends in {}",
                           printable(path), has.substr(1), ending.substr(1), ending);
      },
      "");
}

}  // namespace

CLI::Option* add_product(CLI::App* app, const std::string& flag, std::string& path, const std::string& ending,
                         const std::string& about) {
  CLI::Option* option = app->add_option(flag, path, about)->check(written_as(ending));
  products.push_back({flag.substr(0, flag.find(',')), &path, option});
  return option;
}

bool is_product(const CLI::Option& option) {
  return std::any_of(products.begin(), products.end(), [&](const Product& one) { return one.option == &option; });
}

void with_config(CLI::App* app) {
  app->add_option("--config", common.config, "netmend.toml to use (default: beside the model, then upwards)");
}

void with_run_folder(CLI::App* app) {
  app->add_option("--out", common.out, "The run folder (default: netmend-runs/<time>-<command>)");
}

void with_case(CLI::App* app, CaseOptions& o) {
  app->add_option("--data", o.data,
                  "Data spec; a built-in name alone means its test split, and its training split where one is used");
  app->add_option("--test", o.test, "Data spec of the test inputs");
  app->add_option("--train", o.train, "Data spec of the training inputs");
  app->add_option("--output", o.output, "The output to judge, or any value inside the model");
  app->add_option("--metric", o.metric, "accuracy, balanced_accuracy, f1, auc, log_loss, mae or rmse");
  app->add_option("--limit", o.limit, "Only the first N inputs")->check(above_zero());
  app->add_option(
      "--budget", o.budget,
      "quick, normal (default) or deep, measured in work; or a time such as 90s or 30m, with which results may differ");
  app->add_flag("--all", o.all, "All inputs, however long it takes");
  app->add_flag("--anyway", o.anyway, "Continue even if model and data do not seem to belong together");
  with_config(app);
  with_run_folder(app);
}

namespace {

/// Numbers must be numbers: `nan` and `inf` would pass every comparison the wrong way, and the library takes the
/// largest number there is for one that is larger.
void require_numbers(CLI::App& app) {
  const CLI::Validator finite(
      [](std::string& text) { return std::string(is_not_finite(text) ? "is not a finite number" : ""); }, "");
  const CLI::Validator fits(
      [](std::string& text) { return std::string(is_beyond_64_bits(text) ? text + " is beyond 64 bits" : ""); }, "");
  for (CLI::Option* option : app.get_options())
    if (option->get_type_name().starts_with("FLOAT"))
      option->check(finite);
    else if (option->get_type_name().starts_with("INT") || option->get_type_name().starts_with("UINT"))
      option->check(fits);
  for (CLI::App* sub : app.get_subcommands([](CLI::App*) { return true; })) require_numbers(*sub);
}

void flush_output() {
  errno = 0;
  if (!std::cout.flush() || std::fflush(stdout) != 0 || std::ferror(stdout))
    fail("cannot write to standard output: {}", std::strerror(errno ? errno : EIO));
}

bool is_about_memory(const std::string& reason) {  // as LibTorch words it
  return reason.find("allocate memory") != std::string::npos || reason.find("not enough memory") != std::string::npos ||
         reason.find("out of memory") != std::string::npos;
}

int no_memory() {
  tell("error: there is not enough memory\n  --jobs 1, or a lower --limit or --memory, needs less.");
  return 2;
}

/// Memory that is missing where no exception may pass: in a destructor that takes some, or in a thread of a library.
[[noreturn]] void on_terminate() {
  if (std::exception_ptr error = std::current_exception()) {
    try {
      std::rethrow_exception(error);
    } catch (const std::bad_alloc&) {
      constexpr std::string_view kTold = "error: there is not enough memory\n";
      if (write(STDERR_FILENO, kTold.data(), kTold.size()) < 0) _exit(2);
      _exit(2);
    } catch (...) {
    }
  }
  __gnu_cxx::__verbose_terminate_handler();
  std::abort();
}

int run(int argc, char** argv, const Program& program) {
  std::set_terminate(on_terminate);
  stop_on_interrupt();
  CLI::App app("netmend", "netmend");
  app.set_version_flag("--version", std::string("netmend ") + kVersion);
  app.require_subcommand(1);
  Options options;
  Action action;
  program.add(app, options, action);
  require_numbers(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {
    const int status = app.exit(done);
    flush_output();
    return status;
  } catch (const CLI::ParseError& error) {
    if (!speaks()) return 2;
    std::vector<std::string> names;
    for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
      names.push_back(sub->get_name());
    if (argc > 1 && argv[1][0] != '-' && std::find(names.begin(), names.end(), argv[1]) == names.end())
      tell(fmt::format("error: there is no command {}{}\n  netmend --help lists the commands.", printable(argv[1]),
                       did_you_mean(argv[1], names)));
    else
      tell(fmt::format("error: {}\n  netmend {}--help lists the options.", printable(error.what()),
                       app.get_subcommands().empty() ? "" : app.get_subcommands()[0]->get_name() + " "));
    return 2;
  }
  common.arguments.assign(argv, argv + argc);
  if (common.wide) never_wrap();
  if (cluster::started_together() && common.store.empty()) {  // workers on a database are by themselves
    std::vector<std::string*> written;
    for (const Product& product : products) written.push_back(product.path);
    join_ranks(common, app.get_subcommands()[0]->get_name(), written);
  }

  if (program.prepare) program.prepare();
  stop_if_interrupted();
  for (const Product& product : products)
    if (product.option->count() > 0 || !product.path->empty()) claim_product(*product.path, product.flag);
  const int status = action();
  if (program.finish) program.finish();
  tell_traffic(common);
  flush_output();
  // Also where Ctrl-C came too late to stop anything: whoever pressed it wants nothing to follow.
  return was_interrupted() && status < 2 ? 130 : status;
}

}  // namespace

namespace {

/// Messages name what there is, and a file may hold any number of names.
std::string in_short(const std::string& message) {
  constexpr size_t kMost = 2000;
  return printable(message.size() > kMost ? message.substr(0, kMost) : message) + (message.size() > kMost ? " …" : "");
}

}  // namespace

namespace {

/// Does not return where the program runs once more.
void begin_again_if_it_helps(char** argv, const Program& program, const std::exception& error) {
  if (!program.begin_again || cluster::size() > 1 || !program.begin_again(error)) return;
  tell("note: the GPU does not have enough memory; beginning again with fewer inputs at once");
  flush_output();
  execv("/proc/self/exe", argv);
}

int run_and_tell(int argc, char** argv, const Program& program) {
  try {
    return run(argc, argv, program);
  } catch (const InputError& error) {
    begin_again_if_it_helps(argv, program, error);
    tell("error: " + in_short(error.what()));
    if (!error.hint().empty()) tell("  " + in_short(error.hint()));
    return 2;
  } catch (const Interrupted&) {
    tell("stopped");
    return 130;
  } catch (const std::system_error& error) {  // of a file's name; else of fmt, when the output cannot be written
    const bool of_a_file = dynamic_cast<const std::filesystem::filesystem_error*>(&error) != nullptr;
    tell(fmt::format("error: {}{}", of_a_file ? "" : "cannot write to standard output: ", printable(error.what())));
    return 2;
  } catch (const std::bad_alloc&) {
    return no_memory();
  } catch (const std::exception& error) {
    begin_again_if_it_helps(argv, program, error);
    std::string reason = error.what();
    reason.resize(std::min(reason.size(), reason.find('\n')));  // LibTorch adds its stack
    if (is_about_memory(reason)) return no_memory();
    tell(fmt::format("internal error: {}\n  This is a bug in netmend. Please report it with the command line.",
                     printable(reason)));
    return 3;
  }
}

}  // namespace

int run_program(int argc, char** argv, const Program& program) {
  const int status = run_and_tell(argc, argv, program);
  leave_ranks(status);
  return status;
}

}  // namespace netmend::app
