// netmend lab merge: the shards of an evaluation put together; the result is that of one pass, bit for bit.
#include <fmt/format.h>

#include "evidence/json.h"
#include "netmend/show.h"
#include "session/evaluate.h"

namespace netmend::app {

int lab_merge(const Common& common, const MergeOptions& options) {
  const session::MergedShards merged = session::merge_shards(options.states);
  if (common.json) {
    Json json = evidence::result_json(merged.task, merged.result);
    json["seconds"] = merged.seconds;
    json["samples_per_second"] = merged.seconds > 0 ? double(merged.result.samples) / merged.seconds : 0;
    return print_json(json), 0;
  }
  print("{}  on {} ({} part{})\n", merged.model, merged.task.data, options.states.size(),
        options.states.size() == 1 ? "" : "s");
  print_result(merged.task, merged.result, merged.seconds);
  return 0;
}

}  // namespace netmend::app
