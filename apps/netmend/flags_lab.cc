// Flags of netmend lab.
#include <algorithm>

#include "base/text.h"
#include "faults/kinds.h"
#include "netmend/flags.h"
#include "repair/names.h"
#include "zoo/names.h"

namespace netmend::app {
namespace {

void add_plant(CLI::App& lab, Options& o, Action& action) {
  CLI::App* plant =
      command(lab, "plant", "Plant a known fault in a sound model, and record what was planted",
              "  netmend lab plant model.onnx --kind random-weights -o faulty.onnx --truth truth.json\n"
              "  netmend lab plant model.onnx --kind zeroed --count 3 --layer conv2 -o faulty.onnx\n"
              "  netmend lab plant model.onnx --kind scaled --data mnist:test --at-least 2 -o faulty.onnx");
  plant->add_option("model", o.plant.model, "ONNX file")->required();
  plant->add_option("--kind", o.plant.kind, faults::kind_names())->required();
  plant->add_option("--count", o.plant.count, "Units to damage")->capture_default_str()->check(CLI::Range(1, 1000000));
  plant->add_option("--layer", o.plant.layer, "Only in this layer (default: any but the output layer)");
  plant->add_option("--strength", o.plant.strength, "Size of the fault; 1 is the usual size")->capture_default_str();
  plant
      ->add_option("--at-least", o.plant.at_least,
                   "Draw again until it costs at least this many points of accuracy on --data")
      ->check(above_zero());
  add_product(plant, "-o", o.plant.product, ".onnx", "The faulty model")->required();
  add_product(plant, "--truth", o.plant.truth, ".json", "What was planted, as JSON");
  with_case(plant, o.plant);
  plant->callback([&] { action = [&] { return lab_plant(common, o.plant); }; });
}

/// What all studies have: the folder, and which tables are printed.
void with_study(CLI::App* study, Options& o, const std::string& folder) {
  study
      ->add_option("--table", o.study_table.number,
                   "Print this table alone: the paper's number where its tables have one, else its place")
      ->check(CLI::Range(1, 1000));
  study->add_flag("--latex", o.study_table.latex, "With --table: as LaTeX instead of Markdown");
  study->add_option("--out", common.out, "Folder of the study, with trials.csv (default: " + folder + ")");
  study->add_option("--store", common.store,
                    "A PostgreSQL database that keeps the trials, for any number of workers anywhere: "
                    "postgresql://USER@HOST/DATABASE, the password in PGPASSFILE or PGPASSWORD");
  study
      ->add_option("--lease", common.lease,
                   "With --store: seconds of silence after which a worker's trials are given to others")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 86400.0));
}

/// What studies have whose trials several processes or machines share out.
void with_slices(CLI::App* study, std::string& slice, std::vector<std::string>& add) {
  study->add_option("--slice", slice, "Only this part of the work, as in 2/5");
  study->add_option("--add", add, "Folders of the same study whose trials are taken over")->delimiter(',');
}

/// Studies of mutation.
void add_mutation_studies(CLI::App& study, Options& o, Action& action) {
  CLI::App* injected =
      command(study, "injected-bugs",
              "How do injected bugs affect deep learning? A program with 300 bugs, beside the paper's figures",
              "  netmend lab study injected-bugs --python /usr/bin/python3\n"
              "  netmend lab study injected-bugs --data rt-polarity --sample 50 --out bugs");
  injected->add_option("--data", o.injected.data, "Folder of rt-polarity (default: NETMEND_DATA/rt-polarity)");
  injected->add_option("--python", o.injected.python, "A Python with PyTorch")->capture_default_str();
  injected->add_option("--sample", o.injected.sample, "Bugs to inject, drawn from those of the program and of torch.nn")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000));
  injected->add_flag("--all", o.injected.all, "Also the operators for deep learning, not only the paper's eight");
  with_study(injected, o, "netmend-study-injected-bugs");
  injected->callback([&] { action = [&] { return study_injected(common, o.study_table, o.injected); }; });

  CLI::App* scores = command(study, "mutation-scores", "Which figure of a set of tests predicts that it finds faults?",
                             "  netmend lab study mutation-scores\n"
                             "  netmend lab study mutation-scores --models lenet5@glyphs --tests 500 --out scores");
  scores->add_option("--models", o.scores.models, "Networks with data: NAME@DATA is trained first; one or more")
      ->capture_default_str();
  scores->add_option("--mutants", o.scores.mutants, "Mutants per network")
      ->capture_default_str()
      ->check(CLI::Range(10, 100000));
  scores->add_option("--faults", o.scores.faults, "Planted faults per network")
      ->capture_default_str()
      ->check(CLI::Range(5, 10000));
  scores->add_option("--tests", o.scores.tests, "Tests that the sets are drawn from")
      ->capture_default_str()
      ->check(CLI::Range(100, 1000000));
  with_study(scores, o, "netmend-study-mutation-scores");
  scores->callback([&] { action = [&] { return study_scores(common, o.study_table, o.scores); }; });

  CLI::App* broken =
      command(study, "broken-trainings", "Trainings with a known fault: is it named, is it put right?",
              "  netmend lab study broken-trainings\n"
              "  netmend lab study broken-trainings --part heal -- --seeds 1,2\n"
              "  netmend lab study broken-trainings --part real -- --folder programs --labels labels.json");
  broken->add_option("--part", o.broken_trainings.part, "planted, heal, real, forest (trains the second opinion)")
      ->capture_default_str();
  broken->add_option("--python", o.broken_trainings.python, "The Python that trains")->capture_default_str();
  broken->add_option("--keras-python", o.broken_trainings.keras_python, "The one with Keras (default: the same)");
  broken->add_option("more", o.broken_trainings.more, "After --: options that python3 -m netmend.study --help lists");
  with_study(broken, o, "netmend-study-broken-trainings");
  broken->callback([&] { action = [&] { return study_broken_trainings(common, o.study_table, o.broken_trainings); }; });

  CLI::App* trainings =
      command(study, "training-mutants", "DeepCrime's operators on the trainer: which do the tests kill?",
              "  netmend lab study training-mutants\n"
              "  netmend lab study training-mutants --model lenet1@glyphs --limit 1000 --operators TCL,HLR,ARM\n"
              "  netmend lab study training-mutants --model lenet5@mnist --data my-tests.npz");
  trainings->add_option("--model", o.training_mutants.model, "Network with data, NAME@DATA")->capture_default_str();
  trainings->add_option("--data", o.training_mutants.data,
                        "The tests whose score is asked for, with labels (default: the data's own test split)");
  trainings
      ->add_option("--operators", o.training_mutants.operators, "TCL, TRD, …, VRM, separated by commas (default: all)")
      ->delimiter(',');
  trainings->add_option("--runs", o.training_mutants.runs, "Trainings per configuration, with paired seeds")
      ->capture_default_str()
      ->check(CLI::Range(2, 1000));
  trainings->add_option("--epochs", o.training_mutants.epochs, "Epochs of each training")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  trainings->add_option("--limit", o.training_mutants.limit, "Training inputs; 0 for all")
      ->capture_default_str()
      ->check(CLI::Range(0, 100000000));
  trainings->add_option("--tests", o.training_mutants.tests, "Test inputs that each network is judged on")
      ->capture_default_str()
      ->check(CLI::Range(20, 10000000));
  with_study(trainings, o, "netmend-study-training-mutants");
  trainings->callback(
      [&] { action = [&] { return study_training_mutants(common, o.study_table, o.training_mutants); }; });
}

void add_study(CLI::App& lab, Options& o, Action& action) {
  CLI::App* study =
      lab.add_subcommand("study", "Questions that take many trials; stop at any time, run again to continue");
  study->require_subcommand(1);
  CLI::App* planted =
      command(*study, "planted-faults", "Which measure finds a planted fault, and which method repairs it",
              "  netmend lab study planted-faults --models lenet5@glyphs --runs 2\n"
              "  netmend lab study planted-faults --models lenet4@mnist,lenet5@fashion-mnist --runs 10 --out study\n"
              "  netmend lab study planted-faults --models lenet4.onnx@mnist:test --runs 10 --slice 1/8 --out part1");
  planted
      ->add_option("--models", o.planted.models,
                   "Networks with data: NAME@DATA is trained first, FILE.onnx@DATA is taken as it is")
      ->delimiter(',')
      ->capture_default_str();
  planted->add_option("--kinds", o.planted.kinds, "Kinds of faults: " + faults::kind_names() + " (default: all)")
      ->delimiter(',');
  planted
      ->add_option("--repairs", o.planted.repairs,
                   "Repair methods to judge: none, or some of " + repair::method_names())
      ->delimiter(',')
      ->capture_default_str();
  planted->add_option("--runs", o.planted.runs, "Faults per kind and network")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000));
  planted->add_option("--budget", o.planted.budget, "Budget of each repair: quick, normal, deep, or a time such as 30s")
      ->capture_default_str();
  planted
      ->add_option("--targeted", o.planted.targeted,
                   "Besides: methods that are after the faulty network's largest confusion alone, each with the whole "
                   "budget; for example arachne,surgical,retrain")
      ->delimiter(',');
  planted->add_option("--limit", o.planted.limit, "Only the first N tests of each network; 0 for all")
      ->capture_default_str()
      ->check(CLI::Range(0, 100000000));
  with_slices(planted, o.planted.slice, o.planted.add);
  with_study(planted, o, "netmend-study-planted-faults");
  planted->callback([&] { action = [&] { return study_planted(common, o.study_table, o.planted); }; });
  CLI::App* paper = command(
      *study, "deepimportance", "Does what was published on importance-driven coverage hold here? Tables 2 to 5",
      "  netmend lab study deepimportance --quick\n"
      "  netmend lab study deepimportance --models lenet1,lenet5 --runs 3 --out study\n"
      "  netmend lab study deepimportance --as-published df63927 --models lenet5 --table 3 --latex");
  paper
      ->add_option("--models", o.deepimportance.models,
                   studies::deepimportance_models() + " (default: all; with --quick the first); trained first")
      ->delimiter(',');
  paper->add_option("--networks", o.deepimportance.networks,
                    "Folder with networks of someone else's as NAME.onnx, which are taken instead of trained ones");
  paper
      ->add_option("--runs", o.deepimportance.runs,
                   "Networks of each kind, each from another random seed (default: 5; with --quick 1)")
      ->check(CLI::Range(1, 1000));
  paper->add_option("--as-published", o.deepimportance.as_published,
                    "By the protocol of the authors' program, mistakes included: df63927 (the paper's state) or head "
                    "(the newest); default: corrected. The report sets all that were run side by side");
  paper->add_option("--copies", o.deepimportance.changes.copies, "Noisy copies of each test for IDC and NC")
      ->check(CLI::Range(1, 100));
  paper->add_option("--noise-sd", o.deepimportance.changes.noise, "Deviation of the noise on single pixels")
      ->check(above_zero());
  paper
      ->add_option("--percentile", o.deepimportance.changes.percentile,
                   "Pixels above this percentile of relevance get noise")
      ->check(CLI::Range(0.0, 100.0));
  paper->add_option(
      "--order", o.deepimportance.changes.order,
      "Rivals begin each set from the tests alone (fresh) or keep what sets before covered (accumulated)");
  paper->add_option("--bias", o.deepimportance.changes.bias,
                    "A bias keeps its relevance (keep) or spreads it (spread)");
  paper->add_option("--attacks", o.deepimportance.changes.attacks, "own or cleverhans");
  paper
      ->add_option(
          "--attacked", o.deepimportance.attacked,
          "Tests of each class that C&W changes, and JSMA those of colour images; 0 for all (default: 100; with "
          "--quick 20)")
      ->check(CLI::Range(0, 100000));
  with_slices(paper, o.deepimportance.slice, o.deepimportance.add);
  paper->add_flag("--quick", o.deepimportance.quick,
                  "20,000 training inputs, 2,000 tests: a minute or two, to see how it works");
  with_study(paper, o, "netmend-study-deepimportance");
  paper->callback([&] { action = [&] { return study_deepimportance(common, o.study_table, o.deepimportance); }; });

  CLI::App* labels =
      command(*study, "label-errors", "Does confident learning name the labels that people call wrong?",
              "  netmend lab study label-errors\n  netmend lab study label-errors --data label-errors --table 1");
  labels->add_option("--data", o.label_errors.data, "Folder of the sets (default: NETMEND_DATA/label-errors)");
  with_study(labels, o, "netmend-study-label-errors");
  labels->callback([&] { action = [&] { return study_label_errors(common, o.study_table, o.label_errors); }; });

  CLI::App* deepfault =
      command(*study, "deepfault", "Do the units that spectra suspect change predictions more than random ones?",
              "  netmend lab study deepfault --models lenet1@glyphs\n"
              "  netmend lab study deepfault --models lenet1@mnist,lenet5@fashion-mnist --inputs 300 --out study");
  deepfault->add_option("--models", o.deepfault.models, "Networks with data: NAME@DATA is trained first")
      ->delimiter(',')
      ->capture_default_str();
  deepfault->add_option("--inputs", o.deepfault.inputs, "Correctly predicted inputs of each class that are driven")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000000));
  with_study(deepfault, o, "netmend-study-deepfault");
  deepfault->callback([&] { action = [&] { return study_deepfault(common, o.study_table, o.deepfault); }; });

  CLI::App* sbfl =
      command(*study, "sbfl-repair",
              "The grid of the thesis on spectrum-based repair: its nine questions, and its answers beside ours",
              "  netmend lab study sbfl-repair --sample 0.02\n"
              "  netmend lab study sbfl-repair --as-published --out published\n"
              "  netmend lab study sbfl-repair --trained --sample 0.01\n"
              "  netmend lab study sbfl-repair --slice 1/4 --bases bases --add bases --out part1\n"
              "  netmend lab study sbfl-repair --sample 0.02 --store postgresql://me@server/studies");
  sbfl->add_option("--networks", o.sbfl.networks, "Some of dnn1, dnn2, cnn1, cnn2")->delimiter(',');
  sbfl->add_option("--sample", o.sbfl.sample, "Share of the trajectories to run")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0));
  sbfl->add_option("--limit", o.sbfl.limit, "At most this many training inputs")->check(above_zero());
  sbfl->add_flag("--as-published", o.sbfl.as_published, "Do it as in the listing of the thesis, mistakes included");
  sbfl->add_flag("--trained", o.sbfl.trained, "Run the half with training between rounds instead");
  sbfl->add_flag("--both", o.sbfl.both, "With --trained: also run the half without training");
  sbfl->add_option("--bases", o.sbfl.bases, "Folder of the networks, trained by another run (default: the study's)");
  sbfl->add_flag("--bases-only", o.sbfl.bases_only,
                 "Train the networks, with --trained their benchmarks too; no trials");
  sbfl->add_flag("--report-only", o.sbfl.report_only, "Run nothing: tell what the trials so far come to");
  sbfl->add_flag("--one-by-one", o.sbfl.one_by_one,
                 "Train and judge each network by itself instead of sixteen at a time; slower, equal to rounding");
  with_slices(sbfl, o.sbfl.slice, o.sbfl.add);
  with_study(sbfl, o, "netmend-study-sbfl-repair");
  sbfl->callback([&] { action = [&] { return study_sbfl(common, o.study_table, o.sbfl); }; });
  CLI::App* quality =
      command(*study, "check-quality", "Is netmend check quiet on sound models, stable, and loud on planted faults?",
              "  netmend lab study check-quality\n"
              "  netmend lab study check-quality --models lenet5@glyphs --faulty lenet5@glyphs --out study");
  o.quality.models = studies::quality_models();
  quality
      ->add_option("--models", o.quality.models,
                   "Sound networks with data: NAME@DATA is trained first; also "
                   "FILE.onnx@TEST@TRAIN; one or more")
      ->capture_default_str();
  quality->add_option("--faulty", o.quality.faulty,
                      "Networks to plant faults in; one or more (default: lenet4@mnist and lenet1@glyphs)");
  quality
      ->add_option("--kinds", o.quality.kinds, "Kinds of faults: " + studies::quality_kind_names() + " (default: all)")
      ->delimiter(',');
  quality
      ->add_option("--parts", o.quality.parts,
                   "Parts of the study: quiet (sound networks), stable (other order, seed, more data), loud (faults); "
                   "default: all")
      ->delimiter(',')
      ->check(CLI::IsMember({"quiet", "stable", "loud"}));
  quality->add_option("--budget", o.quality.budget, "Budget of each check: quick, normal, deep, or a time such as 30s")
      ->capture_default_str();
  with_study(quality, o, "netmend-study-check-quality");
  quality->callback([&] { action = [&] { return study_quality(common, o.study_table, o.quality); }; });
  add_mutation_studies(*study, o, action);
}

/// The words of a study are read as it will read them, so that a mistake is told before anything is written.
void check_study_words(CLI::App& lab, const SlurmOptions& slurm) {
  std::vector<std::string> names;
  for (const CLI::App* one : lab.get_subcommand("study")->get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(one->get_name());
  const std::string& name = slurm.study;
  if (std::find(names.begin(), names.end(), name) == names.end())
    throw CLI::ValidationError(
        fmt::format("there is no study {}{}; there are {}", name, did_you_mean(name, names), join(names, ", ")));
  CLI::App* study = lab.get_subcommand("study")->get_subcommand(name);
  study->parse(std::vector<std::string>(slurm.words.rbegin(), slurm.words.rend()));
  for (const char* ours : {"--slice", "--add", "--out", "--store"})
    if (const CLI::Option* option = study->get_option_no_throw(ours); option && option->count() > 0)
      throw CLI::ValidationError(fmt::format("{} after --: the job sets it itself", ours));
  const bool slices = study->get_option_no_throw("--slice");
  if (slurm.store.empty() && !slices)
    throw CLI::ValidationError(
        fmt::format("{} has no slices: name a database with --store postgresql://HOST/DATABASE", name));
  if (!slurm.store.empty() && !slices && name != "training-mutants")
    throw CLI::ValidationError(fmt::format("{} is worked on by one process, in a folder", name));
}

void add_slurm(CLI::App& lab, Options& o, Action& action) {
  CLI::App* slurm = command(
      lab, "slurm", "Write a job array for Slurm that works on a study",
      "  netmend lab slurm sbfl-repair --workers 8 -o job.sh -- --sample 0.02\n"
      "  netmend lab slurm sbfl-repair --workers 200 --store postgresql://me@server/studies --submit -- --sample 0.02\n"
      "  netmend lab slurm deepimportance --workers 4 --out study --sbatch=--time=4:00:00 --submit");
  slurm->add_option("study", o.slurm.study, "The study; its own flags come after --")->required();
  slurm->add_option("flags", o.slurm.words, "Flags of the study, after --");
  slurm->add_option("--workers", o.slurm.workers, "Tasks of the array")->required()->check(CLI::Range(1, 100000));
  slurm->add_option("--store", o.slurm.store,
                    "The database that workers share (default: slices, each in a folder of its node, put together)");
  slurm->add_option("--sbatch", o.slurm.sbatch, "An option of sbatch, as in --sbatch=--time=4:00:00; may be repeated")
      ->allow_extra_args(false);
  slurm->add_flag("--submit", o.slurm.submit, "Hand it to sbatch; of slices also the job that puts them together");
  add_product(slurm, "-o", o.slurm.product, ".sh", "The script (default: job.sh in the study's folder)");
  slurm->add_option("--out", o.slurm.out, "Folder of the study, which all nodes see (default: netmend-study-NAME)");
  slurm->callback([&] {
    check_study_words(lab, o.slurm);
    action = [&] { return lab_slurm(common, o.slurm); };
  });
}

}  // namespace

void add_lab(CLI::App& app, Options& o, Action& action) {
  CLI::App* lab = app.add_subcommand("lab", "Tools for researchers");
  lab->require_subcommand(1);
  CLI::App* fresh =
      command(*lab, "new", "Write a named architecture as an ONNX file with randomly initialised weights",
              "  netmend lab new lenet5 -o lenet5.onnx\n  netmend lab new mlp:784-64-10 -o small.onnx --seed 7");
  fresh->add_option("name", o.fresh.name, join(zoo::names(), ", ") + " (any sizes)")->required();
  add_product(fresh, "-o", o.fresh.product, ".onnx", "The model")->required();
  fresh->add_option("--init", o.fresh.init, "How weights are drawn: " + join(zoo::scheme_names(), ", "))
      ->capture_default_str();
  fresh->callback([&] { action = [&] { return lab_new(common, o.fresh); }; });

  CLI::App* run = command(*lab, "run", "Run a model on tensors from NPY files",
                          "  netmend lab run model.onnx --input x=x.npy --out results\n"
                          "  netmend lab run model.onnx --input x=x.npy --output /features --out results\n"
                          "  netmend lab run voice.onnx --input input=frames.npy --carry stateN=state --out results");
  run->add_option("model", o.run.model, "ONNX file")->required();
  run->add_option("--input", o.run.inputs, "NAME=FILE.npy, one per input");
  run->add_option("--output", o.run.outputs, "Values to write (default: the model's outputs)");
  run->add_option("--carry", o.run.carry,
                  "OUTPUT=INPUT, a state (recurrent, key-value cache): inputs are steps along their first axis, and "
                  "each begins with "
                  "what the last one made of it; also written: the states that steps began with, to be given as data");
  run->add_option("--sequences", o.run.sequences,
                  "NPY file with a number for each step: states begin anew where it changes");
  run->add_flag("--float64", o.run.float64, "Compute in float64");
  run->add_option("--out", o.run.folder, "Folder for the outputs")->required();
  run->callback([&] { action = [&] { return lab_run(common, o.run); }; });

  CLI::App* benchmark =
      command(*lab, "benchmark", "How fast a model is here: by operator, by batch, from file and memory",
              "  netmend lab benchmark model.onnx --data mnist:test\n"
              "  netmend lab benchmark resnet50.onnx --data npz:images.npz --device cuda --precision tf32");
  benchmark->add_option("model", o.benchmark.model, "ONNX file")->required();
  with_case(benchmark, o.benchmark);
  benchmark->add_option("--seconds", o.benchmark.seconds, "Time for each figure")
      ->capture_default_str()
      ->check(CLI::Range(0.01, 86400.0));
  benchmark->add_option("--top", o.benchmark.top, "Operators to list")
      ->capture_default_str()
      ->check(CLI::Range(0, 1000000));
  benchmark->callback([&] { action = [&] { return lab_benchmark(common, o.benchmark); }; });

  CLI::App* conformance = command(*lab, "conformance", "Run ONNX backend test folders (model.onnx, test_data_set_*/)",
                                  "  netmend lab conformance /usr/share/libonnx-testdata/data/node\n"
                                  "  netmend lab conformance tests/node --filter conv --each");
  conformance->add_option("folder", o.conformance.folder, "Folder of test folders, or one of them")->required();
  conformance->add_option("--filter", o.conformance.filter, "Only folders whose name contains this");
  conformance->add_flag("--each", o.conformance.each, "Print every case, not only those that fail");
  conformance->callback([&] { action = [&] { return lab_conformance(common, o.conformance); }; });

  CLI::App* merge = command(*lab, "merge", "Merge the shards of a pass", "  netmend lab merge part1.state part2.state");
  merge->add_option("states", o.merge.states, "State files")->required();
  merge->callback([&] { action = [&] { return lab_merge(common, o.merge); }; });
  add_plant(*lab, o, action);
  add_study(*lab, o, action);
  add_slurm(*lab, o, action);
  add_describe(*lab, action);
}

}  // namespace netmend::app
