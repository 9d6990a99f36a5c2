// Fine-tuning of all weights on failing inputs mixed with passing ones: the repair that everybody tries first.
#include <cmath>

#include "base/random.h"
#include "edits/difference.h"
#include "repair/methods.h"
#include "training/trainer.h"

namespace netmend::repair {

Found retrain(const Problem& problem, Budget& budget) {
  std::vector<int64_t> failing = problem.on(observers::Side::kFailing, problem.parts.search),
                       passing = problem.on(observers::Side::kPassing, problem.parts.search);
  if (failing.empty() && problem.settings.task == observers::Task::kNumber && problem.settings.tolerance < 0)
    passing = problem.parts.search;  // numbers are neither right nor wrong: all of them are trained on
  Random random(problem.seed, 77);
  random.shuffle(passing);
  // Twice as many passing inputs as failing ones hold the rest in place.
  if (!failing.empty() && passing.size() > 2 * failing.size() + 1000) passing.resize(2 * failing.size() + 1000);
  std::vector<int64_t> mixed = failing;
  mixed.insert(mixed.end(), passing.begin(), passing.end());
  if (mixed.empty()) return {{}, "there are no failing or correct inputs to train on"};
  training::Task task{problem.subject.model_name,
                      problem.subject.graph,
                      problem.settings.head.output,
                      dataset::subset(problem.subject.data, mixed),
                      nullptr,
                      {}};
  task.options.rate = 2e-4;
  task.options.epochs = 50;
  task.options.seed = problem.seed, task.options.jobs = problem.jobs;
  task.options.device = problem.subject.device.str();
  Found found;
  try {
    training::Trainer trainer(std::move(task));
    double best = -1e300;
    int worse = 0;
    while (!trainer.done()) {
      const training::Epoch& epoch = trainer.run_epoch();
      Candidate one{"retrain",
                    fmt::format("all weights, {} epoch{}", epoch.number, epoch.number == 1 ? "" : "s"),
                    edits::edits_between(problem.subject.graph, trainer.result(), problem.layers),
                    {},
                    {}};
      one.selection = evaluate(problem, one.edits, problem.parts.selection).figure;
      ++found.looked_at;
      if (one.selection.score > best)
        best = one.selection.score, worse = 0, found.candidates.assign(1, std::move(one));
      else if (++worse == 3)
        break;
      const double work = problem.work(3 * mixed.size() + problem.parts.selection.size());
      budget.spend(work);
      if (!budget.allows(work)) break;
    }
  } catch (const InputError& error) {
    if (found.candidates.empty()) found.why_not = error.what();
  }
  return found;
}

}  // namespace netmend::repair
