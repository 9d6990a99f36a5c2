// netmend lab study sbfl-repair: the grid of the thesis, its questions, its answers beside ours.
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "netmend/lab_study.h"
#include "netmend/show.h"
#include "studies/sbfl_repair.h"

namespace netmend::app {
namespace {

Json boxes_json(const std::vector<studies::Box>& boxes) {
  Json list = Json::array();
  for (const studies::Box& box : boxes) {
    Json one = {{"label", box.label}, {"count", box.count}};
    if (box.count) one["least"] = box.least, one["low"] = box.low, one["median"] = box.median, one["high"] = box.high, one["most"] = box.most;
    list.push_back(one);
  }
  return list;
}

}  // namespace

int study_sbfl(const Common& common, const SbflStudyOptions& options) {
  const std::string folder = common.out.empty() ? "netmend-study-sbfl-repair" : common.out;
  std::filesystem::create_directories(folder);
  studies::Store store(folder + "/trials.db", "sbfl-repair", studies::kGridVersion);
  studies::GridOptions how;
  if (!options.networks.empty()) how.networks = options.networks;
  how.as_published = options.as_published;
  how.trained = options.trained, how.untrained = !options.trained || options.both;
  how.sample = options.sample, how.seed = common.seed, how.jobs = common.jobs, how.folder = folder, how.limit = options.limit;
  const studies::GridSize size = studies::grid_size(store, how);
  say(common, fmt::format("{} of {} trajectories ({} trials), {} to do", with_commas(size.chosen), with_commas(size.all), with_commas(size.trials), with_commas(size.missing)));
  if (size.missing > 0) studies::run_grid(store, how, [&](const std::string& line) { say(common, line); });
  Json json = {{"as_published", how.as_published}, {"trajectories", size.chosen}, {"of", size.all}, {"trials", size.trials}, {"out", folder}};
  json["answers"] = Json::array();
  int number = 0;
  for (const studies::Answer& answer : studies::answer_questions(store, how.as_published)) {
    ++number;
    const std::string verdict = !answer.enough ? "too little data to say" : answer.holds ? "holds here" : "does not hold here";
    json["answers"].push_back({{"question", answer.question}, {"thesis", answer.thesis}, {"here", answer.here}, {"verdict", verdict},
                               {"accuracy", boxes_json(answer.accuracy)}, {"loss", boxes_json(answer.loss)}});
    write_file(fmt::format("{}/rq{}-accuracy.svg", folder, number), studies::boxes_svg(answer.question + ": accuracy / benchmark", answer.accuracy, 1));
    write_file(fmt::format("{}/rq{}-loss.svg", folder, number), studies::boxes_svg(answer.question + ": benchmark's loss / loss", answer.loss, 1));
    if (!common.json)
      fmt::print("{}\n  thesis    {}\n  here      {}\n            {}\n\n", answer.question, answer.thesis, verdict, answer.here);
  }
  write_file(folder + "/sbfl-repair.json", json.dump(2) + "\n");
  if (common.json)
    print_json(json);
  else
    fmt::print("  box plots {}/rq*.svg; run again to go on where it stopped\n", folder);
  return 0;
}

}  // namespace netmend::app
