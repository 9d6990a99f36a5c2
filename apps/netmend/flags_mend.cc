// Flags of the commands that change models: repair, apply and their kin, train, and the demo.
#include "base/text.h"
#include "edits/operation_names.h"
#include "localise/measures.h"
#include "netmend/flags.h"
#include "repair/names.h"
#include "training/options.h"
#include "zoo/names.h"

namespace netmend::app {
namespace {

void add_repair(CLI::App& app, Options& o, Action& action) {
  CLI::App* repair =
      command(app, "repair", "Search for a small change, confirm it on a hold-out set, write a new model",
              "  netmend repair model.onnx --data mnist:train -o fixed.onnx\n"
              "  netmend repair model.onnx --on confusion=cat:dog -o fixed.onnx --plan edits.json --review\n"
              "  netmend repair model.onnx --unit conv1/7 --method surgical --budget 2m -o fixed.onnx");
  repair->add_option("model", o.repair.model, "ONNX file (default: the one that netmend.toml names)");
  repair->add_option("--method", o.repair.method, repair::method_names())->capture_default_str();
  add_product(repair, "-o", o.repair.product, ".onnx",
              "The repaired model; not written when it does not help on the hold-out set");
  add_product(repair, "--plan", o.repair.plan, ".json", "The edits, as edits.json");
  repair->add_option(
      "--on", o.repair.on,
      "Only these failures: class=cat, confusion=cat:dog (cats predicted as dog), slice=COLUMN=VALUE, inputs=FILE");
  repair
      ->add_option("--unit", o.repair.units, "Units whose weights may change, conv1/7,conv1/8 (default: searched for)")
      ->delimiter(',');
  repair->add_flag("--force", o.repair.force, "Write it even if it does not help on the hold-out set");
  repair->add_flag("--review", o.repair.review, "Show the plan and ask before writing");
  repair->add_flag("--yes", o.repair.yes, "Answer yes to the question of --review");
  const std::string group = "Options of --method sbfl-mutation";
  repair->add_option("--measure", o.repair.measure, "Suspiciousness measure: " + localise::measure_names())
      ->capture_default_str()
      ->group(group);
  repair->add_option("--mutation", o.repair.mutation, edits::operation_names())->capture_default_str()->group(group);
  repair->add_option("--value", o.repair.value, "Parameter of the mutation (default: that of the mutation)")
      ->group(group);
  repair->add_option("--stop", o.repair.stop, "When to stop: on loss, accuracy, both or either")
      ->capture_default_str()
      ->group(group);
  repair->add_option("--loss-offset", o.repair.loss_offset, "By how much the loss may rise in a round")
      ->capture_default_str()
      ->group(group);
  repair
      ->add_option("--accuracy-offset", o.repair.accuracy_offset,
                   "By how much the accuracy may fall in a round, as a fraction")
      ->capture_default_str()
      ->group(group);
  repair->add_flag("--keep-offsets", o.repair.keep_offsets, "Do not halve the offsets each round")->group(group);
  repair->add_flag("--train-between", o.repair.train_between, "Train for an epoch after each mutation")->group(group);
  repair->add_flag("--refresh", o.repair.refresh, "Count active units again before each round")->group(group);
  repair->add_option("--at-a-time", o.repair.at_a_time, "Units mutated in a round")
      ->capture_default_str()
      ->check(above_zero())
      ->group(group);
  repair->add_flag("--as-published", o.repair.as_published,
                   "sbfl-mutation, arachne, arachne-pso: do it as the published program does, mistakes included");
  with_case(repair, o.repair);
  repair->callback([&] { action = [&] { return repair_model(common, o.repair); }; });
}

}  // namespace

void add_mend(CLI::App& app, Options& o, Action& action) {
  add_repair(app, o, action);
  CLI::App* apply = command(app, "apply", "Apply edits to a model's weights, or revert them",
                            "  netmend apply model.onnx edits.json -o fixed.onnx\n"
                            "  netmend apply fixed.onnx edits.json --revert -o model.onnx\n"
                            "  netmend diff model.onnx fixed.onnx -o edits.json");
  apply->add_option("model", o.apply.model, "ONNX file")->required();
  apply->add_option("edits", o.apply.edits, "edits.json that netmend wrote")->required();
  add_product(apply, "-o", o.apply.product, ".onnx", "The changed model")->required();
  apply->add_flag("--revert", o.apply.revert, "Revert the edits");
  apply->callback([&] { action = [&] { return app::apply(common, o.apply); }; });

  CLI::App* whatif = command(app, "whatif", "What edits would do on data, without writing a model",
                             "  netmend whatif model.onnx edits.json --data mnist:test\n"
                             "  netmend whatif model.onnx edits.json --data mnist:test --json");
  whatif->add_option("model", o.whatif.model, "ONNX file")->required();
  whatif->add_option("edits", o.whatif.edits, "edits.json that netmend wrote")->required();
  with_case(whatif, o.whatif);
  whatif->callback([&] { action = [&] { return whatif_edits(common, o.whatif); }; });

  CLI::App* diff = command(app, "diff", "Which parameters, layers and units differ between two models",
                           "  netmend diff model.onnx fixed.onnx\n  netmend diff model.onnx fixed.onnx --json\n"
                           "  netmend diff model.onnx fixed.onnx -o edits.json");
  diff->add_option("before", o.diff.before, "ONNX file")->required();
  diff->add_option("after", o.diff.after, "ONNX file of the same structure")->required();
  add_product(diff, "-o", o.diff.product, ".json", "The edits that turn the first into the second (edits.json)");
  diff->add_option("--count", o.diff.count, "Rows of each table")->capture_default_str()->check(CLI::Range(1, 1000000));
  diff->callback([&] { action = [&] { return app::diff(common, o.diff); }; });

  CLI::App* weights = command(app, "weights", "All parameters of a model as an NPZ file",
                              "  netmend weights model.onnx -o weights.npz\n"
                              "  python3 -c 'import numpy; print(list(numpy.load(\"weights.npz\")))'");
  weights->add_option("model", o.weights.model, "ONNX file")->required();
  add_product(weights, "-o", o.weights.product, ".npz", "NPZ file")->required();
  weights->callback([&] { action = [&] { return app::weights(common, o.weights); }; });
}

void add_train(CLI::App& app, Options& o, Action& action) {
  CLI::App* train = command(
      app, "train", "Train a model, or continue training one",
      "  netmend lab new lenet5 -o lenet5.onnx && netmend train lenet5.onnx --data mnist -o trained.onnx\n"
      "  netmend train trained.onnx --data mnist --keep-weights --epochs 1 --rate 1e-4 -o tuned.onnx\n"
      "  netmend train m.onnx --train npz:train.npz --test npz:test.npz --checkpoint m.ckpt --resume -o out.onnx");
  train->add_option("model", o.train.model, "ONNX file")->required();
  train->add_option("--data", o.train.data, "Built-in name: its train and test splits");
  train->add_option("--train", o.train.train, "Data spec of the training inputs");
  train->add_option("--test", o.train.test,
                    "Data spec to validate on after each epoch (default: a share of --train, see --validation)");
  add_product(train, "-o", o.train.product, ".onnx", "The trained model")->required();
  train->add_option("--epochs", o.train.epochs, "Epochs: passes over the training data")
      ->capture_default_str()
      ->check(CLI::Range(0, 1000000));
  train->add_option("--batch", o.train.batch, "Batch size")->capture_default_str()->check(CLI::Range(1, 65536));
  train->add_option("--optimiser,--optimizer", o.train.optimiser, training::method_names())->capture_default_str();
  train->add_option("--rate,--lr", o.train.rate, "Learning rate")->capture_default_str();
  train->add_option("--momentum", o.train.momentum, "Momentum coefficient")->capture_default_str();
  train->add_option("--decay", o.train.decay, "Weight decay")->capture_default_str();
  train->add_option("--clip", o.train.clip, "Largest norm of the gradient of all parameters together; 0: any")
      ->capture_default_str();
  train
      ->add_option("--schedule", o.train.schedule,
                   "Learning-rate schedule: constant, step:EPOCHS:FACTOR, cosine, linear")
      ->capture_default_str();
  train->add_option("--loss", o.train.loss, training::loss_names() + " (default: what fits labels and outputs)");
  train->add_option("--init", o.train.init, "Start from fresh weights: " + join(zoo::scheme_names(), ", "));
  train->add_flag("--keep-weights", o.train.keep_weights,
                  "Start from the weights of the file (the default unless --init is given)");
  train
      ->add_option("--validation", o.train.validation,
                   "Share of --train that is used for validation when there is no --test")
      ->capture_default_str();
  train->add_option("--limit", o.train.limit, "Only the first N training inputs")->check(above_zero());
  add_product(train, "--checkpoint", o.train.checkpoint, "", "File that is written after each epoch");
  train->add_flag("--resume", o.train.resume, "Continue from --checkpoint if the file exists");
  train->add_option("--output", o.train.output, "The output that is trained");
  train->add_flag("--heal", o.train.heal,
                  "Where the record shows a problem, look for settings that solve it (netmend heal)");
  with_config(train);
  with_run_folder(train);
  train->callback([&] { action = [&] { return app::train(common, o.train); }; });

  CLI::App* heal =
      command(app, "heal", "Look for settings under which a training works, and show that it does",
              "  netmend train m.onnx --data mnist --rate 5 -o t.onnx; netmend heal -o healed.onnx\n"
              "  netmend watch --out run1 -- python train.py; netmend heal run1 --tries 6 --ask -- python train.py");
  heal->add_option("run", o.heal.run, "Run folder of netmend train or netmend watch (default: the newest record)");
  heal->add_option("program", o.heal.program,
                   "Programs: after --, what to run, as it was watched; nothing is run because a run folder names it");
  heal->add_option("--tries", o.heal.tries, "At most this many trainings")->capture_default_str()->check(above_zero());
  heal->add_option("--seconds", o.heal.seconds, "Programs: longest time in seconds that an attempt may take")
      ->capture_default_str()
      ->check(above_zero());
  heal->add_flag("--ask", o.heal.ask, "Ask before each attempt");
  heal->add_flag("--random", o.heal.random, "Random search over the same settings at equal cost beside it");
  heal->add_flag("--in-place", o.heal.in_place, "Programs: run in their own folder, not in a copy of it");
  heal->add_option("--thresholds", o.heal.thresholds, "TOML file with thresholds of rules");
  heal->add_option("--python", o.heal.python, "Python interpreter that reads programs which expose no settings")
      ->capture_default_str();
  add_product(heal, "-o", o.heal.product, ".onnx", "The model, if the healed training is one of netmend train");
  with_run_folder(heal);
  heal->callback([&] { action = [&] { return heal_run(common, o.heal); }; });

  CLI::App* demo = command(app, "demo", "Make data, train a network, plant faults, find and repair them; needs no file",
                           "  netmend demo\n  netmend demo --epochs 1");
  demo->add_option("--epochs", o.demo.epochs, "Epochs of training")->capture_default_str()->check(CLI::Range(1, 1000));
  with_run_folder(demo);
  demo->callback([&] { action = [&] { return app::demo(common, o.demo); }; });
}

}  // namespace netmend::app
