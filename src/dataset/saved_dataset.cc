// saved:DIR, what save_data wrote: the tensors as the network was given them, in parts that are opened when they are
// asked for.
#include <ATen/ATen.h>

#include <algorithm>
#include <list>
#include <numeric>

#include "base/error.h"
#include "base/text.h"
#include "dataset/array_dataset.h"
#include "dataset/image_file.h"
#include "dataset/labels.h"
#include "dataset/options.h"
#include "dataset/readers.h"
#include "dataset/saved_part.h"
#include "dataset/transform.h"

namespace netmend::dataset {
namespace {

constexpr size_t kMostOpen = 64;  ///< parts; a worker reads a part at a time, and machines have that many cores
constexpr int64_t kMostUnpacked = int64_t(512) << 20;
constexpr int64_t kMostClasses = 100000;
constexpr int64_t kMostPadded = int64_t(1) << 26;

/// Opens parts, holds the last used ones, and checks each part's checksum the first time it is opened.
class Parts {
 public:
  explicit Parts(const SavedIndex& index) : index_(index), slots_(index.parts.size()) {}

  std::shared_ptr<const OpenPart> get(size_t number) const {
    Slot& slot = slots_[number];
    std::lock_guard wait(slot.lock);  // who wants the same part waits instead of opening it again
    if (std::shared_ptr<const OpenPart> open = held(number)) return open;
    if (!slot.checked) check_part(index_.parts[number]);
    slot.checked = true;
    auto part = std::make_shared<const OpenPart>(index_, index_.parts[number]);
    hold(number, part);
    return part;
  }

 private:
  struct Slot {
    std::mutex lock;
    bool checked = false;
  };
  struct Held {
    size_t number;
    std::shared_ptr<const OpenPart> part;
  };

  std::shared_ptr<const OpenPart> held(size_t number) const {
    std::lock_guard guard(lock_);
    auto hit = std::find_if(held_.begin(), held_.end(), [&](const Held& one) { return one.number == number; });
    if (hit == held_.end()) return nullptr;
    held_.splice(held_.begin(), held_, hit);
    return hit->part;
  }

  void hold(size_t number, std::shared_ptr<const OpenPart> part) const {
    std::lock_guard guard(lock_);
    unpacked_ += part->unpacked_bytes();
    held_.push_front({number, std::move(part)});
    while (held_.size() > 1 && (held_.size() > kMostOpen || unpacked_ > kMostUnpacked)) {
      unpacked_ -= held_.back().part->unpacked_bytes();
      held_.pop_back();
    }
  }

  const SavedIndex& index_;
  mutable std::vector<Slot> slots_;
  mutable std::mutex lock_;
  mutable std::list<Held> held_;  ///< the last used in front
  mutable int64_t unpacked_ = 0;
};

/// Samples of a batch that lie in one part, as far as they stand together.
struct Run {
  std::shared_ptr<const OpenPart> part;
  int64_t position = 0;         ///< of the first in the batch
  std::vector<int64_t> inside;  ///< numbers in the part
};

/// What is known of the lengths of an input after a look at all of them.
struct Lengths {
  int64_t shortest = INT64_MAX, longest = 0, beyond = 0;  ///< `beyond` the length asked for
};

class SavedDataset : public Dataset {
 public:
  explicit SavedDataset(const Spec& spec)
      : index_(read_saved_index(spec.rest)),
        parts_(index_),
        length_(int_option(spec.options, "length", 0, 1, 1 << 24)) {
    info_.size = index_.samples;
    info_.files = {index_.file};  // holds the checksums of all parts
    info_.groups = index_.groups;
    info_.labels = index_.labels;
    info_.label_width = index_.label_width;
    info_.preprocess = parse_preprocess(spec.options);
    look_through(spec.options);
    for (size_t i = 0; i < index_.inputs.size(); ++i) add_input(i, spec.options);
    check_use(spec);
    check_ids();
  }

  Batch read(std::span<const int64_t> samples) const override {
    Batch batch;
    const std::vector<Run> runs = runs_of(samples);
    for (size_t i = 0; i < inputs_.size(); ++i) {
      batch.masks.emplace_back();
      batch.inputs.push_back(index_.inputs[i].ragged ? read_ragged(i, runs, int64_t(samples.size()), batch.masks[i])
                                                     : read_fixed(i, runs, int64_t(samples.size())));
    }
    if (info_.labels != LabelKind::kNone) batch.labels = read_labels(runs, int64_t(samples.size()));
    batch.samples.assign(samples.begin(), samples.end());
    return batch;
  }

  std::string id(int64_t sample) const override {
    auto [part, inside] = find(sample);
    return part->has_ids() ? part->id(inside) : std::to_string(sample);
  }
  std::vector<std::string> groups(int64_t sample) const override {
    auto [part, inside] = find(sample);
    return part->groups(inside);
  }

  Display display(int64_t sample) const override {
    auto [part, inside] = find(sample);
    if (index_.display == Display::kNone) return display_input(*part, inside);
    std::string content = part->display(inside);
    if (index_.display == Display::kText) return {Display::kText, 0, 0, 0, {}, content};
    const std::string name = fmt::format("{}, display of sample {}", part->path(), sample);
    const int64_t channels = read_image_head(content, name).color ? 3 : 1;
    Image image = decode_image(content, channels, name);
    return {Display::kImage, image.height, image.width, image.channels, std::move(image.pixels), ""};
  }

 private:
  struct Input {
    bool ids = false;
    Form form = Form::kPlain;
    Transform transform;  ///< of inputs that are neither ids nor of different lengths
    int64_t equal = 0;    ///< the one length of all samples where that is so
  };

  /// Labels and lengths of all parts, which are small, so that what cannot be used shows before a pass starts.
  void look_through(const OptionMap& options) {
    lengths_.resize(index_.inputs.size());
    int64_t highest = -1;
    for (const SavedPart& part : index_.parts) {
      Npz file(open_bytes(part.path));
      for (size_t i = 0; i < index_.inputs.size(); ++i)
        if (index_.inputs[i].ragged) note_lengths(read_lengths(file, index_.inputs[i].name, part.samples), lengths_[i]);
      if (info_.labels == LabelKind::kClass || info_.labels == LabelKind::kMulti)
        highest = std::max(highest, highest_class(file, part));
    }
    if (info_.labels == LabelKind::kClass || info_.labels == LabelKind::kMulti)
      info_.classes =
          class_names(options, info_.labels == LabelKind::kMulti ? info_.label_width : highest + 1, index_.classes);
    else if (options.count("classes") || !index_.classes.empty())
      info_.classes = class_names(options, 0, index_.classes);
  }

  void note_lengths(const std::vector<int64_t>& lengths, Lengths& known) const {
    for (int64_t length : lengths) {
      known.shortest = std::min(known.shortest, length);
      known.longest = std::max(known.longest, length);
      known.beyond += length_ > 0 && length > length_;
    }
  }

  /// Of several classes at once every value is 0 or 1.
  int64_t highest_class(const Npz& file, const SavedPart& part) const {
    Array array = file.read("label");
    if (array.count() != part.samples || array.elements() != info_.label_width)
      fail("{} holds {} labels for {} samples", array.bytes->name(), shape_text(array.shape), part.samples);
    const bool several = info_.labels == LabelKind::kMulti;
    int64_t highest = -1;
    std::vector<int64_t> samples(static_cast<size_t>(array.count())), row(static_cast<size_t>(array.elements()));
    std::iota(samples.begin(), samples.end(), 0);
    for_runs(array, samples, [&](const uint8_t* raw, int64_t position, int64_t count) {
      for (int64_t i = 0; i < count; ++i) {
        to_longs(raw + i * array.stride, array.type, array.swapped, array.elements(), row.data());
        for (int64_t value : row) {
          if (value < 0 || value >= (several ? 2 : kMostClasses))
            bad_label(array.bytes->name(), part.first + position + i, value, several);
          highest = std::max(highest, value);
        }
      }
    });
    return highest;
  }

  [[noreturn]] static void bad_label(const std::string& where, int64_t sample, int64_t value, bool several) {
    throw InputError(fmt::format("{}: the label of sample {} is {}, which is {}", where, sample, value,
                                 several ? "neither 0 nor 1" : "not a class number (0, 1, 2 …)"),
                     several ? "Save the data again with a 0 or 1 for each class."
                             : "Save the data again with labels that count from 0, or as numbers.");
  }

  /// Integers are ids; bytes in the shape of an image are pixels. `type=` decides otherwise.
  static bool are_ids(const SavedInput& input, Form form, const OptionMap& options) {
    const bool real = input.type >= Element::kF16;
    const std::string type = text_option(options, "type");
    if (!type.empty() && type != "ids" && type != "float") fail("type={} is unknown: choose from float, ids", type);
    if (real || type == "float") return false;
    return type == "ids" || !(input.type == Element::kU8 && form != Form::kPlain);
  }

  void add_input(size_t number, const OptionMap& options) {
    const SavedInput& saved = index_.inputs[number];
    Array shaped;
    shaped.type = saved.type;
    shaped.shape = saved.shape;
    shaped.shape.insert(shaped.shape.begin(), 1);
    Input input;
    input.form = saved.ragged ? Form::kPlain : guess_form(shaped);
    input.ids = are_ids(saved, input.form, options);
    Feature feature;
    if (saved.ragged) {
      feature = ragged_feature(number, input);
    } else if (input.ids) {
      feature.shape = saved.shape;
    } else {
      input.transform = Transform(fitting_preprocess(input), input.form, saved.shape,
                                  fmt::format("input {} of {}", saved.name, index_.file));
      feature = input.transform.feature(saved.name);
    }
    feature.name = saved.name;
    if (input.ids)
      feature.type = at::kLong;
    else
      feature.columns = saved.columns;
    inputs_.push_back(std::move(input));
    info_.features.push_back(std::move(feature));
  }

  /// With several inputs the options are for the images among them, where there are any.
  Preprocess fitting_preprocess(const Input& input) const {
    const bool images = std::any_of(index_.inputs.begin(), index_.inputs.end(), [](const SavedInput& other) {
      return !other.ragged && other.shape.size() == 3 && (other.type >= Element::kF16 || other.type == Element::kU8);
    });
    return input.form == Form::kPlain && images && index_.inputs.size() > 1 ? Preprocess() : info_.preprocess;
  }

  Feature ragged_feature(size_t number, Input& input) {
    const Lengths& lengths = lengths_[number];
    const std::string& name = index_.inputs[number].name;
    Feature feature;
    feature.shape = index_.inputs[number].shape;
    check_padding(name, feature.shape, lengths);
    if (lengths.shortest == lengths.longest && lengths.longest > 0) input.equal = lengths.longest;
    if (length_) {
      info_.notes.push_back(fmt::format(
          "{}: lengths from {} to {} are padded with zeros to {}{}", name, lengths.shortest, lengths.longest, length_,
          lengths.beyond ? fmt::format("; samples that are longer and are truncated: {} of {}",
                                       with_commas(lengths.beyond), with_commas(info_.size))
                         : ""));
      feature.shape[0] = length_;
    } else if (input.equal) {
      feature.shape[0] = input.equal;
    }
    feature.pad = input.ids ? 0 : -1;
    return feature;
  }

  /// What is padded takes memory that no file vouches for.
  void check_padding(const std::string& name, const std::vector<int64_t>& shape, const Lengths& lengths) const {
    int64_t values = std::max<int64_t>(length_, lengths.longest ? 0 : 1);
    for (size_t axis = 1; axis < shape.size(); ++axis)
      if (__builtin_mul_overflow(values, shape[axis], &values) || values > kMostPadded)
        throw InputError(fmt::format("{}: input {} would be padded to more than {} values per sample", index_.file,
                                     name, with_commas(kMostPadded)),
                         "Give a smaller length=.");
  }

  void check_use(const Spec& spec) const {
    const bool real = std::any_of(inputs_.begin(), inputs_.end(),
                                  [](const Input& input) { return !input.ids && !input.transform.shape().empty(); });
    if (!info_.preprocess.empty() && !real)
      fail("{}: inputs that are ids or differ in length cannot be scaled, shifted or resized", spec.text);
    const bool ragged =
        std::any_of(index_.inputs.begin(), index_.inputs.end(), [](const SavedInput& input) { return input.ragged; });
    if (length_ && !ragged)
      throw InputError(
          fmt::format("length={} does not apply to {}: all its samples have the same length", length_, spec.rest),
          "Leave length= out.");
  }

  void check_ids() const {
    struct Entry {
      size_t hash;
      int64_t sample;
      auto operator<=>(const Entry&) const = default;
    };
    std::vector<Entry> entries;
    for (const SavedPart& part : index_.parts) {
      Npz file(open_bytes(part.path));
      if (!file.has("id.bytes")) continue;
      PackedWords ids(file, "id", part.samples);
      for (int64_t i = 0; i < part.samples; ++i)
        entries.push_back({std::hash<std::string>()(ids.word(i)), part.first + i});
    }
    std::sort(entries.begin(), entries.end());
    for (size_t i = 1; i < entries.size(); ++i) {
      if (entries[i].hash != entries[i - 1].hash) continue;
      const std::string name = id(entries[i].sample);
      if (name == id(entries[i - 1].sample))
        throw InputError(fmt::format("{}: the samples {} and {} have the same id '{}'", index_.file,
                                     entries[i - 1].sample, entries[i].sample, name),
                         "Save the data again with ids that differ, or without ids.");
    }
  }

  struct Place {
    std::shared_ptr<const OpenPart> part;
    int64_t inside;
  };
  Place find(int64_t sample) const {
    const size_t number = index_.part_of(sample);
    return {parts_.get(number), sample - index_.parts[number].first};
  }

  std::vector<Run> runs_of(std::span<const int64_t> samples) const {
    std::vector<Run> runs;
    size_t last = index_.parts.size();
    for (size_t i = 0; i < samples.size(); ++i) {
      const size_t number = index_.part_of(samples[i]);
      if (number != last) runs.push_back({parts_.get(number), int64_t(i), {}});
      last = number;
      runs.back().inside.push_back(samples[i] - index_.parts[number].first);
    }
    return runs;
  }

  at::Tensor read_fixed(size_t number, const std::vector<Run>& runs, int64_t count) const {
    const Input& input = inputs_[number];
    std::vector<int64_t> shape = input.ids ? index_.inputs[number].shape : input.transform.shape();
    shape.insert(shape.begin(), count);
    at::Tensor out = at::empty(shape, input.ids ? at::kLong : at::kFloat);
    const int64_t step = count ? out.numel() / count : 0;
    for (const Run& run : runs) {
      const Array& array = run.part->input(number);
      for_runs(array, run.inside, [&](const uint8_t* raw, int64_t position, int64_t here) {
        const int64_t at = (run.position + position) * step;
        if (input.ids)
          to_longs(raw, array.type, array.swapped, here * step, out.data_ptr<int64_t>() + at);
        else
          input.transform.apply(raw, array.type, array.swapped, here, array.stride, out.data_ptr<float>() + at);
      });
    }
    return out;
  }

  int64_t padded_length(size_t number, const std::vector<Run>& runs) const {
    if (length_) return length_;
    if (inputs_[number].equal) return inputs_[number].equal;
    int64_t longest = 1;
    for (const Run& run : runs)
      for (int64_t sample : run.inside) longest = std::max(longest, rows_of(run, number, sample).second);
    return longest;
  }

  /// Where the rows of a sample begin in its part, and how many there are.
  static std::pair<int64_t, int64_t> rows_of(const Run& run, size_t number, int64_t sample) {
    const std::vector<int64_t>& ends = run.part->ends(number);
    const int64_t begin = sample ? ends[size_t(sample - 1)] : 0;
    return {begin, ends[size_t(sample)] - begin};
  }

  at::Tensor read_ragged(size_t number, const std::vector<Run>& runs, int64_t count, at::Tensor& mask) const {
    const Input& input = inputs_[number];
    const int64_t length = padded_length(number, runs);
    std::vector<int64_t> shape = index_.inputs[number].shape;
    shape[0] = length;
    shape.insert(shape.begin(), count);
    at::Tensor out = at::zeros(shape, input.ids ? at::kLong : at::kFloat);
    const bool padded = length_ || !input.equal;
    if (padded) mask = at::zeros({count, length}, at::kBool);
    std::vector<uint8_t> scratch;
    for (const Run& run : runs)
      for (size_t i = 0; i < run.inside.size(); ++i) {
        auto [begin, rows] = rows_of(run, number, run.inside[i]);
        if (!padded && rows != length)
          fail("{}: sample {} has length {}, but all had length {} when the data was opened: was it changed?",
               run.part->path(), run.inside[i], rows, length);
        rows = std::min(rows, length);
        const int64_t position = run.position + int64_t(i);
        copy_rows(run.part->input(number), begin, rows, out[position], scratch);
        if (padded) std::fill_n(mask.data_ptr<bool>() + position * length, rows, true);
      }
    return out;
  }

  static void copy_rows(const Array& array, int64_t begin, int64_t rows, at::Tensor to, std::vector<uint8_t>& scratch) {
    if (rows == 0) return;
    const uint8_t* raw = array.bytes->view(array.offset + begin * array.stride, rows * array.stride, scratch);
    if (to.scalar_type() == at::kLong)
      to_longs(raw, array.type, array.swapped, rows * array.elements(), to.data_ptr<int64_t>());
    else
      to_floats(raw, array.type, array.swapped, rows * array.elements(), to.data_ptr<float>());
  }

  at::Tensor read_labels(const std::vector<Run>& runs, int64_t count) const {
    const int64_t width = info_.label_width;
    const bool classes = info_.labels == LabelKind::kClass;
    const bool flat = width == 1 && info_.labels != LabelKind::kMulti;
    at::Tensor out = at::empty(flat ? std::vector<int64_t>{count} : std::vector<int64_t>{count, width},
                               classes ? at::kLong : at::kFloat);
    for (const Run& run : runs) {
      const Array& array = *run.part->labels();
      for_runs(array, run.inside, [&](const uint8_t* raw, int64_t position, int64_t here) {
        const int64_t at = (run.position + position) * width;
        if (classes)
          to_longs(raw, array.type, array.swapped, here, out.data_ptr<int64_t>() + at);
        else
          to_floats(raw, array.type, array.swapped, here * width, out.data_ptr<float>() + at);
      });
    }
    return out;
  }

  /// Without anything saved for people's eyes: the first image among the inputs, else the first values.
  Display display_input(const OpenPart& part, int64_t sample) const {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (index_.inputs[i].ragged || inputs_[i].ids || !inputs_[i].transform.image()) continue;
      const Array& array = part.input(i);
      Display display;
      for_runs(array, std::span(&sample, 1), [&](const uint8_t* raw, int64_t, int64_t) {
        display = inputs_[i].transform.display(raw, array.type, array.swapped);
      });
      return display;
    }
    return display_values(part, sample);
  }

  Display display_values(const OpenPart& part, int64_t sample) const {
    constexpr int64_t most = 64;
    const Array& array = part.input(0);
    const std::vector<int64_t>& ends = part.ends(0);
    const int64_t begin = ends.empty() ? sample : sample ? ends[size_t(sample - 1)] : 0;
    const int64_t all = ends.empty() ? array.elements() : (ends[size_t(sample)] - begin) * array.elements();
    std::vector<double> values(size_t(std::min(all, most)));
    std::vector<uint8_t> scratch;
    if (!values.empty())
      to_doubles(
          array.bytes->view(array.offset + begin * array.stride, int64_t(values.size()) * size_of(array.type), scratch),
          array.type, array.swapped, int64_t(values.size()), values.data());
    Display display{Display::kText, 0, 0, 0, {}, ""};
    for (double value : values) display.text += fmt::format("{}{:.6g}", display.text.empty() ? "" : " ", value);
    if (all > most) display.text += " …";
    if (ends.empty() && !inputs_[0].ids) display.values = row_values(info().features[0], values);
    return display;
  }

  SavedIndex index_;
  Parts parts_;
  int64_t length_ = 0;
  std::vector<Lengths> lengths_;
  std::vector<Input> inputs_;
};

}  // namespace

std::unique_ptr<Dataset> open_saved(const Spec& spec) { return std::make_unique<SavedDataset>(spec); }

}  // namespace netmend::dataset
