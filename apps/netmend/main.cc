// The command line: which flags there are and what they fill. Everything is done elsewhere.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/error.h"
#include "base/pool.h"
#include "base/text.h"
#include "base/version.h"
#include "executor/runtime.h"
#include "netmend/commands.h"
#include "netmend/lab_study.h"

namespace netmend::app {
namespace {

Common common;

CLI::App* command(CLI::App& parent, const std::string& name, const std::string& about, const std::string& examples) {
  CLI::App* app = parent.add_subcommand(name, about);
  app->footer("Examples:\n" + examples);
  app->add_flag("--json", common.json, "Print one JSON document on stdout");
  app->add_flag("--quiet", common.quiet, "No progress, no notes");
  app->add_option("--seed", common.seed, "Of everything random")->capture_default_str();
  app->add_option("--jobs", common.jobs, "Worker threads (default: one a core); never changes a result")
      ->check(CLI::Range(0, 1024));
  app->add_option("--device", common.device, "cpu, cuda or cuda:N")->capture_default_str();
  app->add_option("--memory", common.memory, "Most memory for tensors, for example 8G (default: most of what is free)");
  return app;
}

void with_config(CLI::App* app) {
  app->add_option("--config", common.config, "netmend.toml to use (default: beside the model, then upwards)");
}

void with_run_folder(CLI::App* app) {
  app->add_option("--out", common.out, "The run folder (default: netmend-runs/<time>-<command>)");
}

struct Options {
  InfoOptions info;
  DataOptions data;
  EvalOptions eval;
  CheckOptions check;
  CompareOptions compare;
  InitOptions init;
  MatchOptions match;
  ApplyOptions apply;
  DiffOptions diff;
  WeightsOptions weights;
  OpenOptions open;
  LocateOptions locate;
  SlicesOptions slices;
  StressOptions stress;
  CoverageOptions coverage;
  ExplainOptions explain;
  TrainOptions train;
  DemoOptions demo;
  NewOptions fresh;
  RunOptions run;
  ConformanceOptions conformance;
  MergeOptions merge;
  PlantOptions plant;
  RepairOptions repair;
  StudyOptions planted, deepimportance;
  SbflStudyOptions sbfl;
  QualityStudyOptions quality;
  WhatIfOptions whatif;
  GateOptions gate;
  FailuresOptions failures;
  NextOptions next;
  WhyOptions why;
  AcceptOptions accept;
};

using Action = std::function<int()>;

void with_case(CLI::App* app, CaseOptions& o) {
  app->add_option("--data", o.data, "Data spec; a built-in name alone means its test split");
  app->add_option("--test", o.test, "Data spec of the test inputs");
  app->add_option("--output", o.output, "The output, or any value, that is judged");
  app->add_option("--metric", o.metric, "accuracy, balanced_accuracy, f1, auc, log_loss, mae or rmse");
  app->add_option("--limit", o.limit, "Only the first N inputs")->check(CLI::PositiveNumber);
  app->add_option("--budget", o.budget, "quick, normal, deep, or a time such as 90s, 30m: more data is sampled");
  app->add_flag("--all", o.all, "All inputs, however long it takes");
  app->add_flag("--anyway", o.anyway, "Go on although model and data do not seem to belong together");
  with_config(app);
  with_run_folder(app);
}

void add_everyday(CLI::App& app, Options& o, Action& action) {
  CLI::App* init = command(app, "init", "Write netmend.toml from what the model and the data tell",
                           "  netmend init resnet20.onnx --data images:cifar\n"
                           "  netmend init risk.onnx --data csv:adult.csv,label=income\n"
                           "  netmend init model.onnx --data saved:test.data --update");
  init->add_option("model", o.init.model, "ONNX file")->required();
  init->add_option("--data", o.init.data, "Data spec; a name or folder with both splits gives train and test");
  init->add_option("--train", o.init.train, "Data spec of the training inputs");
  init->add_option("--test", o.init.test, "Data spec of the test inputs");
  init->add_option("--output", o.init.output, "The output that is judged");
  init->add_flag("--update", o.init.update,
                 "Add what is missing to a netmend.toml that is there; nothing of it changes");
  init->add_flag("--force", o.init.force, "Replace a netmend.toml that is there");
  init->add_flag("--print", o.init.print, "Only print it");
  init->callback([&] { action = [&] { return app::init(common, o.init); }; });

  CLI::App* check =
      command(app, "check", "Everything that fits model and data: what is wrong, where, how sure, what next",
              "  netmend check\n  netmend check resnet20.onnx --data images:cifar --budget quick\n"
              "  netmend check new.onnx --data mnist --against prod.onnx --fail-on serious");
  check->add_option("model", o.check.model, "ONNX file (default: the one that netmend.toml names)");
  check->add_option("--train", o.check.train, "Data spec of the training inputs");
  check->add_option("--against", o.check.reference, "The older model, a run folder of eval, or a baseline.json");
  check
      ->add_option("--fail-on", o.check.fail_on,
                   "Exit with 1 from this level on: blocker, serious, minor, note or never")
      ->capture_default_str()
      ->check(CLI::IsMember({"blocker", "serious", "minor", "note", "never"}));
  check->add_flag("--no-images", o.check.no_images, "No inputs in the report, only their names");
  with_case(check, o.check);
  check->callback([&] { action = [&] { return app::check(common, o.check); }; });

  CLI::App* compare =
      command(app, "compare", "Two models on the same data: what got fixed, what got broken",
              "  netmend compare prod.onnx new.onnx --data mnist:test\n"
              "  netmend compare netmend-runs/latest new.onnx\n"
              "  netmend compare prod.onnx prod.onnx -o baseline.json && netmend compare baseline.json new.onnx");
  compare->add_option("reference", o.compare.reference, "The older model, a run folder of eval, or a baseline.json")
      ->required();
  compare->add_option("model", o.compare.model, "The newer model (default: the one that netmend.toml names)");
  compare
      ->add_option("--margin", o.compare.margin,
                   "Points that the newer one may be worse (default: gate.overall_drop, else 0.5)")
      ->check(CLI::Range(0.0, 100.0));
  compare->add_flag("--common", o.compare.common_only, "Other data than the reference's: only inputs that both name");
  compare->add_option("-o", o.compare.product, "Keep the newer model's answers as a baseline.json, to be committed");
  with_case(compare, o.compare);
  compare->callback([&] { action = [&] { return app::compare(common, o.compare); }; });
}

void add_gate(CLI::App& app, Options& o, Action& action) {
  CLI::App* gate =
      command(app, "gate", "Pass or fail against the limits in netmend.toml; for pipelines",
              "  netmend gate\n"
              "  netmend gate new.onnx --against prod.onnx --strict\n"
              "  netmend gate new.onnx --against baseline.json --out gate && cat gate/gate.md\n"
              "Limits stand in netmend.toml:\n"
              "  gate = { accuracy = \">= 0.90\", \"recall[truck]\" = \">= 0.94\", overall_drop = \"<= 0.5\",\n"
              "           \"accuracy[hour=night]\" = \">= 0.85\", class_drop = \"<= 2\", must_pass = \"golden.csv\" }");
  gate->add_option("model", o.gate.model, "ONNX file (default: the one that netmend.toml names)");
  gate->add_option("--against", o.gate.against, "An earlier model, a run folder of eval, or a baseline.json");
  gate->add_flag("--strict", o.gate.strict, "The worse end of each interval decides, not the value");
  gate->add_flag("--common", o.gate.common_only, "Other data than the reference's: only inputs that both name");
  with_case(gate, o.gate);
  gate->callback([&] { action = [&] { return app::gate(common, o.gate); }; });
}

void add_failures(CLI::App& app, Options& o, Action& action) {
  CLI::App* failures = command(app, "failures", "The table of wrong inputs: filter, sort, group, export",
                               "  netmend failures model.onnx --data mnist:test --on confusion=4:9\n"
                               "  netmend failures --group pair --sort confidence\n"
                               "  netmend failures --on labels --export relabel.csv");
  failures->add_option("model", o.failures.model, "ONNX file (default: the one that netmend.toml names)");
  failures->add_option("--on", o.failures.on,
                       "Only these: class=cat, confusion=cat:dog, slice=COLUMN=VALUE, inputs=FILE; or `labels`: labels "
                       "that look wrong");
  failures->add_option("--sort", o.failures.sort, "loss, confidence or margin; the largest first")
      ->capture_default_str();
  failures->add_option("--group", o.failures.group,
                       "Count by pair, by class, or by a column that the data keeps aside");
  failures->add_option("--top", o.failures.top, "Rows to show")->capture_default_str()->check(CLI::Range(1, 1000000));
  failures->add_option("--export,-o", o.failures.product, "All of them as a CSV file");
  with_case(failures, o.failures);
  failures->callback([&] { action = [&] { return app::failures(common, o.failures); }; });
}

void add_next(CLI::App& app, Options& o, Action& action) {
  CLI::App* next =
      command(app, "next", "Which unlabelled inputs to label first",
              "  netmend next model.onnx --pool images:unlabelled -o chosen.csv\n"
              "  netmend next model.onnx --pool mnist:train --limit 5000 --method coreset --data mnist:test\n"
              "  netmend next --pool mnist:train --on unit=conv1/3 --count 50");
  next->add_option("model", o.next.model, "ONNX file (default: the one that netmend.toml names)");
  next->add_option("--pool", o.next.pool, "Data spec of the inputs to choose from, or a folder of pictures")
      ->required();
  next->add_option("--method", o.next.method,
                   "gini, margin, entropy, max-p (unsure answers), mcp (unsure, spread over pairs of classes), coreset "
                   "(far from what is known), surprise (unlike training data)")
      ->capture_default_str();
  next->add_option("--count", o.next.count, "Inputs to choose")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000000000));
  next->add_option("--on", o.next.on, "unit=LAYER/NUMBER: inputs that drive this unit above what tests reach");
  next->add_option("--train", o.next.train, "Data spec of the training inputs, for surprise and coreset");
  next->add_option("--layer", o.next.layers, "For coreset and surprise (default: the last one before the answers)");
  next->add_option("-o", o.next.product, "The chosen inputs as a CSV file");
  with_case(next, o.next);
  next->callback([&] { action = [&] { return app::next(common, o.next); }; });
}

void add_why(CLI::App& app, Options& o, Action& action) {
  CLI::App* why = command(app, "why", "The story of a finding: cause, how to confirm, how to repair",
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
  accept->add_option("--until", o.accept.until, "The last day it holds, such as 2027-06-30 (default: no end)");
  accept->add_option("--level", o.accept.level,
                     "The finding returns when it is so many times as bad as today (default: 1.5x)");
  accept->add_option("--file", o.accept.file, "Names of inputs, in a column id or one a line");
  accept->add_flag("--list", o.accept.list, "What is accepted");
  accept->add_flag("--prune", o.accept.prune, "Take out what no longer occurs or has ended");
  accept->add_option("--run", o.accept.run, "Run folder of a check (default: the latest with findings)");
  with_config(accept);
  accept->callback([&] { action = [&] { return app::accept(common, o.accept); }; });
}

void add_locate(CLI::App& app, Options& o, Action& action) {
  CLI::App* locate = command(app, "locate", "Which units and layers are to blame when the model is wrong",
                             "  netmend locate model.onnx --data mnist:test\n"
                             "  netmend locate model.onnx --data mnist:test --on confusion=4:9 --measure dstar2\n"
                             "  netmend locate model.onnx --data mnist:test --layer conv2 --measure all --top 20");
  locate->add_option("model", o.locate.model, "ONNX file (default: the one that netmend.toml names)");
  locate
      ->add_option("--measure", o.locate.measure,
                   "ochiai, tarantula, dstar (dstarN for another exponent), jaccard, barinel, op2, zoltar, wong2, "
                   "gradient, counterfactual, auto, random, arachne (single weights), or all")
      ->capture_default_str();
  locate->add_option("--on", o.locate.on,
                     "Only these failures: class=cat, confusion=cat:dog (cats called dog), slice=COLUMN=VALUE, or "
                     "inputs=FILE with their names");
  locate->add_option("--layer", o.locate.layers,
                     "Only this layer; may be repeated (default: all but the output layer)");
  locate->add_option("--top", o.locate.top, "Units to show")->capture_default_str()->check(CLI::Range(1, 1000000));
  locate->add_option("--threshold", o.locate.threshold, "A unit is active when its mean value is above this")
      ->capture_default_str();
  locate->add_option("--tap", o.locate.tap, "Take a unit's value after (post) or before (pre) its activation")
      ->capture_default_str()
      ->check(CLI::IsMember({"pre", "post"}));
  locate->add_option("--resamples", o.locate.resamples, "Draws that show how far the ranking can be trusted")
      ->capture_default_str()
      ->check(CLI::Range(0, 10000));
  with_case(locate, o.locate);
  locate->callback([&] { action = [&] { return app::locate(common, o.locate); }; });
}

void add_stress(CLI::App& app, Options& o, Action& action) {
  CLI::App* stress = command(
      app, "stress", "New inputs from old ones: noise, transformations, attacks; how often does the answer change?",
      "  netmend stress model.onnx --data mnist:test --limit 500 --method fgsm,pgd --eps 0.1 -o adv.npz\n"
      "  netmend stress resnet20.onnx --data images:cifar/test --method pgd --eps 8/255 --round -o adv.npz\n"
      "  netmend stress model.onnx --data mnist:test --limit 500 --method all -o changed.npz");
  stress->add_option("model", o.stress.model, "ONNX file (default: the one that netmend.toml names)");
  stress
      ->add_option("--method", o.stress.method,
                   "One or several, with commas, or all that suit the data: white-noise, relevant-noise, random-noise; "
                   "fgsm, bim, pgd, jsma, cw; deepfault (with --unit); translate, rotate, scale, shear, contrast, "
                   "brightness, blur, pixels, gaussian, salt-pepper, speckle, occlusion; token-drop, token-swap, "
                   "token-replace; column-noise, column-permute, category-swap; fuzz (guided by --criteria, by itself)")
      ->required();
  stress->add_option("-o", o.stress.product, "The changed inputs, an NPZ file that opens as data")->required();
  stress->add_option("--eps", o.stress.eps,
                     "Size of the change as a part of the valid range of raw values, before mean and std: 0.1, 8/255 "
                     "(for bytes 8 levels). Deviation of noises, share of tokens, part of a column's deviation "
                     "(default: 0.1, noises 0.3, attacks on "
                     "colour images 8/255)");
  stress->add_option("--steps", o.stress.steps, "Iterations of bim (10), pgd (40) and cw (1000), rounds of fuzz (20)")
      ->check(CLI::Range(1, 1000000));
  stress->add_option("--step-size", o.stress.step_size, "Of bim (eps/5), pgd (eps/30), cw (0.01) and deepfault (1)");
  stress->add_option("--confidence", o.stress.confidence, "cw: by how much another class must win")
      ->check(CLI::Range(0.0, 1e6));
  stress->add_option("--unit", o.stress.units, "deepfault: units to drive, conv1/7,fc1/3")->delimiter(',');
  stress->add_option("--on", o.stress.on,
                     "Only these inputs: class=cat, slice=COLUMN=VALUE, or inputs=FILE with their names");
  stress->add_option("--from", o.stress.from, "Inputs to begin with: those that are answered right, or all")
      ->capture_default_str()
      ->check(CLI::IsMember({"right", "all"}));
  stress
      ->add_option("--tries", o.stress.tries,
                   "Draws of a random method for each input; the first that changes the answer counts")
      ->capture_default_str()
      ->check(CLI::Range(1, 10000));
  stress->add_option(
      "--criteria", o.stress.criteria,
      "Also say how much more of these is covered, and guide fuzz by them: NC, TKNC, TKNP, MCDC, NLC; with "
      "--profile also KMNC, NBC, SNAC, IDC (fuzz: NC,TKNC, or KMNC,NBC with --profile)");
  stress->add_option("--profile", o.stress.profile, "What netmend coverage --profile FILE learned from training data");
  stress->add_option("--layer", o.stress.layers,
                     "Criteria look at this layer; may be repeated (default: all but the output layer)");
  stress->add_option("--queue", o.stress.queue,
                     "fuzz: where its queue is kept; running again goes on from it (default: beside the product)");
  stress->add_option("--range", o.stress.range, "LOW:HIGH, the valid raw values (default: found in the data)");
  stress->add_flag("--round", o.stress.round, "Bytes stay bytes: values are rounded before they are judged and saved");
  stress
      ->add_option("--as-published", o.stress.as_published,
                   "deepfault, deephunter or art: as the original's code does it")
      ->check(CLI::IsMember({"deepfault", "deephunter", "art"}));
  with_case(stress, o.stress);
  stress->callback([&] { action = [&] { return app::stress(common, o.stress); }; });
}

void add_coverage(CLI::App& app, Options& o, Action& action) {
  CLI::App* coverage =
      command(app, "coverage", "What the tests never try, and which tests add nothing",
              "  netmend coverage model.onnx --data mnist\n"
              "  netmend coverage model.onnx --train images:train --test images:test --profile model.profile\n"
              "  netmend coverage model.onnx --data mnist --criteria IDC,KMNC:100,DSC --layer fc2 --m 8");
  coverage->add_option("model", o.coverage.model, "ONNX file (default: the one that netmend.toml names)");
  coverage->add_option("--train", o.coverage.train, "Data spec of the training inputs, which tests are held against");
  coverage
      ->add_option("--criteria", o.coverage.criteria,
                   "all, or some of IDC, NC, KMNC, NBC, SNAC, TKNC, TKNP, MCDC, NLC, LSC, DSC, MDSC; a parameter may "
                   "follow: NC:0.5, KMNC:100")
      ->capture_default_str();
  coverage->add_option("--layer", o.coverage.layers,
                       "Only this layer; may be repeated (default: all but the output layer). Surprise and important "
                       "units are of the last one");
  coverage->add_option("--m", o.coverage.important, "How many important units IDC combines; several with commas")
      ->capture_default_str();
  coverage->add_option("--tap", o.coverage.tap, "Take a unit's value after (post) or before (pre) its activation")
      ->capture_default_str()
      ->check(CLI::IsMember({"pre", "post"}));
  coverage
      ->add_option("--unit", o.coverage.unit,
                   "A unit is a feature map's mean (channel, the default) or each of its positions (element)")
      ->check(CLI::IsMember({"channel", "element"}));
  coverage->add_option("--profile", o.coverage.profile,
                       "What was learned from training data: read where the file exists, else written");
  coverage->add_option("--as-published", o.coverage.published,
                       "Do as this program does: deepimportance, sadl, nlc, dnn-tip, deepgini");
  coverage->add_flag("--zero-cluster", o.coverage.zero_cluster, "IDC: 0 is a cluster of its own");
  coverage->add_option("--on", o.coverage.on,
                       "Only these tests: class=cat, confusion=cat:dog, slice=COLUMN=VALUE, inputs=FILE");
  coverage->add_option("-o", o.coverage.product, "The tests worth keeping, as a list of their numbers");
  with_case(coverage, o.coverage);
  coverage->callback([&] { action = [&] { return app::coverage(common, o.coverage); }; });
}

void add_explain(CLI::App& app, Options& o, Action& action) {
  CLI::App* explain =
      command(app, "explain", "Which units the answers come from, and which parts of single inputs",
              "  netmend explain model.onnx --data mnist:test\n"
              "  netmend explain model.onnx --data mnist:test --layer conv2 --rule composite --input 7\n"
              "  netmend explain model.onnx --data mnist:test --on confusion=4:9 --method integrated");
  explain->add_option("model", o.explain.model, "ONNX file (default: the one that netmend.toml names)");
  explain->add_option("--method", o.explain.method, "lrp (layer-wise relevance propagation), gradient or integrated")
      ->capture_default_str();
  explain
      ->add_option("--rule", o.explain.rule,
                   "Of lrp: z, epsilon[:0.01], gamma[:0.25], alpha-beta[:3], flat, w2, composite, or by kind of layer: "
                   "dense=epsilon,conv=gamma:0.1,first=flat")
      ->capture_default_str();
  explain->add_option("--on", o.explain.on,
                      "Only these failures: class=cat, confusion=cat:dog (cats called dog), slice=COLUMN=VALUE, or "
                      "inputs=FILE with their names");
  explain->add_option("--answers", o.explain.answers, "Explain right, wrong or all answers")
      ->capture_default_str()
      ->check(CLI::IsMember({"right", "wrong", "all"}));
  explain->add_option("--layer", o.explain.layers,
                      "Only this layer; may be repeated (default: all but the output layer)");
  explain->add_option("--top", o.explain.top, "Units to show of each layer")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000000));
  explain->add_option("--tap", o.explain.tap, "Relevance after (post) or before (pre) the layer's activation")
      ->capture_default_str()
      ->check(CLI::IsMember({"pre", "post"}));
  explain->add_option("--input", o.explain.inputs,
                      "Draw the map of this input, by name or number; may be repeated (default: four of them)");
  explain->add_option("--steps", o.explain.steps, "Of integrated gradients")
      ->capture_default_str()
      ->check(CLI::Range(1, 10000));
  explain->add_flag("--float64", o.explain.float64, "Compute relevance in float64");
  with_case(explain, o.explain);
  explain->callback([&] { action = [&] { return app::explain(common, o.explain); }; });
}

void add_look(CLI::App& app, Options& o, Action& action) {
  CLI::App* info = command(app, "info", "Layers, shapes, units, operators of a model",
                           "  netmend info resnet20.onnx\n  netmend info bert.onnx --shape input_ids=1x128 --nodes\n"
                           "  netmend info detector.onnx --output /head/scores\n  netmend info model.onnx --json");
  info->add_option("model", o.info.model, "ONNX file")->required();
  info->add_option("--output", o.info.output, "Only the part up to this value");
  info->add_option("--shape", o.info.shapes, "NAME=1x3x224x224 for an input whose sizes the file leaves open");
  info->add_flag("--nodes", o.info.nodes, "Every node, not only the stages");
  info->callback([&] { action = [&] { return app::info(common, o.info); }; });

  CLI::App* data = command(app, "data", "What a data set holds: counts, shape, range, classes, contact sheet",
                           "  netmend data glyphs\n  netmend data mnist:test --sheet digits.png\n"
                           "  netmend data csv:adult.csv,label=income\n"
                           "  netmend data mnist:test --duplicates --against mnist:train --export drop.csv");
  data->add_option("spec", o.data.spec, "NAME[:split][,key=value…] or KIND:PATH[,key=value…]")->required();
  data->add_option("--sheet,-o", o.data.sheet, "Where the contact sheet goes (PNG; default: in the run folder)");
  data->add_option("--limit", o.data.limit, "Look at the first N inputs")->check(CLI::PositiveNumber);
  data->add_option("--count", o.data.count, "Inputs on the sheet")->capture_default_str()->check(CLI::Range(1, 2000));
  data->add_flag("--duplicates", o.data.duplicates, "Inputs that occur more than once, exactly or nearly");
  data->add_option("--against", o.data.against, "With --duplicates: which inputs also occur in this data?");
  data->add_option("--export", o.data.product, "With --duplicates: a CSV file of the inputs that could be dropped");
  with_run_folder(data);
  data->callback([&] {
    action = [&] { return o.data.duplicates ? app::data_duplicates(common, o.data) : app::data(common, o.data); };
  });

  CLI::App* slices = command(app, "slices", "Where the model is weak: groups, and rules over columns and properties",
                             "  netmend slices model.onnx --data mnist:test\n"
                             "  netmend slices risk.onnx --data adult:test --groups sex,race\n"
                             "  netmend slices risk.onnx --data adult:test --groups sex --threshold sweep");
  slices->add_option("model", o.slices.model, "ONNX file (default: the one that netmend.toml names)");
  slices->add_option("--groups", o.slices.groups,
                     "Columns whose values are compared, with commas (default: all kept aside)");
  slices->add_option("--top", o.slices.top, "Rules to look for")->capture_default_str()->check(CLI::Range(1, 100));
  slices->add_option("--least", o.slices.least, "Inputs that a group or slice must have")
      ->capture_default_str()
      ->check(CLI::Range(10, 1000000));
  slices
      ->add_option("--threshold", o.slices.threshold,
                   "`sweep`: metric and rates of groups at other thresholds, of two classes")
      ->check(CLI::IsMember({"sweep"}));
  with_case(slices, o.slices);
  slices->callback([&] { action = [&] { return app::slices(common, o.slices); }; });

  CLI::App* eval = command(app, "eval", "The metric, loss, per class and confusions of a model on data",
                           "  netmend eval model.onnx --data mnist:test\n"
                           "  netmend eval model.onnx --data npz:test.npz,x=images,y=labels,scale=1/255\n"
                           "  netmend eval model.onnx --data mnist:test --shard 1/2 -o part1.state");
  eval->add_option("model", o.eval.model, "ONNX file (default: the one that netmend.toml names)");
  with_case(eval, o.eval);
  eval->add_flag("--units", o.eval.units, "Also profile every unit (units.csv in the run folder)");
  eval->add_flag("--float64", o.eval.float64, "Compute in float64");
  eval->add_option("--shard", o.eval.shard, "Only part i/n; needs -o, and lab merge puts the parts together");
  eval->add_option("-o", o.eval.product, "With --shard: the state file");
  eval->callback([&] { action = [&] { return app::eval(common, o.eval); }; });

  CLI::App* match =
      command(app, "match", "Does the model answer as the framework did that trained it, and if not, why?",
              "  netmend match model.onnx --reference ref.npz\n"
              "  netmend match model.onnx --reference ref.npz --data images:test --layers\n"
              "  netmend match model.onnx --reference ref.npz --tolerance 1e-5 --json");
  match->add_option("model", o.match.model, "ONNX file")->required();
  match->add_option("--reference", o.match.reference, "NPZ file that save_data.reference wrote")->required();
  match->add_option(
      "--data", o.match.data,
      "The data that the reference was made of: are inputs prepared the same way? (default: the test data "
      "of netmend.toml)");
  match->add_option("--tolerance", o.match.tolerance, "Largest difference; relative where outputs are beyond 1")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  match->add_flag("--layers", o.match.layers, "Compare layers also when the outputs agree");
  with_config(match);
  match->callback([&] { action = [&] { return app::match(common, o.match); }; });
  add_locate(app, o, action);
  add_stress(app, o, action);
  add_coverage(app, o, action);
  add_explain(app, o, action);
}

void add_repair(CLI::App& app, Options& o, Action& action) {
  CLI::App* repair =
      command(app, "repair", "Search for a small change, confirm it on unseen data, write a new model",
              "  netmend repair model.onnx --data mnist:train -o fixed.onnx\n"
              "  netmend repair model.onnx --on confusion=cat:dog -o fixed.onnx --plan edits.json --review\n"
              "  netmend repair model.onnx --unit conv1/7 --method surgical --budget 2m -o fixed.onnx");
  repair->add_option("model", o.repair.model, "ONNX file (default: that of netmend.toml)");
  repair->add_option("--method", o.repair.method, "auto, bias, temperature, surgical, retrain, arachne, sbfl-mutation")
      ->capture_default_str();
  repair->add_option("-o", o.repair.product, "The repaired model; not written when it does not help on unseen data");
  repair->add_option("--plan", o.repair.plan, "The edits, as edits.json");
  repair->add_option("--on", o.repair.on,
                     "Which failures: class=cat, confusion=cat:dog, slice=column=value, inputs=FILE");
  repair
      ->add_option("--unit", o.repair.units, "Units whose weights may change, conv1/7,conv1/8 (default: searched for)")
      ->delimiter(',');
  repair->add_flag("--force", o.repair.force, "Write it although it does not help on unseen data");
  repair->add_flag("--review", o.repair.review, "Show the plan and ask before writing");
  repair->add_flag("--yes", o.repair.yes, "Answer yes");
  const std::string group = "Of sbfl-mutation";
  repair->add_option("--measure", o.repair.measure, "Measure of suspicion")->capture_default_str()->group(group);
  repair
      ->add_option("--mutation", o.repair.mutation,
                   "set-weights, delete, gauss-weights-one, gauss-weights, scale-weights, scale-weights-gauss-one, "
                   "scale-weights-gauss, set-bias, gauss-bias, scale-bias, scale-bias-gauss, scale-outgoing")
      ->capture_default_str()
      ->group(group);
  repair->add_option("--value", o.repair.value, "Of the mutation (default: its usual one)")->group(group);
  repair->add_option("--stop", o.repair.stop, "On loss, accuracy, both or either")->capture_default_str()->group(group);
  repair->add_option("--loss-offset", o.repair.loss_offset, "Loss that may be lost in a round")
      ->capture_default_str()
      ->group(group);
  repair->add_option("--accuracy-offset", o.repair.accuracy_offset, "The same for accuracy, a share")
      ->capture_default_str()
      ->group(group);
  repair->add_flag("--keep-offsets", o.repair.keep_offsets, "Do not halve the offsets each round")->group(group);
  repair->add_flag("--train-between", o.repair.train_between, "Train an epoch after each mutation")->group(group);
  repair->add_flag("--refresh", o.repair.refresh, "Count the spectrum anew before each round")->group(group);
  repair->add_option("--at-a-time", o.repair.at_a_time, "Units mutated in a round")
      ->capture_default_str()
      ->check(CLI::PositiveNumber)
      ->group(group);
  repair->add_flag("--as-published", o.repair.as_published, "As the listing does it, mistakes included")->group(group);
  with_case(repair, o.repair);
  repair->callback([&] { action = [&] { return repair_model(common, o.repair); }; });
}

void add_mend(CLI::App& app, Options& o, Action& action) {
  add_repair(app, o, action);
  CLI::App* apply = command(app, "apply", "Apply edits to a model's weights, or take them back",
                            "  netmend apply model.onnx edits.json -o fixed.onnx\n"
                            "  netmend apply fixed.onnx edits.json --revert -o model.onnx\n"
                            "  netmend diff model.onnx fixed.onnx -o edits.json");
  apply->add_option("model", o.apply.model, "ONNX file")->required();
  apply->add_option("edits", o.apply.edits, "edits.json that netmend wrote")->required();
  apply->add_option("-o", o.apply.product, "The changed model")->required();
  apply->add_flag("--revert", o.apply.revert, "Take the edits back");
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
  diff->add_option("-o", o.diff.product, "The edits that turn the first into the second (edits.json)");
  diff->add_option("--count", o.diff.count, "Rows of a table")->capture_default_str()->check(CLI::Range(1, 1000000));
  diff->callback([&] { action = [&] { return app::diff(common, o.diff); }; });

  CLI::App* weights = command(app, "weights", "All parameters of a model as an NPZ file",
                              "  netmend weights model.onnx -o weights.npz\n"
                              "  python3 -c 'import numpy; print(list(numpy.load(\"weights.npz\")))'");
  weights->add_option("model", o.weights.model, "ONNX file")->required();
  weights->add_option("-o", o.weights.product, "NPZ file")->required();
  weights->callback([&] { action = [&] { return app::weights(common, o.weights); }; });

  CLI::App* open = command(app, "open", "Show the report of the latest or a given run",
                           "  netmend open\n  netmend open netmend-runs/20260105-093000-check\n  netmend open --json");
  open->add_option("run", o.open.run, "Folder or name of a run (default: the latest that has a report)");
  open->callback([&] { action = [&] { return open_report(common, o.open); }; });
}

void add_train(CLI::App& app, Options& o, Action& action) {
  CLI::App* train = command(
      app, "train", "Train a model, or go on training one",
      "  netmend lab new lenet5 -o lenet5.onnx && netmend train lenet5.onnx --data mnist -o trained.onnx\n"
      "  netmend train trained.onnx --data mnist --keep-weights --epochs 1 --rate 1e-4 -o tuned.onnx\n"
      "  netmend train m.onnx --train npz:train.npz --test npz:test.npz --checkpoint m.ckpt --resume -o out.onnx");
  train->add_option("model", o.train.model, "ONNX file")->required();
  train->add_option("--data", o.train.data, "Built-in name: its train and test splits");
  train->add_option("--train", o.train.train, "Data spec of the training inputs");
  train->add_option("--test", o.train.test,
                    "Data spec to judge by after each epoch (default: a part of --train, see --validation)");
  train->add_option("-o", o.train.product, "The trained model")->required();
  train->add_option("--epochs", o.train.epochs, "Times through the data")
      ->capture_default_str()
      ->check(CLI::Range(0, 1000000));
  train->add_option("--batch", o.train.batch, "Inputs a step")->capture_default_str()->check(CLI::Range(1, 65536));
  train->add_option("--optimiser,--optimizer", o.train.optimiser, "sgd, momentum, adam, rmsprop")
      ->capture_default_str();
  train->add_option("--rate,--lr", o.train.rate, "Learning rate")->capture_default_str();
  train->add_option("--momentum", o.train.momentum, "Of momentum")->capture_default_str();
  train->add_option("--decay", o.train.decay, "Weight decay")->capture_default_str();
  train->add_option("--schedule", o.train.schedule, "constant, step:EPOCHS:FACTOR, cosine, linear")
      ->capture_default_str();
  train->add_option("--loss", o.train.loss, "cross-entropy, mse, bce (default: what fits labels and outputs)");
  train->add_option("--init", o.train.init, "glorot, he, uniform, normal: start afresh with new weights");
  train->add_flag("--keep-weights", o.train.keep_weights,
                  "Start from the file's weights (the default unless --init is given)");
  train->add_option("--validation", o.train.validation, "Share of --train kept aside when there is no --test")
      ->capture_default_str();
  train->add_option("--limit", o.train.limit, "Only the first N training inputs")->check(CLI::PositiveNumber);
  train->add_option("--checkpoint", o.train.checkpoint, "File that is written after each epoch");
  train->add_flag("--resume", o.train.resume, "Go on from --checkpoint when it is there");
  train->add_option("--output", o.train.output, "The output that is trained");
  with_config(train);
  with_run_folder(train);
  train->callback([&] { action = [&] { return app::train(common, o.train); }; });

  CLI::App* demo = command(app, "demo", "Makes its own data, trains a network, evaluates it; needs no file at all",
                           "  netmend demo\n  netmend demo --epochs 1");
  demo->add_option("--epochs", o.demo.epochs, "Times through the data")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  with_run_folder(demo);
  demo->callback([&] { action = [&] { return app::demo(common, o.demo); }; });
}

void add_plant(CLI::App& lab, Options& o, Action& action);
void add_study(CLI::App& lab, Options& o, Action& action);

void add_lab(CLI::App& app, Options& o, Action& action) {
  CLI::App* lab = app.add_subcommand("lab", "Tools for researchers");
  lab->require_subcommand(1);
  CLI::App* fresh =
      command(*lab, "new", "A named architecture as an ONNX file with fresh weights",
              "  netmend lab new lenet5 -o lenet5.onnx\n  netmend lab new mlp:784-64-10 -o small.onnx --seed 7");
  fresh
      ->add_option("name", o.fresh.name,
                   "lenet1 lenet4 lenet5 dnn1 dnn2 cnn1 cnn2 cifar-convnet resnet20 dave2 textcnn mlp:784-64-10")
      ->required();
  fresh->add_option("-o", o.fresh.product, "The model")->required();
  fresh->add_option("--init", o.fresh.init, "glorot, he, uniform, normal")->capture_default_str();
  fresh->callback([&] { action = [&] { return lab_new(common, o.fresh); }; });

  CLI::App* run = command(*lab, "run", "Run a model on tensors from NPY files",
                          "  netmend lab run model.onnx --input x=x.npy --out results\n"
                          "  netmend lab run model.onnx --input x=x.npy --output /features --out results");
  run->add_option("model", o.run.model, "ONNX file")->required();
  run->add_option("--input", o.run.inputs, "NAME=FILE.npy, one for each input");
  run->add_option("--output", o.run.outputs, "Values to write (default: the model's outputs)");
  run->add_flag("--float64", o.run.float64, "Compute in float64");
  run->add_option("--out", o.run.folder, "Folder for the outputs")->required();
  run->callback([&] { action = [&] { return lab_run(common, o.run); }; });

  CLI::App* conformance = command(*lab, "conformance", "Run ONNX backend test folders (model.onnx, test_data_set_*/)",
                                  "  netmend lab conformance /usr/share/libonnx-testdata/data/node\n"
                                  "  netmend lab conformance tests/node --filter conv --each");
  conformance->add_option("folder", o.conformance.folder, "Folder of test folders, or one of them")->required();
  conformance->add_option("--filter", o.conformance.filter, "Only folders whose name contains this");
  conformance->add_flag("--each", o.conformance.each, "A line for every case, not only those that do not pass");
  conformance->callback([&] { action = [&] { return lab_conformance(common, o.conformance); }; });

  CLI::App* merge =
      command(*lab, "merge", "Put the shards of a pass together", "  netmend lab merge part1.state part2.state");
  merge->add_option("states", o.merge.states, "State files")->required();
  merge->callback([&] { action = [&] { return lab_merge(common, o.merge); }; });
  add_plant(*lab, o, action);
  add_study(*lab, o, action);
}

void add_plant(CLI::App& lab, Options& o, Action& action) {
  CLI::App* plant =
      command(lab, "plant", "A known fault in a sound model, and the truth about it",
              "  netmend lab plant model.onnx --kind random-weights -o faulty.onnx --truth truth.json\n"
              "  netmend lab plant model.onnx --kind zeroed --count 3 --layer conv2 -o faulty.onnx\n"
              "  netmend lab plant model.onnx --kind scaled --data mnist:test --at-least 2 -o faulty.onnx");
  plant->add_option("model", o.plant.model, "ONNX file")->required();
  plant
      ->add_option("--kind", o.plant.kind,
                   "random-weights, zeroed, sign-flipped, saturated, scaled, layer-noise, swapped-classes, "
                   "poisoned-labels")
      ->required();
  plant->add_option("--count", o.plant.count, "Units to damage")->capture_default_str()->check(CLI::Range(1, 1000000));
  plant->add_option("--layer", o.plant.layer, "Only there (default: any but the output layer)");
  plant->add_option("--strength", o.plant.strength, "1 is a fault of the usual size")->capture_default_str();
  plant->add_option("--at-least", o.plant.at_least, "Draw again until it costs so many points of accuracy on --data")
      ->check(CLI::PositiveNumber);
  plant->add_option("-o", o.plant.product, "The faulty model")->required();
  plant->add_option("--truth", o.plant.truth, "What was planted, as JSON");
  with_case(plant, o.plant);
  plant->callback([&] { action = [&] { return lab_plant(common, o.plant); }; });
}

void add_study(CLI::App& lab, Options& o, Action& action) {
  CLI::App* study =
      lab.add_subcommand("study", "Questions that take many trials; stop at any moment, run again to go on");
  study->require_subcommand(1);
  CLI::App* planted =
      command(*study, "planted-faults", "Which measure finds, and which repair mends, a fault that was planted",
              "  netmend lab study planted-faults --models lenet5@glyphs --runs 2\n"
              "  netmend lab study planted-faults --models lenet4@mnist,lenet5@fashion-mnist --runs 10 --out study");
  o.planted.models = {"lenet5@glyphs"};
  planted
      ->add_option("--models", o.planted.models,
                   "Networks with data: NAME@DATA is trained first, FILE.onnx@DATA is taken as it is")
      ->delimiter(',')
      ->capture_default_str();
  planted->add_option("--kinds", o.planted.kinds, "Kinds of faults (default: all that damage one unit)")
      ->delimiter(',');
  planted->add_option("--repairs", o.planted.repairs, "Repair methods to judge, or none")
      ->delimiter(',')
      ->capture_default_str();
  planted->add_option("--runs", o.planted.runs, "Faults of each kind and network")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000));
  planted->add_option("--seconds", o.planted.seconds, "For each repair")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  planted->add_option("--out", common.out, "Folder of the study (default: netmend-study-planted-faults)");
  planted->callback([&] { action = [&] { return study_planted(common, o.planted); }; });
  CLI::App* paper = command(*study, "deepimportance",
                            "Does what was published on importance-driven coverage hold here? Tables 2 to 5",
                            "  netmend lab study deepimportance --quick\n"
                            "  netmend lab study deepimportance --models lenet1,lenet5 --runs 3 --out study");
  paper
      ->add_option("--models", o.deepimportance.models,
                   "lenet1, lenet4, lenet5, cifar (default: all; with --quick lenet1); trained first")
      ->delimiter(',');
  o.deepimportance.runs = 0;
  paper
      ->add_option("--runs", o.deepimportance.runs,
                   "Networks of each kind, each from another seed (default: 5; with --quick 1)")
      ->check(CLI::Range(1, 1000));
  paper->add_flag("--quick", o.deepimportance.quick,
                  "20,000 training inputs, 2,000 tests: a minute or two, to see how it works");
  paper->add_option("--out", common.out, "Folder of the study (default: netmend-study-deepimportance)");
  paper->callback([&] { action = [&] { return study_deepimportance(common, o.deepimportance); }; });

  CLI::App* sbfl =
      command(*study, "sbfl-repair",
              "The grid of the thesis on spectrum-based repair: its nine questions, its answers beside ours",
              "  netmend lab study sbfl-repair --sample 0.02\n"
              "  netmend lab study sbfl-repair --as-published --out published\n"
              "  netmend lab study sbfl-repair --trained --sample 0.01");
  sbfl->add_option("--networks", o.sbfl.networks, "Some of dnn1, dnn2, cnn1, cnn2")->delimiter(',');
  sbfl->add_option("--sample", o.sbfl.sample, "Share of the trajectories to run")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0));
  sbfl->add_option("--limit", o.sbfl.limit, "Only so many training inputs")->check(CLI::PositiveNumber);
  sbfl->add_flag("--as-published", o.sbfl.as_published, "As the thesis's listing does it, mistakes included");
  sbfl->add_flag("--trained", o.sbfl.trained, "The half with training between rounds");
  sbfl->add_flag("--both", o.sbfl.both, "With --trained: the untrained half too");
  sbfl->add_option("--out", common.out, "Folder of the study (default: netmend-study-sbfl-repair)");
  sbfl->callback([&] { action = [&] { return study_sbfl(common, o.sbfl); }; });
  CLI::App* quality =
      command(*study, "check-quality", "Is the check-up quiet on sound models, stable, and loud on planted faults?",
              "  netmend lab study check-quality\n"
              "  netmend lab study check-quality --models lenet5@glyphs --faulty lenet5@glyphs --out study");
  o.quality.models = {"lenet1@mnist",       "lenet4@mnist",         "lenet5@mnist",         "mlp:784-128-64-10@mnist",
                      "lenet5@glyphs",      "lenet1@glyphs",        "lenet4@fashion-mnist", "lenet5@fashion-mnist",
                      "dnn1@fashion-mnist", "cifar-convnet@cifar10"};
  quality->add_option("--models", o.quality.models, "Sound networks with data: NAME@DATA is trained first")
      ->delimiter(',')
      ->capture_default_str();
  quality->add_option("--faulty", o.quality.faulty, "Those that get faults (default: lenet4@mnist and lenet1@glyphs)")
      ->delimiter(',');
  quality->add_option("--kinds", o.quality.kinds, "Kinds of faults (default: all)")->delimiter(',');
  quality->add_option("--seconds", o.quality.seconds, "For each check-up")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  quality->add_option("--out", common.out, "Folder of the study (default: netmend-study-check-quality)");
  quality->callback([&] { action = [&] { return study_quality(common, o.quality); }; });
}

/// Numbers must be numbers: `nan` and `inf` would pass every comparison the wrong way.
void require_finite(CLI::App& app) {
  const CLI::Validator finite(
      [](std::string& text) -> std::string {
        double number = 0;
        return parse_double(text, number) && !std::isfinite(number) ? "is not a finite number" : "";
      },
      "");
  for (CLI::Option* option : app.get_options())
    if (option->get_type_name().rfind("FLOAT", 0) == 0) option->check(finite);
  for (CLI::App* sub : app.get_subcommands([](CLI::App*) { return true; })) require_finite(*sub);
}

int run(int argc, char** argv) {
  CLI::App app("netmend", "netmend");
  app.set_version_flag("--version", std::string("netmend ") + kVersion);
  app.require_subcommand(1);
  Options options;
  Action action;
  add_everyday(app, options, action);
  add_gate(app, options, action);
  add_failures(app, options, action);
  add_next(app, options, action);
  add_why(app, options, action);
  add_look(app, options, action);
  add_mend(app, options, action);
  add_train(app, options, action);
  add_lab(app, options, action);
  require_finite(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {
    return app.exit(done);
  } catch (const CLI::ParseError& error) {
    std::vector<std::string> names;
    for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
      names.push_back(sub->get_name());
    if (argc > 1 && argv[1][0] != '-' && std::find(names.begin(), names.end(), argv[1]) == names.end())
      fmt::print(stderr, "error: there is no command {}{}\n  netmend --help shows what there is.\n", printable(argv[1]),
                 did_you_mean(argv[1], names));
    else
      fmt::print(stderr, "error: {}\n  netmend {}--help shows what there is.\n", error.what(),
                 app.get_subcommands().empty() ? "" : app.get_subcommands()[0]->get_name() + " ");
    return 2;
  }
  common.arguments.assign(argv, argv + argc);
  executor::start_runtime(common.memory.empty() ? 0 : parse_bytes(common.memory));
  common.device = executor::check_device(common.device);
  stop_on_interrupt();
  return action();
}

}  // namespace
}  // namespace netmend::app

int main(int argc, char** argv) {
  try {
    return netmend::app::run(argc, argv);
  } catch (const netmend::InputError& error) {
    fmt::print(stderr, "error: {}\n", netmend::printable(error.what()));
    if (!error.hint().empty()) fmt::print(stderr, "  {}\n", netmend::printable(error.hint()));
    return 2;
  } catch (const netmend::Interrupted&) {
    fmt::print(stderr, "stopped\n");
    return 130;
  } catch (const std::exception& error) {
    std::string reason = error.what();
    reason.resize(std::min(reason.size(), reason.find('\n')));  // LibTorch adds its stack
    fmt::print(stderr,
               "internal error: {}\n  This is netmend's mistake, not yours. Please report it with the command line.\n",
               reason);
    return 3;
  }
}
