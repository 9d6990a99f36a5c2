// Flags of the commands that look at models and data.
#include "adequacy/choice.h"
#include "localise/measures.h"
#include "mutants/operators.h"
#include "netmend/flags.h"

namespace netmend::app {
namespace {

void add_failures(CLI::App& app, Options& o, Action& action) {
  CLI::App* failures = command(app, "failures", "The table of wrong predictions: filter, sort, group, export",
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
                       "Count by pair (label and prediction), by class, or by a group column");
  failures->add_option("--top", o.failures.top, "Rows to show")->capture_default_str()->check(CLI::Range(1, 1000000));
  add_product(failures, "--export,-o", o.failures.product, ".csv", "Write all of them to a CSV file");
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
  next->add_option("--pool", o.next.pool, "Data spec of the inputs to choose from, or a folder of images")->required();
  next->add_option(
          "--method", o.next.method,
          "gini, margin, entropy, max-p (uncertain predictions), mcp (uncertain, spread over pairs of classes), "
          "coreset (far from the inputs of --train or --data), surprise (unlike training data), mutation (kill mutants "
          "that the tests do not kill)")
      ->capture_default_str();
  next->add_option("--count", o.next.count, "Inputs to choose")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000000000));
  next->add_option("--on", o.next.on, "unit=LAYER/NUMBER: inputs with a higher activation of this unit than any test");
  next->add_option("--layer", o.next.layers,
                   "Layer for coreset and surprise (default: the last one before the output)");
  add_product(next, "-o", o.next.product, ".csv", "Write the chosen inputs to a CSV file");
  with_case(next, o.next);
  next->callback([&] { action = [&] { return app::next(common, o.next); }; });
}

void add_locate(CLI::App& app, Options& o, Action& action) {
  CLI::App* locate = command(app, "locate", "Which units and layers are to blame when the model is wrong",
                             "  netmend locate model.onnx --data mnist:test\n"
                             "  netmend locate model.onnx --data mnist:test --on confusion=4:9 --measure dstar2\n"
                             "  netmend locate model.onnx --data mnist:test --layer conv2 --measure all --top 20");
  locate->add_option("model", o.locate.model, "ONNX file (default: the one that netmend.toml names)");
  locate
      ->add_option("--measure", o.locate.measure,
                   "How suspicious a unit is. auto: by ablation and gradient, the most reliable. ochiai to wong2 count "
                   "on how many wrong and correct predictions a unit is active. One of " +
                       localise::measure_names() +
                       "; dstarN for another exponent. arachne ranks single weights; all: "
                       "every measure")
      ->capture_default_str();
  locate->add_option(
      "--on", o.locate.on,
      "Only these failures: class=cat, confusion=cat:dog (cats predicted as dog), slice=COLUMN=VALUE, or "
      "inputs=FILE with their names");
  locate->add_option("--layer", o.locate.layers,
                     "Only this layer; may be repeated (default: all but the output layer)");
  locate->add_option("--top", o.locate.top, "Units to show")->capture_default_str()->check(CLI::Range(1, 1000000));
  locate->add_option("--threshold", o.locate.threshold, "A unit is active when its mean value is above this")
      ->capture_default_str();
  locate->add_option("--tap", o.locate.tap, "Take a unit's value after (post) or before (pre) its activation")
      ->capture_default_str()
      ->check(CLI::IsMember({"pre", "post"}));
  locate
      ->add_option("--resamples", o.locate.resamples,
                   "Bootstrap resamples of the inputs, for the uncertainty of the ranking")
      ->capture_default_str()
      ->check(CLI::Range(0, 10000));
  with_case(locate, o.locate);
  locate->callback([&] { action = [&] { return app::locate(common, o.locate); }; });
}

void add_stress(CLI::App& app, Options& o, Action& action) {
  CLI::App* stress = command(
      app, "stress", "New inputs from old ones: noise, transformations, attacks; how often does the prediction change?",
      "  netmend stress model.onnx --data mnist:test --limit 500 --method fgsm,pgd --eps 0.1 -o adv.npz\n"
      "  netmend stress resnet20.onnx --data images:cifar/test --method pgd --eps 8/255 --round -o adv.npz\n"
      "  netmend stress model.onnx --data mnist:test --limit 500 --method all -o changed.npz");
  stress->add_option("model", o.stress.model, "ONNX file (default: the one that netmend.toml names)");
  stress
      ->add_option(
          "--method", o.stress.method,
          "One or several, separated by commas, or all that suit the data: white-noise, relevant-noise, random-noise; "
          "fgsm, bim, pgd, jsma, cw; deepfault (with --unit); translate, rotate, scale, shear, contrast, "
          "brightness, blur, pixels, gaussian, salt-pepper, speckle, occlusion; token-drop, token-swap, "
          "token-replace; column-noise, column-permute, category-swap; fuzz (guided by --criteria; not among all)")
      ->required();
  add_product(stress, "-o", o.stress.product, ".npz", "The new inputs, an NPZ file that opens as data")->required();
  stress->add_option("--eps", o.stress.eps,
                     "Size ε of the perturbation as a fraction of the valid range of raw values, before mean and std: "
                     "0.1, 8/255 (for bytes 8 levels); for noise its standard deviation, for text the share of tokens, "
                     "for tables a fraction of each column's standard deviation (default: 0.1, noise 0.3, attacks on "
                     "colour images 8/255)");
  stress->add_option("--steps", o.stress.steps, "Iterations of bim (10), pgd (40) and cw (1000), rounds of fuzz (20)")
      ->check(CLI::Range(1, 1000000));
  stress->add_option("--step-size", o.stress.step_size,
                     "Step size of bim (eps/5), pgd (4 eps / steps), cw (0.01) and deepfault (1)");
  stress->add_option("--confidence", o.stress.confidence, "cw: by how much the logit of another class must be higher")
      ->check(CLI::Range(0.0, 1e6));
  stress
      ->add_option("--unit", o.stress.units, "deepfault: units whose activations it raises, for example conv1/7,fc1/3")
      ->delimiter(',');
  stress->add_option("--on", o.stress.on,
                     "Only these inputs: class=cat, slice=COLUMN=VALUE, or inputs=FILE with their names");
  stress->add_option("--from", o.stress.from, "Inputs to start from: those predicted correctly (right), or all")
      ->capture_default_str()
      ->check(CLI::IsMember({"right", "all"}));
  stress
      ->add_option("--tries", o.stress.tries,
                   "Draws of a random method per input; the first that changes the prediction counts")
      ->capture_default_str()
      ->check(CLI::Range(1, 10000));
  stress->add_option(
      "--criteria", o.stress.criteria,
      "Also say how much more of these criteria is covered, and guide fuzz by them: NC, TKNC, TKNP, MCDC, NLC; with "
      "--profile also KMNC, NBC, SNAC, IDC (fuzz: NC,TKNC, or KMNC,NBC with --profile)");
  stress->add_option("--profile", o.stress.profile,
                     "Profile of the training data that netmend coverage --profile wrote");
  stress->add_option("--layer", o.stress.layers,
                     "Measure --criteria on this layer; may be repeated (default: all but the output layer)");
  add_product(stress, "--queue", o.stress.queue, "",
              "fuzz: file that keeps its queue, from which the next run continues (default: beside the -o file)");
  stress->add_option("--range", o.stress.range, "LOW:HIGH, the range of valid raw values (default: found in the data)");
  stress->add_flag("--round", o.stress.round, "Bytes stay bytes: values are rounded before they are judged and saved");
  stress
      ->add_option("--as-published", o.stress.as_published,
                   "deepfault, deephunter, art or cleverhans: compute as the original code does")
      ->check(CLI::IsMember({"deepfault", "deephunter", "art", "cleverhans"}));
  with_case(stress, o.stress);
  stress->callback([&] { action = [&] { return app::stress(common, o.stress); }; });
}

void add_mutate(CLI::App& app, Options& o, Action& action) {
  CLI::App* mutate =
      command(app, "mutate", "Would the tests notice a bug? Mutants of the network, and which of them the tests kill",
              "  netmend mutate model.onnx --data mnist\n"
              "  netmend mutate model.onnx --data mnist:test --sample 2000 --kill strict\n"
              "  netmend mutate model.onnx --data mnist --operators muff,gf --layer fc1");
  mutate->add_option("model", o.mutate.model, "ONNX file (default: the one that netmend.toml names)");
  mutate
      ->add_option("--operators", o.mutate.operators,
                   "By name or source, separated by commas: deepmutation, deepmutation++, munn, muff, deepmufl; " +
                       mutants::operator_names() + ". all: those of the first three")
      ->capture_default_str();
  mutate
      ->add_option("--kill", o.mutate.kill,
                   "class (a correct prediction of a class becomes wrong; DeepMutation), strict (any prediction "
                   "changes) or statistical (DeepCrime: accuracy falls over the trainings that --original names)")
      ->capture_default_str();
  mutate
      ->add_option("--sample", o.mutate.sample,
                   "Number of mutants, drawn from the operators in turn; 0 for one mutant per place")
      ->capture_default_str()
      ->check(CLI::Range(0, 1000000));
  mutate->add_option("--layer", o.mutate.layers, "Only this layer; may be repeated (default: all)");
  mutate->add_option("--original", o.mutate.originals,
                     "A further training of the same network, for muff and --kill statistical; may be repeated");
  add_product(mutate, "-o", o.mutate.product, ".csv", "Write all mutants to a CSV file");
  with_case(mutate, o.mutate);
  mutate->callback([&] { action = [&] { return app::mutate(common, o.mutate); }; });
}

void add_coverage(CLI::App& app, Options& o, Action& action) {
  CLI::App* coverage = command(
      app, "coverage", "What the tests never cover, and which of them add to what is covered",
      "  netmend coverage model.onnx --data mnist\n"
      "  netmend coverage model.onnx --train images:train --test images:test --profile model.profile\n"
      "  netmend coverage model.onnx --data mnist --criteria IDC,KMNC:100,DSC --layer fc2 --m 8\n"
      "  netmend coverage model.onnx --data mnist:test --profile model.profile --shard 1/2 -o part1.state\n"
      "  netmend coverage model.onnx --data mnist:test --profile model.profile --merge part1.state part2.state");
  coverage->add_option("model", o.coverage.model, "ONNX file (default: the one that netmend.toml names)");
  coverage
      ->add_option("--criteria", o.coverage.criteria,
                   "all, or some of " + adequacy::criteria_names() + "; a parameter may follow: NC:0.5, KMNC:100")
      ->capture_default_str();
  coverage->add_option("--layer", o.coverage.layers,
                       "Only this layer; may be repeated (default: all but the output layer). Surprise and important "
                       "units use the last one");
  coverage
      ->add_option("--m", o.coverage.important,
                   "How many important units IDC combines; several values separated by commas")
      ->capture_default_str();
  coverage
      ->add_option("--tap", o.coverage.tap,
                   "Take a unit's value after (post, the default but for --as-published nlc) or before (pre) its "
                   "activation")
      ->check(CLI::IsMember({"pre", "post"}));
  coverage
      ->add_option("--unit", o.coverage.unit,
                   "A unit is a feature map's mean (channel, the default) or each of its positions (element)")
      ->check(CLI::IsMember({"channel", "element"}));
  add_product(coverage, "--profile", o.coverage.profile, "",
              "Profile of the training data: read where the file exists, else written");
  coverage->add_option("--as-published", o.coverage.published,
                       "Compute as the code of this program does: deepimportance, sadl, nlc, dnn-tip, deepgini");
  coverage->add_flag("--zero-cluster", o.coverage.zero_cluster, "IDC: 0 is a cluster of its own");
  coverage->add_option("--on", o.coverage.on,
                       "Only these tests: class=cat, confusion=cat:dog, slice=COLUMN=VALUE, inputs=FILE");
  add_product(coverage, "-o", o.coverage.product, "",
              "The tests worth keeping, as a list of their numbers; with --shard: the state file");
  coverage->add_option("--shard", o.coverage.shard,
                       "Only part i/n of the tests; needs -o, and --merge takes all parts");
  coverage->add_option("--merge", o.coverage.parts, "Files of --shard, in place of a pass over the tests");
  with_case(coverage, o.coverage);
  coverage->callback([&] { action = [&] { return app::coverage(common, o.coverage); }; });
}

void add_explain(CLI::App& app, Options& o, Action& action) {
  CLI::App* explain =
      command(app, "explain", "Which units predictions come from, and which parts of single inputs",
              "  netmend explain model.onnx --data mnist:test\n"
              "  netmend explain model.onnx --data mnist:test --layer conv2 --rule composite --input 7\n"
              "  netmend explain model.onnx --data mnist:test --on confusion=4:9 --method integrated");
  explain->add_option("model", o.explain.model, "ONNX file (default: the one that netmend.toml names)");
  explain->add_option("--method", o.explain.method, "lrp (layer-wise relevance propagation), gradient or integrated")
      ->capture_default_str();
  explain->add_option(
      "--rule", o.explain.rule,
      "Of lrp: z, epsilon[:0.01], gamma[:0.25], alpha-beta[:3], flat, w2, composite, or by kind of layer: "
      "dense=epsilon,conv=gamma:0.1,first=flat (default: composite for convolutions on images, gamma for "
      "other convolutions, epsilon for everything else)");
  explain
      ->add_option("--bias", o.explain.bias,
                   "Of lrp: a bias keeps its share of relevance (keep), or its inputs get it, each as much (spread)")
      ->capture_default_str()
      ->check(CLI::IsMember({"keep", "spread"}));
  explain->add_option(
      "--on", o.explain.on,
      "Only these failures: class=cat, confusion=cat:dog (cats predicted as dog), slice=COLUMN=VALUE, or "
      "inputs=FILE with their names");
  explain
      ->add_option("--predictions,--answers", o.explain.predictions,
                   "Explain correct (right), wrong or all predictions")
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
  explain->add_option("--steps", o.explain.steps, "Steps of integrated gradients")
      ->capture_default_str()
      ->check(CLI::Range(1, 10000));
  explain
      ->add_option("--format", o.explain.format,
                   "csv: units by class; npz: also relevance.npz, with the relevance of units and of all inputs (or of "
                   "those that --input names) as arrays")
      ->capture_default_str()
      ->check(CLI::IsMember({"csv", "npz"}));
  explain->add_flag("--float64", o.explain.float64, "Compute relevance in float64");
  with_case(explain, o.explain);
  explain->callback([&] { action = [&] { return app::explain(common, o.explain); }; });
}

}  // namespace

void add_look(CLI::App& app, Options& o, Action& action) {
  CLI::App* info = command(app, "info", "Layers, shapes, units, operators of a model",
                           "  netmend info resnet20.onnx\n  netmend info bert.onnx --shape input_ids=1x128 --nodes\n"
                           "  netmend info detector.onnx --output /head/scores\n  netmend info model.onnx --json");
  info->add_option("model", o.info.model, "ONNX file")->required();
  info->add_option("--output", o.info.output, "Only the part up to this value");
  info->add_option("--shape", o.info.shapes, "NAME=1x3x224x224 for an input whose sizes the file leaves open");
  info->add_flag("--nodes", o.info.nodes, "Every node, not only the stages");
  info->add_flag("--cost", o.info.cost, "FLOP, weights and memory of one pass, by its shapes");
  info->callback([&] { action = [&] { return app::info(common, o.info); }; });

  CLI::App* data = command(app, "data", "What a data set holds: counts, shape, range, classes, contact sheet",
                           "  netmend data glyphs\n  netmend data mnist:test --sheet digits.png\n"
                           "  netmend data csv:adult.csv,label=income\n"
                           "  netmend data mnist:test --duplicates --against mnist:train --export drop.csv");
  data->add_option("spec", o.data.spec, "NAME[:split][,key=value…] or KIND:PATH[,key=value…]")->required();
  add_product(data, "--sheet,-o", o.data.sheet, ".png", "File of the contact sheet (PNG; default: in the run folder)");
  data->add_option("--limit", o.data.limit, "Look at the first N inputs")->check(above_zero());
  data->add_option("--count", o.data.count, "Inputs on the sheet")->capture_default_str()->check(CLI::Range(1, 2000));
  data->add_flag("--duplicates", o.data.duplicates, "Inputs that occur more than once, exactly or nearly");
  data->add_option("--against", o.data.against, "With --duplicates: which inputs also occur in this data?");
  add_product(data, "--export", o.data.product, ".csv",
              "With --duplicates: a CSV file of the inputs that could be dropped");
  with_run_folder(data);
  data->callback([&] {
    action = [&] { return o.data.duplicates ? app::data_duplicates(common, o.data) : app::data(common, o.data); };
  });

  CLI::App* slices =
      command(app, "slices", "Weak slices and subgroups: groups, and rules over columns and properties of inputs",
              "  netmend slices model.onnx --data mnist:test\n"
              "  netmend slices risk.onnx --data adult:test --groups sex,race\n"
              "  netmend slices risk.onnx --data adult:test --groups sex --threshold sweep");
  slices->add_option("model", o.slices.model, "ONNX file (default: the one that netmend.toml names)");
  slices->add_option("--groups", o.slices.groups,
                     "Group columns to compare, separated by commas (default: all group columns)");
  slices->add_option("--top", o.slices.top, "Number of rules to look for")
      ->capture_default_str()
      ->check(CLI::Range(1, 100));
  slices->add_option("--least", o.slices.least, "Smallest number of inputs in a group or slice")
      ->capture_default_str()
      ->check(CLI::Range(10, 1000000));
  slices
      ->add_option("--threshold", o.slices.threshold,
                   "`sweep`: accuracy and rates of groups at other decision thresholds (two classes only)")
      ->check(CLI::IsMember({"sweep"}));
  with_case(slices, o.slices);
  slices->callback([&] { action = [&] { return app::slices(common, o.slices); }; });

  CLI::App* eval =
      command(app, "eval", "The metric, loss, recall and precision by class, most confused pairs of a model on data",
              "  netmend eval model.onnx --data mnist:test\n"
              "  netmend eval model.onnx --data npz:test.npz,x=images,y=labels,scale=1/255\n"
              "  netmend eval model.onnx --data mnist:test --shard 1/2 -o part1.state");
  eval->add_option("model", o.eval.model, "ONNX file (default: the one that netmend.toml names)");
  with_case(eval, o.eval);
  eval->add_flag("--units", o.eval.units, "Also profile every unit (units.csv in the run folder)");
  eval->add_flag("--float64", o.eval.float64, "Compute in float64");
  eval->add_option("--shard", o.eval.shard, "Only part i/n; needs -o, and lab merge merges the parts");
  add_product(eval, "-o", o.eval.product, "", "With --shard: the state file");
  eval->callback([&] { action = [&] { return app::eval(common, o.eval); }; });

  CLI::App* match =
      command(app, "match", "Do the outputs match those of the framework that trained the model, and if not, why?",
              "  netmend match model.onnx --reference ref.npz\n"
              "  netmend match model.onnx --reference ref.npz --data images:test --layers\n"
              "  netmend match model.onnx --reference ref.npz --tolerance 1e-5 --json");
  match->add_option("model", o.match.model, "ONNX file")->required();
  match->add_option("--reference", o.match.reference, "NPZ file that save_data.reference wrote")->required();
  match->add_option(
      "--data", o.match.data,
      "The data that the reference was made of: are inputs prepared the same way? (default: the test data "
      "of netmend.toml)");
  match->add_option("--tolerance", o.match.tolerance, "Largest difference allowed; relative for outputs larger than 1")
      ->capture_default_str()
      ->check(above_zero());
  match->add_flag("--layers", o.match.layers, "Compare layers even if the outputs agree");
  with_config(match);
  match->callback([&] { action = [&] { return app::match(common, o.match); }; });
  add_locate(app, o, action);
  add_stress(app, o, action);
  add_coverage(app, o, action);
  add_mutate(app, o, action);
  add_explain(app, o, action);
  add_failures(app, o, action);
  add_next(app, o, action);
}

}  // namespace netmend::app
