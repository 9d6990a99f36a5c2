// Flags of init, check, compare, gate.
#include "netmend/flags.h"

namespace netmend::app {
namespace {

void add_gate(CLI::App& app, Options& o, Action& action) {
  CLI::App* gate =
      command(app, "gate", "Pass or fail against the limits in netmend.toml; for pipelines",
              "  netmend gate\n"
              "  netmend gate new.onnx --against prod.onnx --strict\n"
              "  netmend gate new.onnx --against baseline.json --out gate && cat gate/gate.md\n"
              "Limits are set in netmend.toml:\n"
              "  gate = { accuracy = \">= 0.90\", \"recall[truck]\" = \">= 0.94\", overall_drop = \"<= 0.5\",\n"
              "           \"accuracy[hour=night]\" = \">= 0.85\", class_drop = \"<= 2\", must_pass = \"golden.csv\",\n"
              "           latency = \"<= 5 ms\" }");
  gate->add_option("model", o.gate.model, "ONNX file (default: the one that netmend.toml names)");
  gate->add_option("--against", o.gate.against, "An earlier model, a run folder of eval, or a baseline.json");
  gate->add_flag("--strict", o.gate.strict, "The worse end of each 95 % interval decides, not the value");
  gate->add_flag("--common", o.gate.common_only,
                 "The data is not that of the reference: compare only inputs that both name");
  with_case(gate, o.gate);
  gate->callback([&] { action = [&] { return app::gate(common, o.gate); }; });
}

}  // namespace

void add_everyday(CLI::App& app, Options& o, Action& action) {
  CLI::App* init = command(app, "init", "Write netmend.toml from the model and the data",
                           "  netmend init resnet20.onnx --data images:cifar\n"
                           "  netmend init risk.onnx --data csv:adult.csv,label=income\n"
                           "  netmend init model.onnx --data saved:test.data --update");
  init->add_option("model", o.init.model, "ONNX file")->required();
  init->add_option("--data", o.init.data, "Data spec; a name or folder with both splits gives train and test");
  init->add_option("--train", o.init.train, "Data spec of the training inputs");
  init->add_option("--test", o.init.test, "Data spec of the test inputs");
  init->add_option("--output", o.init.output, "The output to judge");
  init->add_flag("--update", o.init.update, "Add what is missing to an existing netmend.toml; nothing else changes");
  init->add_flag("--force", o.init.force, "Replace an existing netmend.toml");
  init->add_flag("--print", o.init.print, "Print it without writing it");
  init->callback([&] { action = [&] { return app::init(common, o.init); }; });

  CLI::App* check =
      command(app, "check", "Every check that fits model and data: what is wrong, where, how certain, what next",
              "  netmend check\n  netmend check resnet20.onnx --data images:cifar --budget quick\n"
              "  netmend check new.onnx --data mnist --against prod.onnx --fail-on serious");
  check->add_option("model", o.check.model, "ONNX file (default: the one that netmend.toml names)");
  check->add_option("--against", o.check.reference, "The older model, a run folder of eval, or a baseline.json");
  check
      ->add_option("--fail-on", o.check.fail_on,
                   "Exit with 1 from this level on: blocker, serious, minor, note or never")
      ->capture_default_str()
      ->check(CLI::IsMember({"blocker", "serious", "minor", "note", "never"}));
  check->add_flag("--list", o.check.list, "List all checks: what they look at and what they need");
  check->add_option("--only", o.check.only, "Only these checks, separated by commas (see --list)")->delimiter(',');
  check->add_option("--skip", o.check.skip, "Skip these checks, separated by commas")->delimiter(',');
  check->add_option("--program", o.check.programs,
                    "A check of your own: run as PROGRAM RUN_FOLDER, it prints findings as JSON; may be repeated");
  check->add_flag("--latency", o.check.latency, "Also measure how long predictions take (box plots in the report)");
  check->add_flag("--no-images", o.check.no_images, "No inputs in the report, only their names");
  with_case(check, o.check);
  check->callback([&] { action = [&] { return app::check(common, o.check); }; });

  CLI::App* compare =
      command(app, "compare", "Two models on the same data: regressions (right before, wrong now) and fixes",
              "  netmend compare prod.onnx new.onnx --data mnist:test\n"
              "  netmend compare netmend-runs/latest new.onnx\n"
              "  netmend compare prod.onnx prod.onnx -o baseline.json && netmend compare baseline.json new.onnx");
  compare->add_option("reference", o.compare.reference, "The older model, a run folder of eval, or a baseline.json")
      ->required();
  compare->add_option("model", o.compare.model, "The newer model (default: the one that netmend.toml names)");
  compare
      ->add_option("--margin", o.compare.margin,
                   "Margin in points by which the newer model may be worse (default: gate.overall_drop, else 0.5)")
      ->check(CLI::Range(0.0, 100.0));
  compare->add_flag("--common", o.compare.common_only,
                    "The data is not that of the reference: compare only inputs that both name");
  add_product(compare, "-o", o.compare.product, ".json",
              "Keep the newer model's predictions as a baseline.json, to be committed");
  with_case(compare, o.compare);
  compare->callback([&] { action = [&] { return app::compare(common, o.compare); }; });
  add_gate(app, o, action);
}

}  // namespace netmend::app
