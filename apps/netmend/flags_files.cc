// Flags of why, accept, open, watch, diagnose, lint, inject: commands that need no model.
#include "netmend/flags.h"

namespace netmend::app {

namespace {

void add_inject(CLI::App& app, Options& o, Action& action) {
  CLI::App* inject =
      command(app, "inject",
              "Inject bugs into a training program: what each does to its metric, and whether anybody would notice",
              "  netmend inject train.py --metric 'accuracy ([0-9.]+)'\n"
              "  netmend inject train.py --metric 'acc=([0-9.]+)' --also torch.nn --sample 300 -- --seed {seed}\n"
              "  netmend inject train.py --metric 'accuracy ([0-9.]+)' --operators zero-grad-removed,wrong-axis");
  inject->add_option("program", o.inject.program, "Python program or notebook; its arguments come after --")
      ->required();
  inject->add_option("arguments", o.inject.arguments,
                     "Arguments of the program, after --; {seed} in them is replaced by a different number in every "
                     "clean run");
  inject
      ->add_option("--metric", o.inject.metric,
                   "Regular expression: its first group in the last printed line that matches is the metric. Or "
                   "json:FILE:KEY in a file that it writes, or record:NAME in the record of its training (record:loss)")
      ->required();
  inject->add_option("--python", o.inject.python, "The interpreter")->capture_default_str();
  inject
      ->add_option("--operators", o.inject.operators,
                   "ArOR, BitOR, ComOR, LogOR, AsOR, MemOR, BVR, NVR, activation-removed, loss-replaced, "
                   "zero-grad-removed, … separated by commas (default: all)")
      ->delimiter(',');
  inject->add_option("--also", o.inject.also,
                     "Package to inject bugs into as well, such as torch.nn; may be repeated. The installed one "
                     "stays as it is");
  inject->add_option("--sample", o.inject.sample, "Number of bugs in all, drawn by --seed; 0 for every possible one")
      ->capture_default_str()
      ->check(CLI::Range(0, 1000000));
  inject->add_option("--per-file", o.inject.per_file, "At most this many bugs per file; 0 for no limit")
      ->capture_default_str()
      ->check(CLI::Range(0, 1000000));
  inject->add_option("--clean-runs", o.inject.clean_runs, "Runs of the unchanged program, for comparison")
      ->capture_default_str()
      ->check(CLI::Range(2, 1000));
  inject
      ->add_option("--doctor", o.inject.doctor,
                   "Number of survivors, the most dangerous first, that are run again under netmend watch; 0 for none")
      ->capture_default_str()
      ->check(CLI::Range(0, 1000000));
  inject->add_option("--time", o.inject.time,
                     "Time that a run may take, such as 90s (default: an hour for the unchanged program; for buggy "
                     "versions 4 times a clean run, plus 5 s)");
  inject->add_option("--env", o.inject.environment,
                     "Environment variable that is passed to the program; may be repeated");
  inject->add_option("--writable", o.inject.writable,
                     "Folder that is empty for the program and that it may write to; may be repeated");
  inject->add_flag("--unsafe", o.inject.unsafe, "Run without bubblewrap: only for code that you trust");
  with_run_folder(inject);
  inject->callback([&] { action = [&] { return app::inject(common, o.inject); }; });
}

}  // namespace

void add_files(CLI::App& app, Options& o, Action& action) {
  CLI::App* why = command(app, "why", "Explain a finding: meaning, cause, how to confirm, how to repair",
                          "  netmend why confused-classes:cat-dog\n"
                          "  netmend why dead-units\n"
                          "  netmend why --list");
  why->add_option("finding", o.why.about, "Id or kind of a finding (default: list the findings of the latest run)");
  why->add_flag("--list", o.why.list, "All kinds of findings");
  why->add_option("--run", o.why.run, "Run folder of a check (default: the latest with findings)");
  why->callback([&] { action = [&] { return app::why(common, o.why); }; });

  CLI::App* accept =
      command(app, "accept", "Mark a finding or inputs as known, with a reason and an end date",
              "  netmend accept confused-classes:cat-dog --reason 'labels are ambiguous' --until 2027-06-30\n"
              "  netmend accept inputs --file ambiguous.csv --reason 'nobody can tell'\n"
              "  netmend accept --prune");
  accept->add_option("finding", o.accept.what, "Id of a finding, KIND:WHERE; or `inputs` with --file");
  accept->add_option("--reason", o.accept.reason, "Why; it should still make sense to somebody who reads it next year");
  accept->add_option("--until", o.accept.until,
                     "The last day on which it is accepted, such as 2027-06-30 (default: no end)");
  accept->add_option("--level", o.accept.level,
                     "The finding returns when it is this many times as bad as today (default: 1.5x)");
  accept->add_option("--file", o.accept.file, "Names of inputs, in a column id or one per line");
  accept->add_flag("--list", o.accept.list, "List what is accepted");
  accept->add_flag("--prune", o.accept.prune, "Remove entries that no longer occur or have ended");
  accept->add_option("--run", o.accept.run, "Run folder of a check (default: the latest with findings)");
  with_config(accept);
  accept->callback([&] { action = [&] { return app::accept(common, o.accept); }; });

  CLI::App* watch = command(app, "watch", "Run a training program, record its training, and say what goes wrong",
                            "  netmend watch -- python train.py --epochs 5\n"
                            "  netmend watch --out run1 --stop-when nan -- python train.py\n"
                            "  netmend watch --fail-on serious -- python -m mypackage.train");
  watch->add_option("program", o.watch.command, "The program with its arguments, after --");
  watch
      ->add_option(
          "--stop-when", o.watch.stop_when,
          "End the program when: nan (loss or gradients are NaN or Inf, before the step that spoils the weights), "
          "diverged (the loss grew to three times its best), dead (a layer gives 0 for every input), "
          "constant (loss or outputs stay the same)")
      ->delimiter(',')
      ->allow_extra_args(false);  // else it would take the -- before the program
  watch->add_flag(
      "--probe", o.watch.probe,
      "After the program ended, try with a copy of the network as it started: is one batch learnt by heart, "
      "are gradients those of the loss (PyTorch)");
  watch->add_option("--thresholds", o.watch.thresholds, "TOML file with thresholds of rules (netmend diagnose --list)");
  watch
      ->add_option("--fail-on", o.watch.fail_on,
                   "Exit status 1 from this level on, if the program itself succeeded: blocker, serious, minor, "
                   "note or never")
      ->capture_default_str();
  with_run_folder(watch);
  watch->callback([&] { action = [&] { return app::watch(common, o.watch); }; });

  CLI::App* diagnose = command(app, "diagnose", "Say what the record of a training run shows, the most likely first",
                               "  netmend diagnose\n"
                               "  netmend diagnose run1 --fail-on serious\n"
                               "  netmend diagnose training.csv\n"
                               "  netmend diagnose run1 --live");
  diagnose->add_option("run", o.diagnose.run,
                       "Run folder of netmend watch, a record.jsonl, a CSV with a row per epoch, an event file of "
                       "TensorBoard, or a database of trackio (default: the newest record)");
  diagnose->add_flag("--list", o.diagnose.list, "All rules with their thresholds");
  diagnose->add_option("--against", o.diagnose.against,
                       "Another run: what changed from it to this one (netmend compare RUN RUN is the same)");
  diagnose->add_flag("--live", o.diagnose.live, "Follow a run that is still in progress");
  diagnose
      ->add_option("--rules", o.diagnose.rules,
                   "Sets of rules: exact, netmend (default: both), or a paper's: autotrainer, deeplocalize, "
                   "deepdiagnosis, umlaut, deepchecker, neuralint, sagemaker")
      ->delimiter(',');
  add_product(diagnose, "-o", o.diagnose.page, ".html",
              "Write the report page with curves, layers over time and events here");
  diagnose->add_option("--thresholds", o.diagnose.thresholds, "TOML file with thresholds of rules");
  diagnose
      ->add_option("--fail-on", o.diagnose.fail_on,
                   "Exit status 1 from this level on: blocker, serious, minor, note or never")
      ->capture_default_str();
  diagnose->callback([&] { action = [&] { return diagnose_run(common, o.diagnose); }; });

  CLI::App* lint =
      command(app, "lint", "Read a training program (PyTorch, Keras) and name mistakes that can be seen in its source",
              "  netmend lint train.py\n"
              "  netmend lint train.py --sarif lint.sarif");
  lint->add_option("files", o.lint.files, "Python files")->required();
  lint->add_option("--python", o.lint.python, "Python interpreter that parses them")->capture_default_str();
  lint->add_option("--fail-on", o.lint.fail_on,
                   "Exit status 1 from this level on: blocker, serious, minor, note or never")
      ->capture_default_str();
  add_product(lint, "--sarif", o.lint.sarif, "", "Write the findings as SARIF 2.1.0 to this file");
  lint->callback([&] { action = [&] { return app::lint(common, o.lint); }; });

  CLI::App* open = command(app, "open", "Show the report of the latest or a given run",
                           "  netmend open\n  netmend open netmend-runs/20260105-093000-check\n  netmend open --json");
  open->add_option("run", o.open.run, "Folder or name of a run (default: the latest that has a report)");
  open->callback([&] { action = [&] { return open_report(common, o.open); }; });

  add_inject(app, o, action);
}

}  // namespace netmend::app
