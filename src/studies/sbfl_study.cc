// sbfl-repair from its options to the questions with their box plots.
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "studies/sbfl_repair.h"
#include "studies/trained_networks.h"

namespace netmend::studies {

using trials::boxes_svg;
namespace {

using Json = nlohmann::ordered_json;

Json boxes_json(const std::vector<Box>& boxes) {
  Json list = Json::array();
  for (const Box& box : boxes) {
    Json one = {{"label", box.label}, {"count", box.count}};
    if (box.count)
      one["least"] = box.least, one["low"] = box.low, one["median"] = box.median, one["high"] = box.high,
      one["most"] = box.most;
    list.push_back(one);
  }
  return list;
}

}  // namespace

Json run_sbfl_study(const StudyContext& context, const SbflRequest& request) {
  const std::string& folder = context.folder;
  make_folders(folder);
  Store store(folder + "/trials.db",
              fmt::format("sbfl-repair, seed {}, {} training inputs", context.seed,
                          request.limit ? std::to_string(request.limit) : "all"),
              kGridVersion);
  GridOptions how;
  if (!request.networks.empty()) how.networks = request.networks;
  how.as_published = request.as_published;
  how.trained = request.trained, how.untrained = !request.trained || request.both;
  how.sample = request.sample, how.seed = context.seed, how.jobs = context.jobs, how.folder = folder;
  how.limit = request.limit;
  const GridSize size = grid_size(store, how);
  tell(context, fmt::format("{} of {} trajectories ({} trials), {} to do", with_commas(size.chosen),
                            with_commas(size.all), with_commas(size.trials), with_commas(size.missing)));
  if (size.missing > 0) run_grid(store, how, context.progress);
  Json json = {{"as_published", how.as_published},
               {"trajectories", size.chosen},
               {"of", size.all},
               {"trials", size.trials},
               {"out", folder},
               {"answers", Json::array()}};
  int number = 0;
  for (const Answer& answer : answer_questions(store, how.as_published)) {
    ++number;
    json["answers"].push_back({{"question", answer.question},
                               {"thesis", answer.thesis},
                               {"here", answer.here},
                               {"verdict", !answer.enough ? "too little data to say"
                                           : answer.holds ? "holds here"
                                                          : "does not hold here"},
                               {"accuracy", boxes_json(answer.accuracy)},
                               {"loss", boxes_json(answer.loss)}});
    write_file(fmt::format("{}/rq{}-accuracy.svg", folder, number),
               boxes_svg(answer.question + ": accuracy / benchmark", answer.accuracy, 1));
    write_file(fmt::format("{}/rq{}-loss.svg", folder, number),
               boxes_svg(answer.question + ": benchmark's loss / loss", answer.loss, 1));
  }
  write_file(folder + "/sbfl-repair.json", json_text(json, 2) + "\n");
  return json;
}

}  // namespace netmend::studies
