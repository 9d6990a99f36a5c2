// Readers of netmend.toml and of every JSON file.
#include "base/error.h"
#include "base/json.h"
#include "compare/baseline.h"
#include "edits/edit_file.h"
#include "preflight/discover.h"
#include "readers.h"
#include "report/page.h"
#include "session/config.h"
#include "session/input_names.h"
#include "session/run_findings.h"

namespace netmend::fuzz {
namespace {

std::string folder_of(const std::string& file) { return file.substr(0, file.rfind('/')); }

void read_config_file(Input input) { session::parse_config(std::string(input), "netmend.toml"); }

void read_edits_file(Input input) {
  const edits::EditFile file = edits::parse_edits(input, "edits.json");
  const edits::EditFile again = edits::parse_edits(edits::to_text(file), "edits.json");
  check(again.edits.size() == file.edits.size(), "edits that were written read back as others");
}

void read_baseline_file(Input input) { compare::read_baseline(scratch("baseline.json", input)); }

/// eval.json and samples.csv of a run folder.
void read_eval_folder(Input input) {
  const auto [eval, samples] = two_files(input);
  scratch("run.json", "{}");
  scratch("samples.csv", samples);
  compare::read_baseline(folder_of(scratch("eval.json", eval)));
}

void read_findings_file(Input input) {
  const session::RunFindings found = session::read_findings(folder_of(scratch("findings.json", input)));
  for (const findings::Finding& one : found.findings) json_text(findings::to_json(one));
}

void read_evidence_file(Input input) {
  const std::string page = report::draw_page(input, "evidence.json");
  check(page.find("</html>") == page.rfind("</html>"), "the document ended the page");
}

/// What `init` finds beside a model of images; what it would write must be TOML that sets an input and nothing else.
void look_beside_a_model(const char* name, Input input) {
  model::Graph graph;
  const model::ValueId x = graph.add_value("x", model::Element::kFloat);
  graph.values[size_t(x)].shape = std::vector<model::Dim>{{-1, "n"}, {3, ""}, {8, ""}, {8, ""}};
  graph.inputs = {x};
  const std::string path = scratch(name, input), model = folder_of(path) + "/m.onnx";
  preflight::find_classes(graph, model);
  std::string text;
  for (const session::Fact& fact : preflight::find_preprocessing(graph, model))
    text += fact.key + " = " + fact.value + "\n";
  try {
    const session::Config config = session::parse_config(text, "netmend.toml");
    check(config.gate.empty() && config.accepted.empty() && config.model.empty(), "a file beside a model set limits");
  } catch (const InputError&) {  // values that are no scale or size: init says so
  }
  std::remove(path.c_str());
}

void read_preprocessor_file(Input input) { look_beside_a_model("preprocessor_config.json", input); }
void read_model_config_file(Input input) { look_beside_a_model("config.json", input); }
void read_names_file(Input input) { session::read_names(scratch("names.csv", input)); }
void read_words(Input input) { preflight::parse_words(std::string(input)); }

constexpr Reader kReaders[] = {{"toml", read_config_file},
                               {"edits", read_edits_file},
                               {"baseline", read_baseline_file},
                               {"eval", read_eval_folder},
                               {"findings", read_findings_file},
                               {"evidence", read_evidence_file},
                               {"preprocessor", read_preprocessor_file},
                               {"config", read_model_config_file},
                               {"words", read_words},
                               {"names", read_names_file}};

}  // namespace

std::span<const Reader> text_readers() { return kReaders; }

}  // namespace netmend::fuzz
