#include "whatif/whatif.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "base/error.h"
#include "base/pool.h"
#include "edits/places.h"
#include "executor/runtime.h"
#include "model/guard.h"
#include "whatif/lane_path.h"
#include "whatif/row_loops.h"
#include "whatif/shortcut.h"
#include "whatif/tail.h"

namespace netmend::whatif {

using model::ValueId;
using Tensors = std::vector<at::Tensor>;

namespace {

/// Where a unit's old share is larger than what is left by this factor, taking it out leaves rounding errors.
constexpr float kCancels = 10;
/// Predictions whose best two outputs lie nearer than this, relative to the largest, are computed once more without
/// shortcut.
constexpr double kClose = 1e-4;
/// Rows that go through the rest of the network at once: few enough to stay in the second-level cache.
constexpr int64_t kStackBytes = 256 << 10;
/// Changed units whose values are computed together.
constexpr int64_t kUnitsAtOnce = 256;
/// Inputs of a block on a GPU: enough to keep it busy, and several blocks at once hide what the CPU does.
constexpr int64_t kBlockOnDevice = 2048;

/// How a question is answered; questions of one form share executors and, where possible, products.
struct Form {
  int layer = -1;  ///< whose units change; -1 for the long way
  bool by_share = false;
  std::vector<ValueId> constants;  ///< given anew to the rest
  size_t other = 0;                ///< of questions with a graph of their own: their number, from 1
  auto operator<=>(const Form&) const = default;
};

struct Prepared {
  size_t question = 0;
  std::vector<int64_t> units;
  int64_t first_row = -1;  ///< in the group's stacked constants; -1 when set to a number
  float held = 0;
  Tensors constants;  ///< as Form::constants
};

struct Group {
  Form form;
  const Shortcut* way = nullptr;
  std::shared_ptr<const model::Graph> graph;  ///< where it is another one
  ValueId from = model::kAbsent;              ///< and where it begins to differ
  std::unique_ptr<Tail> tail;                 ///< from the reader's output, the seat, or the constants
  std::unique_ptr<Tail> from_seat;            ///< for rows that the share cannot be trusted with
  std::shared_ptr<const LanePath> lanes;      ///< through the reader, where it is a convolution; null for none
  std::unique_ptr<Tail> behind;               ///< from where those end
  std::vector<Prepared> members;
  Tensors rows;  ///< stacked constants of changed units, as Shortcut::constants
};

/// Inputs of a block and the values that groups read.
struct Block {
  int64_t count = 0;  ///< without padding
  Truth truth;
  std::map<ValueId, at::Tensor> values;
};

}  // namespace

struct WhatIf::Impl {
  const stream::Subject& subject;
  const observers::PredictionSettings& settings;
  const std::vector<model::Layer>& layers;
  Options options;
  const model::Graph& graph;
  ValueId answers;
  int64_t block;
  std::vector<std::optional<std::optional<Shortcut>>> shortcuts;                ///< by layer, once looked for
  std::map<ValueId, std::vector<std::pair<int, std::vector<int32_t>>>> owners;  ///< by constant: layers and units
  std::set<ValueId> kept_values;
  std::vector<Block> kept;
  int64_t kept_size = 0;

  Impl(const stream::Subject& s, const observers::PredictionSettings& p, const std::vector<model::Layer>& l, Options o)
      : subject(s), settings(p), layers(l), options(o), graph(s.batching.graph), answers(answers_of(p)) {
    if (settings.task == observers::Task::kNone)
      throw InputError(fmt::format("{} has no labels, so it is unknown whether predictions get better", settings.data),
                       "Give data with labels.");
    block = subject.batching.kind == executor::Batching::kOne ? 1 : subject.batch_on_device(kBlockOnDevice);
    shortcuts.resize(layers.size());
    if (options.memory <= 0)
      options.memory = (subject.device.is_cpu() ? executor::memory_budget() : executor::device_memory()) / 4;
  }

  // ---- how each question is answered

  const Shortcut* shortcut(int layer) {
    if (options.plain || subject.batching.kind != executor::Batching::kAny) return nullptr;
    auto& found = shortcuts[size_t(layer)];
    if (!found) {
      dataset::Batch few = subject.data->read(stream::spread(subject.data->size(), 2));
      model::Layer here = layers[size_t(layer)];  // making a batch free may have added nodes
      here.node = model::producers(graph)[size_t(subject.graph.nodes[size_t(here.node)].outputs[0])];
      at::NoGradGuard no_grad;
      found = find_shortcut(graph, here, answers, subject.feed.inputs(few), subject.device);
    }
    return *found ? &**found : nullptr;
  }

  /// For each number of a constant the unit that it belongs to, by layer.
  const std::vector<std::pair<int, std::vector<int32_t>>>& owners_of(ValueId parameter) {
    auto hit = owners.find(parameter);
    if (hit != owners.end()) return hit->second;
    auto& list = owners[parameter];
    for (size_t l = 0; l < layers.size(); ++l)
      for (const edits::Part& part : edits::find_parts(subject.graph, layers[l]).list) {
        if (part.parameter != parameter) continue;
        std::vector<int32_t> unit_of(size_t(subject.graph.constant(parameter).numel()), -1);
        for (int64_t unit = 0; unit < layers[l].units; ++unit)
          for (int64_t position : part.positions(subject.graph, unit)) unit_of[size_t(position)] = int32_t(unit);
        list.emplace_back(int(l), std::move(unit_of));
      }
    return list;
  }

  struct Touched {
    std::map<int, std::set<int64_t>> units;      ///< by layer
    std::map<ValueId, std::set<int>> constants;  ///< changed ones and the layers they belong to
  };

  Touched touched_by(const std::vector<edits::Edit>& edits) {
    Touched touched;
    for (const edits::Edit& edit : edits) {
      ValueId parameter = edits::find_parameter(subject.graph, edit.parameter);
      at::Tensor value = subject.graph.constant(parameter);
      at::Tensor places =
          edits::slice(at::arange(value.numel(), at::kLong).reshape(value.sizes()), edit.axis, edit.index).contiguous();
      auto& own = touched.constants[parameter];
      const auto& list = owners_of(parameter);
      for (size_t i = 0; i < edit.after.size() && i < edit.before.size(); ++i) {
        if (edits::same_number(edit.before[i], edit.after[i])) continue;
        int64_t place = places.data_ptr<int64_t>()[i];
        bool owned = false;
        for (const auto& [layer, unit_of] : list)
          if (unit_of[size_t(place)] >= 0)
            touched.units[layer].insert(unit_of[size_t(place)]), own.insert(layer), owned = true;
        if (!owned) own.insert(-1);
      }
    }
    return touched;
  }

  /// The first layer in the order of the network, when all that changes in it belongs to its units alone.
  int first_layer(const Touched& touched) {
    if (touched.units.empty()) return -1;
    int first = touched.units.begin()->first;
    for (const auto& [layer, units] : touched.units)
      if (layers[size_t(layer)].node < layers[size_t(first)].node) first = layer;
    for (const auto& [constant, own] : touched.constants)
      if (own.count(-1) || (own.count(first) && own.size() > 1)) return -1;
    return first;
  }

  /// Every change of the layer's constants can be seen in the values that the shortcut stacks.
  bool covers(const Shortcut& way, const Touched& touched, int layer) const {
    std::set<ValueId> roots;
    for (const UnitConstant& constant : way.constants) roots.insert(edits::see(graph, constant.read).root);
    for (const auto& [constant, own] : touched.constants)
      if (own.count(layer) && !roots.count(constant)) return false;
    return true;
  }

  std::vector<Group> prepare(std::span<const Question> questions, std::vector<size_t>& unchanged) {
    std::map<Form, Group> groups;
    std::map<Form, std::vector<Tensors>> rows;
    for (size_t q = 0; q < questions.size(); ++q) {
      const Question& question = questions[q];
      if (question.layer >= 0) {
        hold(question, q, groups);
        continue;
      }
      if (question.graph) {
        rebuild(question, q, groups);
        continue;
      }
      Touched touched = touched_by(question.edits);
      std::erase_if(touched.constants, [](const auto& entry) { return entry.second.empty(); });
      if (touched.constants.empty()) {
        unchanged.push_back(q);
        continue;
      }
      model::Graph edited = subject.graph;
      edits::apply(edited, question.edits);
      Form form;
      form.layer = first_layer(touched);
      const Shortcut* way = form.layer < 0 ? nullptr : shortcut(form.layer);
      if (way && !covers(*way, touched, form.layer)) way = nullptr;
      if (!way) form.layer = -1;
      bool reader_changes = false;
      for (const auto& [constant, own] : touched.constants) {
        if (way && own.count(form.layer)) continue;
        form.constants.push_back(constant);
        reader_changes = reader_changes || (way && way->reader &&
                                            std::count(way->reader->roots.begin(), way->reader->roots.end(), constant));
      }
      form.by_share = way && way->reader && !reader_changes;
      Group& group = groups[form];
      group.form = form, group.way = way;
      Prepared member;
      member.question = q;
      for (ValueId id : form.constants) member.constants.push_back(edited.constant(id));
      if (way) {
        const auto& units = touched.units[form.layer];
        member.units.assign(units.begin(), units.end());
        auto& stacked = rows[form];
        member.first_row = 0;
        for (const Tensors& before : stacked) member.first_row += before[0].size(way->constants[0].axis);
        at::Tensor which = at::tensor(member.units, at::kLong);
        Tensors own;
        for (const UnitConstant& constant : way->constants)
          own.push_back(edits::see(edited, constant.read).view.index_select(constant.axis, which));
        stacked.push_back(std::move(own));
      }
      group.members.push_back(std::move(member));
    }
    std::vector<Group> list;
    for (auto& [form, group] : groups) {
      if (auto hit = rows.find(form); hit != rows.end() && !hit->second.empty())
        for (size_t c = 0; c < group.way->constants.size(); ++c) {
          Tensors parts;
          for (const Tensors& own : hit->second) parts.push_back(own[c]);
          group.rows.push_back(at::cat(parts, group.way->constants[c].axis).to(subject.device));
        }
      make_tails(group);
      if (group.tail->matters())
        list.push_back(std::move(group));
      else
        for (const Prepared& member : group.members) unchanged.push_back(member.question);
    }
    return list;
  }

  void hold(const Question& question, size_t q, std::map<Form, Group>& groups) {
    const model::Layer& layer = layers.at(size_t(question.layer));
    const Shortcut* way = shortcut(question.layer);
    if (!way) fail("units of {} cannot be set to a number: what follows does not take them one by one", layer.name);
    check(question.unit >= 0 && question.unit < layer.units, "{} has {} units", layer.name, layer.units);
    Form form;
    form.layer = question.layer;
    form.by_share = way->reader.has_value();
    Group& group = groups[form];
    group.form = form, group.way = way;
    Prepared member;
    member.question = q;
    member.units = {question.unit};
    member.held = float(question.held);
    group.members.push_back(std::move(member));
  }

  static void rebuild(const Question& question, size_t q, std::map<Form, Group>& groups) {
    Form form;
    form.other = q + 1;
    Group& group = groups[form];
    group.form = form, group.graph = question.graph, group.from = question.from;
    Prepared member;
    member.question = q;
    group.members.push_back(std::move(member));
  }

  void make_tails(Group& group) {
    if (group.graph) {
      group.tail = std::make_unique<Tail>(*group.graph, std::vector<ValueId>{group.from}, answers, subject.device);
      return;
    }
    auto tail = [&](std::vector<ValueId> start) {
      start.insert(start.end(), group.form.constants.begin(), group.form.constants.end());
      return std::make_unique<Tail>(graph, start, answers, subject.device);
    };
    if (!group.way)
      group.tail = tail({});
    else if (group.form.by_share)
      group.tail = tail({group.way->reader->output}), group.from_seat = tail({group.way->seat}), go_in_lanes(group);
    else
      group.tail = tail({group.way->seat});
  }

  void go_in_lanes(Group& group) {
    const Reader& reader = *group.way->reader;
    if (!reader.kernels().defined() || !subject.device.is_cpu() || !group.form.constants.empty()) return;
    executor::Request request;
    request.wanted = {group.way->seat};
    at::NoGradGuard no_grad;
    dataset::Batch few = subject.data->read(stream::spread(subject.data->size(), 1));
    const at::Tensor seat = executor::Executor(graph, request).run(subject.feed.inputs(few))[0];
    group.lanes = LanePath::find(graph, reader.output, reader.kernels(), seat, answers);
    if (group.lanes) group.behind = std::make_unique<Tail>(graph, std::vector{group.lanes->end()}, answers);
    if (group.lanes && !group.behind->stacks()) group.lanes = nullptr, group.behind = nullptr;
  }

  std::set<ValueId> values_for(const std::vector<Group>& groups) const {
    std::set<ValueId> wanted = {answers};
    for (const Group& group : groups) {
      for (const Tail* tail : {group.tail.get(), group.from_seat.get()})
        if (tail) wanted.insert(tail->beside().begin(), tail->beside().end());
      if (group.graph) wanted.insert(group.from);
      if (!group.way) continue;
      wanted.insert({group.way->input, group.way->seat});
      if (group.form.by_share) wanted.insert(group.way->reader->output);
    }
    return wanted;
  }

  // ---- blocks

  Block load(int64_t item, const executor::Executor& base, const std::vector<ValueId>& wanted) const {
    Block out;
    const int64_t first = item * block, size = subject.data->size();
    out.count = std::min(block, size - first);
    std::vector<int64_t> samples;
    for (int64_t i = 0; i < block; ++i) samples.push_back(first + std::min(i, out.count - 1));
    dataset::Batch batch = subject.data->read(samples);
    out.truth = truth_of(settings, batch.labels, out.count);
    Tensors inputs = subject.feed.inputs(batch);
    Tensors found = base.run(inputs);
    for (size_t i = 0; i < wanted.size(); ++i) out.values[wanted[i]] = found[i];
    return out;
  }

  void ask(std::span<const Question> questions, const Sink& sink) {
    std::vector<size_t> unchanged;
    std::vector<Group> groups = prepare(questions, unchanged);
    std::set<ValueId> wanted = values_for(groups);
    const int64_t blocks = (subject.data->size() + block - 1) / block;
    const bool reuse =
        !kept.empty() && std::includes(kept_values.begin(), kept_values.end(), wanted.begin(), wanted.end());
    if (!reuse) wanted.insert(kept_values.begin(), kept_values.end());
    std::vector<ValueId> list(wanted.begin(), wanted.end());
    std::optional<executor::Executor> base;
    if (!reuse) base.emplace(graph, subject.request(list));
    std::vector<Block> fresh(size_t(reuse ? 0 : blocks));
    std::vector<std::vector<Judgement>> found(static_cast<size_t>(blocks));
    bool keeping = options.keep && !reuse;
    int64_t bytes = 0;
    auto work = [&](int64_t item, int) {
      at::NoGradGuard no_grad;
      model::guarded([&] { return subject.model_name; },
                     [&] {
                       if (!reuse) fresh[size_t(item)] = load(item, *base, list);
                       const Block& at = reuse ? kept[size_t(item)] : fresh[size_t(item)];
                       found[size_t(item)].resize(questions.size() * size_t(at.count));
                       Answering(*this, at, found[size_t(item)]).run(groups, unchanged);
                     });
      executor::finish_device_work();  // kept values are read by other threads next time
    };
    auto hand_over = [&](int64_t item) {
      const int64_t count = std::min(block, subject.data->size() - item * block);
      const std::vector<Judgement>& rows = found[size_t(item)];
      for (size_t q = 0; q < questions.size(); ++q)
        sink(q, item * block, {rows.data() + q * size_t(count), size_t(count)});
      found[size_t(item)] = {};
      if (reuse) return;
      for (const auto& [id, value] : fresh[size_t(item)].values) bytes += int64_t(value.nbytes());
      if (keeping && bytes > options.memory) {
        keeping = false;
        for (int64_t i = 0; i < item; ++i) fresh[size_t(i)] = {};
      }
      if (!keeping) fresh[size_t(item)] = {};
    };
    in_order(
        blocks, options.jobs > 0 ? options.jobs : cores(), [](int) { executor::enter_worker(); }, work, hand_over);
    if (keeping) kept = std::move(fresh), kept_values = std::move(wanted), kept_size = bytes;
  }

  std::vector<std::vector<double>> means() {
    std::vector<ValueId> seats;
    std::vector<size_t> which;
    for (size_t l = 0; l < layers.size(); ++l)
      if (const Shortcut* way = shortcut(int(l))) seats.push_back(way->seat), which.push_back(l);
    std::vector<std::vector<double>> sums(layers.size());
    if (seats.empty()) return sums;
    executor::Executor base(graph, subject.request(seats));
    const int64_t blocks = (subject.data->size() + block - 1) / block;
    std::vector<Tensors> found(static_cast<size_t>(blocks));
    for (size_t l : which) sums[l].resize(size_t(layers[l].units));
    auto work = [&](int64_t item, int) {
      at::NoGradGuard no_grad;
      Block at = load(item, base, seats);
      for (ValueId id : seats) {
        at::Tensor value = at.values.at(id).narrow(0, 0, at.count);
        found[size_t(item)].push_back(
            value.reshape({at.count, value.size(1), -1}).to(at::kDouble).mean(2).sum(0).to(at::kCPU));
      }
    };
    auto hand_over = [&](int64_t item) {
      for (size_t i = 0; i < which.size(); ++i)
        for (size_t unit = 0; unit < sums[which[i]].size(); ++unit)
          sums[which[i]][unit] += found[size_t(item)][i].data_ptr<double>()[unit] / double(subject.data->size());
      found[size_t(item)] = {};
    };
    in_order(
        blocks, options.jobs > 0 ? options.jobs : cores(), [](int) { executor::enter_worker(); }, work, hand_over);
    return sums;
  }

  /// All questions on one block.
  class Answering {
   public:
    Answering(const Impl& impl, const Block& block, std::vector<Judgement>& rows)
        : impl_(impl), block_(block), rows_(rows) {}

    void run(const std::vector<Group>& groups, const std::vector<size_t>& unchanged) {
      for (size_t q : unchanged) write(q, block_.values.at(impl_.answers));
      for (const Group& group : groups) {
        if (!group.way)
          long_way(group);
        else
          short_way(group);
      }
    }

   private:
    Judgement* rows_of(size_t question) { return rows_.data() + question * size_t(block_.count); }

    void write(size_t question, const at::Tensor& answers) {
      judge(impl_.settings, answers.narrow(0, 0, block_.count), block_.truth, block_.count, rows_of(question));
    }

    Tensors beside(const Tail& tail) const {
      Tensors values;
      for (ValueId id : tail.beside()) values.push_back(block_.values.at(id));
      return values;
    }

    void long_way(const Group& group) {
      Tensors values = beside(*group.tail);
      if (group.graph) {
        const at::Tensor from = block_.values.at(group.from);
        return write(group.members[0].question, group.tail->run({&from, 1}, values));
      }
      for (const Prepared& member : group.members) write(member.question, group.tail->run(member.constants, values));
    }

    /// Members a few hundred changed units at a time, so that their values stay small.
    void short_way(const Group& group) {
      const std::span<const Prepared> all = group.members;
      for (size_t first = 0; first < all.size();) {
        size_t end = first;
        for (int64_t units = 0; end < all.size() && units < kUnitsAtOnce; ++end)
          units += int64_t(all[end].units.size());
        short_way(group, all.subspan(first, end - first));
        first = end;
      }
    }

    void short_way(const Group& group, std::span<const Prepared> members) {
      const Shortcut& way = *group.way;
      const at::Tensor& seat = block_.values.at(way.seat);
      Fresh fresh;
      for (const Prepared& member : members) {
        if (member.first_row < 0) continue;
        if (fresh.first < 0) fresh.first = member.first_row;
        fresh.count = member.first_row + int64_t(member.units.size()) - fresh.first;
      }
      if (fresh.count > 0) {
        Tensors given = {block_.values.at(way.input)};
        for (size_t c = 0; c < group.rows.size(); ++c)
          given.push_back(group.rows[c].narrow(way.constants[c].axis, fresh.first, fresh.count));
        fresh.values = way.chain->run(given)[0].contiguous();
      }
      if (group.form.by_share && group.form.constants.empty() && group.tail->stacks() && single_rows(group))
        return stacked_rows(group, members, seat, fresh);
      for (const Prepared& member : members) {
        at::Tensor now = values_of(member, seat, fresh);
        if (group.form.by_share)
          by_share(group, member, seat, now);
        else
          from_seat(*group.tail, member, seat, now);
      }
    }

    /// One unit per question, one number per unit: rank-one changes of a matrix, whose rows can be stacked.
    static bool single_rows(const Group& group) {
      if (!group.way->reader->rows().defined()) return false;
      return std::all_of(group.members.begin(), group.members.end(),
                         [](const Prepared& m) { return m.units.size() == 1; });
    }

    /// New values of changed units, inputs × units × positions, and which of the group's rows they are.
    struct Fresh {
      at::Tensor values;
      int64_t first = -1, count = 0;
    };

    static at::Tensor values_of(const Prepared& member, const at::Tensor& seat, const Fresh& fresh) {
      if (member.first_row >= 0)
        return fresh.values.narrow(1, member.first_row - fresh.first, int64_t(member.units.size()));
      return at::full_like(seat.narrow(1, 0, 1), member.held);
    }

    static at::Tensor replaced(const at::Tensor& seat, const Prepared& member, const at::Tensor& now) {
      at::Tensor copy = seat.clone();
      for (size_t i = 0; i < member.units.size(); ++i) copy.select(1, member.units[i]).copy_(now.select(1, int64_t(i)));
      return copy;
    }

    void from_seat(const Tail& tail, const Prepared& member, const at::Tensor& seat, const at::Tensor& now) {
      Tensors changed = {replaced(seat, member, now)};
      changed.insert(changed.end(), member.constants.begin(), member.constants.end());
      write(member.question, tail.run(changed, beside(tail)));
    }

    void by_share(const Group& group, const Prepared& member, const at::Tensor& seat, const at::Tensor& now) {
      const Reader& reader = *group.way->reader;
      at::Tensor old = seat.index_select(1, at::tensor(member.units, at::kLong));
      if (group.lanes) return by_lanes(group, member, seat, old, now);
      at::Tensor z = reader.share(now - old, member.units).add_(block_.values.at(reader.output)).contiguous();
      double weight = 0;
      for (int64_t unit : member.units) weight = std::max(weight, reader.largest(unit));
      std::vector<float> largest(size_t(block_.count));
      largest_of_rows(z.data_ptr<float>(), block_.count, z.numel() / z.size(0), largest.data());
      std::vector<int64_t> again = cancelled(old.contiguous(), largest, weight);
      if (int64_t(again.size()) * 4 > block_.count) return from_seat(*group.from_seat, member, seat, now);
      Tensors changed = {z};
      changed.insert(changed.end(), member.constants.begin(), member.constants.end());
      at::Tensor answers = group.tail->run(changed, beside(*group.tail));
      judge(impl_.settings, answers.narrow(0, 0, block_.count), block_.truth, block_.count, rows_of(member.question),
            kClose, &again);
      repeat(group, member, seat, now, again);
    }

    /// The same with the way through the reader in lanes.
    void by_lanes(const Group& group, const Prepared& member, const at::Tensor& seat, const at::Tensor& old,
                  const at::Tensor& now) {
      const Reader& reader = *group.way->reader;
      at::Tensor& lanes = lanes_[&group];
      if (!lanes.defined()) lanes = group.lanes->in_lanes(block_.values.at(reader.output));
      std::vector<float> largest;
      const at::Tensor behind = group.lanes->run(lanes, now - old, member.units, largest);
      double weight = 0;
      for (int64_t unit : member.units) weight = std::max(weight, reader.largest(unit));
      std::vector<int64_t> again = cancelled(old.contiguous(), largest, weight);
      if (int64_t(again.size()) * 4 > block_.count) return from_seat(*group.from_seat, member, seat, now);
      at::Tensor answers = group.behind->run({&behind, 1}, {});
      judge(impl_.settings, answers.narrow(0, 0, block_.count), block_.truth, block_.count, rows_of(member.question),
            kClose, &again);
      repeat(group, member, seat, now, again);
    }

    /// `largest`: absolute value of what the reader makes, by row.
    std::vector<int64_t> cancelled(const at::Tensor& old, const std::vector<float>& largest, double weight) const {
      std::vector<int64_t> rows;
      const int64_t own = old.numel() / old.size(0);
      std::vector<float> shares(static_cast<size_t>(block_.count));
      largest_of_rows(old.data_ptr<float>(), block_.count, own, shares.data());
      for (int64_t row = 0; row < block_.count; ++row)
        if (!(shares[size_t(row)] * float(weight) <= kCancels * largest[size_t(row)])) rows.push_back(row);
      return rows;
    }

    /// Rows that the share cannot be trusted with, computed from the seat on.
    void repeat(const Group& group, const Prepared& member, const at::Tensor& seat, const at::Tensor& now,
                std::vector<int64_t>& rows) {
      if (rows.empty()) return;
      std::sort(rows.begin(), rows.end());
      rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
      at::Tensor which = at::tensor(rows, at::kLong);
      Tensors changed = {replaced(seat.index_select(0, which), member, now.index_select(0, which))}, others;
      changed.insert(changed.end(), member.constants.begin(), member.constants.end());
      for (const at::Tensor& value : beside(*group.from_seat)) {
        // A shape, or positions first: rows cannot be picked out of it, so the whole block goes again.
        if (value.dim() == 0 || value.size(0) != seat.size(0)) return from_seat(*group.from_seat, member, seat, now);
        others.push_back(value.index_select(0, which));
      }
      at::Tensor answers = group.from_seat->run(changed, others);
      Truth truth;
      for (int64_t row : rows)
        if (!block_.truth.classes.empty()) truth.classes.push_back(block_.truth.classes[size_t(row)]);
      if (block_.truth.numbers.defined()) truth.numbers = block_.truth.numbers.index_select(0, which);
      std::vector<Judgement> judged(rows.size());
      judge(impl_.settings, answers, truth, int64_t(rows.size()), judged.data());
      for (size_t i = 0; i < rows.size(); ++i) rows_of(member.question)[rows[i]] = judged[i];
    }

    void stacked_rows(const Group& group, std::span<const Prepared> members, const at::Tensor& seat,
                      const Fresh& fresh) {
      const Reader& reader = *group.way->reader;
      const at::Tensor z = block_.values.at(reader.output).contiguous(), old = seat.flatten(1).contiguous();
      const int64_t width = z.size(1), inputs = block_.count, units = old.size(1);
      const int64_t at_once = std::max<int64_t>(1, kStackBytes / (width * inputs * 4));
      const at::Tensor now = fresh.values.defined() ? fresh.values.flatten(1) : at::Tensor();
      const int64_t columns = now.defined() ? now.size(1) : 0;
      const float* weights = reader.rows().data_ptr<float>();
      at::Tensor stack = at::empty({at_once * inputs, width}, at::kFloat);
      std::vector<Judgement> judged(size_t(at_once * inputs));
      std::vector<float> delta(static_cast<size_t>(inputs)), most(static_cast<size_t>(inputs));
      for (size_t first = 0; first < members.size(); first += size_t(at_once)) {
        const size_t count = std::min(members.size() - first, size_t(at_once));
        std::vector<int64_t> again;
        float* out = stack.data_ptr<float>();
        for (size_t m = 0; m < count; ++m) {
          const Prepared& member = members[first + m];
          const auto weight = float(reader.largest(member.units[0]));
          const float *before = old.data_ptr<float>() + member.units[0], *after = nullptr;
          if (member.first_row >= 0) after = now.data_ptr<float>() + member.first_row - fresh.first;
          for (int64_t row = 0; row < inputs; ++row)
            delta[size_t(row)] = (after ? after[row * columns] : member.held) - before[row * units];
          add_scaled_rows(z.data_ptr<float>(), delta.data(), weights + member.units[0] * width, inputs, width, out,
                          most.data());
          out += inputs * width;
          for (int64_t row = 0; row < inputs; ++row)
            if (!(std::abs(before[row * units]) * weight <= kCancels * most[size_t(row)]))
              again.push_back(int64_t(m) * inputs + row);
        }
        at::Tensor rows = stack.narrow(0, 0, int64_t(count) * inputs);
        at::Tensor answers = group.tail->run({&rows, 1}, {});
        judge(impl_.settings, answers, block_.truth, inputs, judged.data(), kClose, &again);
        for (size_t m = 0; m < count; ++m)
          std::copy_n(judged.data() + int64_t(m) * inputs, inputs, rows_of(members[first + m].question));
        std::sort(again.begin(), again.end());
        for (size_t i = 0; i < again.size();) {
          const int64_t m = again[i] / inputs;
          std::vector<int64_t> own;
          for (; i < again.size() && again[i] / inputs == m; ++i) own.push_back(again[i] % inputs);
          const Prepared& member = members[first + size_t(m)];
          repeat(group, member, seat, values_of(member, seat, fresh), own);
        }
      }
    }

    const Impl& impl_;
    const Block& block_;
    std::vector<Judgement>& rows_;
    std::map<const Group*, at::Tensor> lanes_;  ///< what readers made, once for all questions
  };
};

WhatIf::WhatIf(const stream::Subject& subject, const observers::PredictionSettings& settings,
               const std::vector<model::Layer>& layers, Options options)
    : impl_(std::make_unique<Impl>(subject, settings, layers, options)) {}
WhatIf::~WhatIf() = default;

void WhatIf::ask(std::span<const Question> questions, const Sink& sink) { impl_->ask(questions, sink); }
bool WhatIf::has_shortcut(int layer) { return impl_->shortcut(layer) != nullptr; }
int64_t WhatIf::kept_bytes() const { return impl_->kept_size; }
std::vector<std::vector<double>> WhatIf::means() { return impl_->means(); }

std::vector<Tally> tally(WhatIf& whatif, const observers::PredictionSettings& settings,
                         std::span<const Question> questions) {
  std::vector<Tally> tallies(questions.size());
  for (Tally& one : tallies)
    if (settings.by_class())
      one.right_by_class.resize(settings.classes.size()), one.called_by_class.resize(settings.classes.size());
  whatif.ask(questions, [&](size_t question, int64_t, std::span<const Judgement> rows) {
    Tally& one = tallies[question];
    for (const Judgement& row : rows) {
      ++one.inputs;
      one.right += row.right;
      one.loss += row.loss;
      if (row.predicted < 0 || one.called_by_class.empty()) continue;
      ++one.called_by_class[size_t(row.predicted)];
      one.right_by_class[size_t(row.predicted)] += row.right;
    }
  });
  return tallies;
}

}  // namespace netmend::whatif
