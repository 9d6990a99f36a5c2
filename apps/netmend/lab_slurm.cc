// netmend lab slurm: a job array for Slurm that works on a study, written and, if wanted, submitted.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/child.h"
#include "base/error.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/text.h"
#include "netmend/lab_study.h"
#include "netmend/shared.h"
#include "netmend/terminal.h"
#include "trials/store.h"

namespace netmend::app {
namespace {

namespace fs = std::filesystem;

/// The program that people call, beside this one.
std::string own_program() {
  std::error_code none;
  const fs::path self = fs::read_symlink("/proc/self/exe", none);
  return none ? "netmend" : (self.parent_path() / "netmend").string();
}

Shell study_command(const SlurmOptions& options) {
  Shell command = Shell::of("{} lab study {}", own_program(), options.study);
  for (const std::string& word : options.words) command += Shell::of(" {}", word);
  return command;
}

/// A line break would end the directive and begin another.
void refuse_unwritable(const std::string& word, const std::string& flag) {
  if (std::any_of(word.begin(), word.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; }))
    throw InputError(fmt::format("{} {}: a control character in it cannot stand in a job", flag, printable(word)),
                     "Give it another name.");
}

/// As Slurm reads a directive: quoted, so that a space or a # is part of the word.
std::string directive(const std::string& word) {
  std::string out = "#SBATCH \"";
  for (char c : word) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"\n";
}

std::string head(const SlurmOptions& options) {
  std::string text = "#!/bin/bash\n";
  text += directive("--job-name=netmend-" + options.study);
  text += directive(fmt::format("--array=1-{}", options.workers));
  text += directive("--open-mode=append");
  for (const std::string& word : options.sbatch) text += directive(word);
  return text;
}

/// Every worker takes trials from the database until none is left; each prints the report of the whole.
std::string database_script(const SlurmOptions& options, const std::string& store, const std::string& out) {
  return head(options) + Shell::of(
                             "# Workers on a database. The password is read from the file that PGPASSFILE names.\n"
                             "set -eu\n"
                             "exec {} --store {} --out {}\"/worker-$SLURM_ARRAY_TASK_ID\"\n",
                             study_command(options), store, out)
                             .text();
}

/// Every task works on its slice in a folder of its own node, because SQLite must not be on a network file system, and
/// keeps what it has in the study's folder when it ends, however that comes about. `collect` puts the slices together.
std::string slices_script(const SlurmOptions& options, const std::string& out) {
  Shell listed;
  for (int64_t part = 1; part <= options.workers; ++part) listed += Shell::of(" {}", part);
  return head(options) +
         Shell::of(
             "# Slices of a study, each in a folder of its node. After them: bash THIS collect\n"
             "set -eu\n"
             "study={}\n"
             "here=$(mktemp -d)\n"
             "keep() {{  # trials so far, and what the study wrote; a file is replaced whole\n"
             "  mkdir -p \"$1\"\n"
             "  for file in \"$here\"/*; do\n"
             "    [ -f \"$file\" ] || continue\n"
             "    cp \"$file\" \"$1/.new-${{file##*/}}\" && mv \"$1/.new-${{file##*/}}\" \"$1/${{file##*/}}\"\n"
             "  done\n"
             "  rm -rf \"$here\"\n"
             "}}\n"
             "running=\n"
             "trap '[ -z \"$running\" ] || {{ kill -TERM \"$running\"; wait \"$running\" || true; }}; exit 143' TERM "
             "INT\n"
             "if [ \"${{1:-}}\" = collect ]; then\n"
             "  target=$study\n"
             "  set --\n"
             "  for part in{}; do\n"
             "    if [ -f \"$study/part-$part/trials.db\" ]; then set -- \"$@\" --add \"$study/part-$part\"; fi\n"
             "  done\n"
             "else\n"
             "  part=$SLURM_ARRAY_TASK_ID\n"
             "  target=$study/part-$part\n"
             "  set -- --slice \"$part/{}\"\n"
             "fi\n"
             "if [ -d \"$target\" ]; then find \"$target\" -maxdepth 1 -type f ! -name '.new-*' -exec cp {{}} "
             "\"$here\" \\;; fi\n"
             "trap 'keep \"$target\"' EXIT\n"
             "{} --out \"$here\" \"$@\" &\n"
             "running=$!\n"
             "wait \"$running\"\n",
             out, listed, options.workers, study_command(options))
             .text();
}

std::string submit(const std::vector<std::string>& words) {
  std::string said;
  std::vector<std::string> all = {"sbatch", "--parsable"};
  all.insert(all.end(), words.begin(), words.end());
  const int status = run_child(all, {}, &said);
  const std::string job(trim(said.substr(0, said.find(';'))));
  if (status != 0 || job.empty())
    throw InputError(fmt::format("sbatch did not take the job: it ended with status {}", status),
                     "What it says stands above; the script is written and can be submitted by hand.");
  return job;
}

}  // namespace

int lab_slurm(const Common& common, const SlurmOptions& options) {
  const bool database = !options.store.empty();
  const std::string out =
      fs::absolute(options.out.empty() ? "netmend-study-" + options.study : options.out).lexically_normal().string();
  if (database && !trials::is_database(options.store))
    fail("--store {}: expected postgresql://HOST/DATABASE", printable(options.store));
  if (database) trials::check_place(options.store);
  if (database && options.submit && std::getenv("PGPASSWORD"))
    throw InputError("--submit: Slurm would keep the environment, and the password in PGPASSWORD with it, on its disk",
                     "Put the password into a file that PGPASSFILE names, and unset PGPASSWORD.");
  if (!database && out.find(',') != std::string::npos)
    throw InputError(fmt::format("--out {}: a comma cannot stand in a folder of slices", printable(out)),
                     "Give a folder without one.");
  refuse_unwritable(out, "--out");
  for (const std::string& word : options.words) refuse_unwritable(word, "--");
  for (const std::string& word : options.sbatch) {
    refuse_unwritable(word, "--sbatch");
    if (!word.starts_with("-"))
      throw InputError(fmt::format("--sbatch {}: expected an option of sbatch", printable(word)),
                       "Write it as --sbatch=--time=4:00:00.");
  }
  make_folders(out);
  const std::string script = options.product.empty() ? out + "/job.sh" : options.product;
  write_file(script, database ? database_script(options, options.store, out) : slices_script(options, out));
  Json json = {{"script", script}, {"study", out}, {"workers", options.workers}};
  if (options.submit) {
    json["job"] = submit({script});
    if (!database)
      json["collect"] =
          submit({"--array=0", "--dependency=afterany:" + json["job"].get<std::string>(), script, "collect"});
  }
  if (common.json) return print_json(json), 0;
  print("{}: {}\n", script, counted(options.workers, "worker"));
  if (!options.submit)
    print("  next      {}\n", Shell::of("sbatch {}", script).text());
  else if (database)
    print("  submitted as job {}; the report is in {}/worker-1 when it is done\n", json["job"].get<std::string>(), out);
  else
    print("  submitted as job {}, and job {} puts the slices together in {}\n", json["job"].get<std::string>(),
          json["collect"].get<std::string>(), out);
  return 0;
}

}  // namespace netmend::app
