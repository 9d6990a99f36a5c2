// Flags of why, accept, open: commands that need no model.
#include "netmend/flags.h"

namespace netmend::app {

void add_files(CLI::App& app, Options& o, Action& action) {
  CLI::App* why = command(app, "why", "Explain a finding: meaning, cause, how to confirm, how to repair",
                          "  netmend why confused-classes:cat-dog\n"
                          "  netmend why dead-units\n"
                          "  netmend why --list");
  why->add_option("finding", o.why.about, "Its id, or its kind (default: lists those of the latest run)");
  why->add_flag("--list", o.why.list, "All kinds of findings");
  why->add_option("--run", o.why.run, "Run folder of a check (default: the latest with findings)");
  why->callback([&] { action = [&] { return app::why(common, o.why); }; });

  CLI::App* accept =
      command(app, "accept", "Mark a finding or inputs as known, with a reason and an end date",
              "  netmend accept confused-classes:cat-dog --reason 'labels are ambiguous' --until 2027-06-30\n"
              "  netmend accept inputs --file ambiguous.csv --reason 'nobody can tell'\n"
              "  netmend accept --prune");
  accept->add_option("finding", o.accept.what, "Its id, KIND:WHERE; or `inputs` with --file");
  accept->add_option("--reason", o.accept.reason, "Why; whoever reads it next year should understand");
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

  CLI::App* open = command(app, "open", "Show the report of the latest or a given run",
                           "  netmend open\n  netmend open netmend-runs/20260105-093000-check\n  netmend open --json");
  open->add_option("run", o.open.run, "Folder or name of a run (default: the latest that has a report)");
  open->callback([&] { action = [&] { return open_report(common, o.open); }; });
}

}  // namespace netmend::app
