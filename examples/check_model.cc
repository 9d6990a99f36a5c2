// Checks a model on data and prints what was found, the most important first.
//   check_model MODEL.onnx DATA        for example: check_model lenet5.onnx mnist
#include <netmend/evidence/check_run.h>
#include <netmend/executor/runtime.h>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: check_model MODEL.onnx DATA\n"), 2;
  try {
    netmend::executor::start_runtime();
    netmend::session::Request request;
    request.model = argv[1], request.data = argv[2], request.budget = "quick";
    request.out = "check-run";
    netmend::session::Session session(request);
    const netmend::evidence::CheckRun run = netmend::evidence::run_check(session, {}, {});
    const int status = run.exit_status("blocker");
    session.finish(0, status);
    std::printf("%s\n%s\n", run.verdict.c_str(), run.numbers.c_str());
    for (const netmend::findings::Finding& finding : run.findings)
      std::printf("%-8s %s  %s\n", netmend::findings::level_name(finding.level).c_str(), finding.id().c_str(),
                  finding.brief.c_str());
    std::printf("%s\n", run.report.c_str());
    return status;
  } catch (const std::exception& error) {
    return std::fprintf(stderr, "error: %s\n", error.what()), 2;
  }
}
