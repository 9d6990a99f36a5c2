// Searches for a small repair of a model and writes it when it is confirmed on inputs that the search never saw.
//   repair_model MODEL.onnx DATA FIXED.onnx        for example: repair_model faulty.onnx mnist:train fixed.onnx
#include <netmend/executor/runtime.h>
#include <netmend/repair/repair_run.h>
#include <netmend/session/session.h>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 4) return std::fprintf(stderr, "usage: repair_model MODEL.onnx DATA FIXED.onnx\n"), 2;
  try {
    netmend::executor::start_runtime();
    netmend::session::Request request;
    request.model = argv[1], request.data = argv[2], request.budget = "quick", request.quiet = true;
    netmend::session::Session session(request);
    netmend::repair::RepairRun repair(session, {});
    const netmend::repair::RepairResult& result =
        repair.search([](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); });
    std::printf("%s: %s\n%lld fixes, %lld regressions on %lld held-out inputs, p = %.2g\n", result.verdict.c_str(),
                result.reason.c_str(), (long long)result.fixes, (long long)result.regressions,
                (long long)repair.splits().holdout, result.p);
    if (!result.repaired) return 1;
    repair.write_model(argv[3]);
    std::printf("%s written\n", argv[3]);
    return 0;
  } catch (const std::exception& error) {
    return std::fprintf(stderr, "error: %s\n", error.what()), 2;
  }
}
