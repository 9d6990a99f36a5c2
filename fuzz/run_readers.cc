// Readers of what programs of others leave: records of trainings, stores of trials, what a program printed.
#include <filesystem>

#include "base/error.h"
#include "base/json.h"
#include "diagnosis/diagnose.h"
#include "programs/metric.h"
#include "programs/outcome.h"
#include "readers.h"
#include "records/record.h"
#include "trials/store.h"

namespace netmend::fuzz {
namespace {

/// Read, and looked at by every rule there is.
void diagnose_file(const char* name, Input input) {
  const records::Record record = records::read_record(scratch(name, input));
  static const std::vector<std::string> sets = diagnosis::rule_sets();
  const diagnosis::Diagnosis found = diagnosis::diagnose(record, {}, sets, "run");
  for (const findings::Finding& one : found.findings) json_text(findings::to_json(one));
}

void read_record_file(Input input) { diagnose_file("record.jsonl", input); }
void read_epochs_file(Input input) { diagnose_file("epochs.csv", input); }
void read_events_file(Input input) { diagnose_file("events.out.tfevents.1", input); }

/// A whole database, or, after a first byte that is odd, the result of a trial in a sound one.
void read_store(Input input) {
  if (!input.empty() && (input[0] & 1)) {
    const JsonDocument document = trials::trial_document("a trial", std::string(input.substr(1)));
    if (document.top().has("outcome")) document.top().at("outcome").text();
    return;
  }
  const std::string path = scratch("trials.db", input.empty() ? input : input.substr(1));
  for (const char* behind : {"-wal", "-shm", "-journal"}) std::filesystem::remove(path + behind);
  const trials::Store store(path, "inject", 1);
  for (const auto& [key, result] : store.all()) try {
      trials::trial_document(key, result);
    } catch (const InputError&) {
    }
}

/// What a program printed, and what it said of its errors; the first byte says how it ended.
void read_output(Input input) {
  if (input.empty()) return;
  const auto [output, errors] = two_files(input.substr(1));
  sandbox::Outcome run;
  run.ending = sandbox::Ending(uint8_t(input[0]) % 6);
  run.status = uint8_t(input[0]) / 6;
  run.output = output, run.errors = errors;
  programs::classify(run, programs::find_metric(std::string(output), "accuracy[ :=]*([0-9.eE+-]+)"), input[0] & 1);
}

constexpr Reader kReaders[] = {{"record", read_record_file},
                               {"epochs", read_epochs_file},
                               {"events", read_events_file},
                               {"trials", read_store},
                               {"output", read_output}};

}  // namespace

std::span<const Reader> run_readers() { return kReaders; }

}  // namespace netmend::fuzz
