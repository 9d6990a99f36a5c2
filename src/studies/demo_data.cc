#include "studies/demo_data.h"

#include <ATen/ATen.h>

#include "base/file.h"
#include "base/npy.h"
#include "base/pool.h"
#include "base/random.h"
#include "dataset/contact_sheet.h"
#include "observers/predictions.h"
#include "session/session.h"
#include "session/split.h"

namespace netmend::studies {
namespace {

constexpr int64_t kSeven = 7, kOne = 1;
constexpr double kMislabelled = 0.3;  ///< share of the sevens

std::string npy_of(const at::Tensor& tensor) {
  at::Tensor plain = tensor.contiguous();
  std::string bytes = npy_header(plain.scalar_type() == at::kByte ? "|u1" : "<i8", plain.sizes());
  return bytes.append(static_cast<const char*>(plain.data_ptr()), size_t(plain.numel()) * plain.element_size());
}

}  // namespace

DemoSizes write_demo_sheet(const std::string& path) {
  auto test = dataset::open("glyphs:test");
  dataset::write_contact_sheet(*test, dataset::sheet_samples(*test, 8), 8, path);
  return {dataset::open("glyphs:train")->size(), test->size()};
}

SpoiledTests write_spoiled_tests(const std::string& path, uint64_t seed) {
  auto raw = dataset::open("glyphs:test,scale=1");
  const dataset::Batch batch = raw->read(stream::spread(raw->size(), raw->size()));
  at::Tensor labels = batch.labels.clone();
  SpoiledTests spoiled;
  for (int64_t i = 0; i < labels.numel(); ++i) {
    int64_t& label = labels.data_ptr<int64_t>()[i];
    if (label == kSeven && Random(seed, uint64_t(i)).uniform() < kMislabelled) label = kOne, ++spoiled.mislabelled;
  }
  write_file(path, [&](std::ostream& out) {
    ZipWriter zip(out);
    zip.add("x.npy", npy_of((255 - batch.inputs[0]).to(at::kByte)));
    zip.add("y.npy", npy_of(labels));
    zip.finish();
  });
  return spoiled;
}

double demo_accuracy(const std::string& model, int jobs) {
  session::Request request;
  request.model = model, request.test = "glyphs:test", request.limit = kDemoTests, request.jobs = jobs;
  request.quiet = true;
  session::Session session(std::move(request));
  observers::Predictions predictions(session.task(), false);
  stream::Pass pass(session.test().subject);
  auto handle = pass.watch(predictions);
  session.run(pass, session.test(), "accuracy");
  if (pass.interrupted()) throw Interrupted{};
  return observers::finish(predictions, pass.state(handle)).accuracy;
}

}  // namespace netmend::studies
