// Readers of files that netmend writes and goes on from. They carry hashes: the first byte of an input says whether it
// is a file as it stands (even) or its content, to which the right hashes are added (odd). What an attacker can do, a
// fuzzer must be able to do as well.
#include <ATen/ATen.h>

#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "inputs/queue.h"
#include "localise/candidates.h"
#include "observers/coverage/profile.h"
#include "readers.h"
#include "session/evaluate.h"
#include "session/session.h"
#include "session/split.h"
#include "stream/state_file.h"
#include "training/checkpoint.h"

namespace netmend::fuzz {
namespace {

bool hashed(Input input) { return !input.empty() && (input[0] & 1); }
Input content(Input input) { return input.empty() ? input : input.substr(1); }

std::string state_bytes(Input input) {
  std::string bytes(content(input));
  if (hashed(input)) {
    const uint64_t sum = hash64(bytes);
    bytes.append(reinterpret_cast<const char*>(&sum), sizeof sum);
  }
  return bytes;
}

void read_state_file(Input input) { session::merge_shards({scratch("a.state", state_bytes(input))}); }

void read_profile_file(Input input) {
  static session::Session session = [] {
    session::Request request;
    request.model = seed_file("model/m.onnx"), request.data = "npz:" + seed_file("model/data.npz") + ",x=x,y=y";
    return session::Session(request);
  }();
  static const observers::SpacePtr space = [] {
    session::Split& test = session.test();
    const auto& task = session.task();
    return observers::make_unit_space(
        test.subject, localise::candidates(session.layers(), test.subject.graph, task.head, task.outputs, {}), {});
  }();
  const std::string path = scratch("m.profile", state_bytes(input));
  const std::string model = stream::read_state_header(path).subject;
  observers::Profile profile = observers::load_profile(path, session.task(), space, space->layers().size() - 1, model);
  profile.materials();
}

/// The task is taken from the file, and the size of the weights is what the file has room for, or 44 bytes.
void read_checkpoint_file(Input input) {
  std::string bytes(content(input));
  if (hashed(input)) bytes = "netmend checkpoint 2\n" + checksum(bytes) + "\n" + bytes;
  training::Checkpoint into;
  const size_t at = bytes.find("\"task\":\"");
  if (at != std::string::npos) into.task = bytes.substr(at + 8, bytes.find('"', at + 8) - at - 8);
  const size_t begin = bytes.find('\n', std::min(bytes.size(), size_t(38))), end = bytes.size();
  const int64_t room = begin < end && (input[0] & 2) ? int64_t(end - begin - 1) / 4 : 11;
  into.state = {at::zeros({room})};
  training::read_checkpoint(scratch("checkpoint", bytes), into);
}

/// Of hashed content each record begins with its length in two bytes.
void read_queue_file(Input input) {
  constexpr Input kAbout = "about";
  std::string bytes(content(input));
  if (hashed(input)) {
    bytes = "netmend-queue 2\n";
    uint64_t chain = 0;
    auto put = [&](uint64_t number) { bytes.append(reinterpret_cast<const char*>(&number), sizeof number); };
    auto record = [&](Input text) {
      const auto length = int64_t(text.size());
      put(uint64_t(length)), put(hash64(&length, sizeof length, chain));
      put(chain = hash64(text, chain));
      bytes += text;
    };
    record(kAbout);
    for (Input left = content(input); left.size() >= 2;) {
      const size_t length = std::min<size_t>(left.size() - 2, uint8_t(left[0]) | size_t(uint8_t(left[1])) << 8);
      record(left.substr(2, length));
      left.remove_prefix(2 + length);
    }
  }
  const inputs::QueueFile queue(scratch("queue", bytes), std::string(kAbout), 4);
  int64_t entries = 0;
  for (const inputs::QueueRound& round : queue.rounds()) entries += int64_t(round.kept.size());
}

constexpr Reader kReaders[] = {{"state", read_state_file},
                               {"profile", read_profile_file},
                               {"checkpoint", read_checkpoint_file},
                               {"queue", read_queue_file}};

}  // namespace

std::span<const Reader> own_readers() { return kReaders; }

}  // namespace netmend::fuzz
