// Which value of a network is which layer of the framework: by name where the exporter kept names, else by shape, order
// and value. Used by match.cc alone.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "model/layer.h"
#include "stream/match.h"
#include "stream/reference.h"

namespace netmend::stream {

/// Gathers differences over batches. A value that is NaN on both sides is equal, on one side infinitely different.
class DifferenceSum {
 public:
  void add(const at::Tensor& ours, const at::Tensor& theirs);
  Difference finish() const;

 private:
  double max_ = 0, total_ = 0, size_ = 0;
  int64_t count_ = 0;
};

/// How a value of ours becomes the recorded one: axes exchanged, axes of size 1 added or left out.
struct Alignment {
  std::vector<int64_t> axes;  ///< empty: in their order
  at::Tensor apply(const at::Tensor& ours, at::IntArrayRef theirs) const;
  at::Tensor undo(const at::Tensor& theirs, at::IntArrayRef ours) const;
};
/// All that are possible; empty when the shapes do not belong together.
std::vector<Alignment> alignments(at::IntArrayRef ours, at::IntArrayRef theirs);

/// The module path that an exporter kept in a node's name: `/layer1/layer1.0/conv1/Conv` is layer1.0.conv1.
std::string module_path(const model::Node& node);

/// Call in this order: look once, choose, measure for every batch, finish, isolate.
class LayerPairs {
 public:
  /// Both must outlive it.
  LayerPairs(const model::Graph& graph, const Reference& reference, double tolerance);

  /// Values to compute: every candidate, after `choose` only those that were chosen.
  const std::vector<model::ValueId>& wanted() const { return wanted_; }
  void look(int64_t first, int64_t count, const std::vector<at::Tensor>& values);
  void choose();
  void measure(int64_t first, int64_t count, const std::vector<at::Tensor>& values);
  std::vector<LayerMatch> finish() const;
  /// Runs each layer on the recorded values before it, so that only its own difference is left: LayerMatch::alone.
  /// `count` as in the call of `look`.
  void isolate(const std::vector<at::Tensor>& inputs, int64_t count, std::vector<LayerMatch>& layers) const;

 private:
  struct Candidate {
    model::ValueId value;
    int node;    ///< that makes the value
    int linear;  ///< the operator with weights when that one only adds its bias; else `node`
    std::string path, layer;
    bool weights = false;  ///< made by a layer's operator, bias or norm
    std::vector<int64_t> shape;
  };
  struct Option {
    size_t candidate;
    Alignment alignment;
    double relative;
  };
  /// Sums for y = a·x + b, one per unit.
  struct Line {
    at::Tensor x, y, xx, xy, yy;
    double count = 0;
    void add(const at::Tensor& ours, const at::Tensor& theirs);
    bool explains(double tolerance) const;
  };
  struct Pair {
    const Recorded* recorded;
    std::vector<Option> options;
    int chosen = -1;       ///< of options
    bool follows = false;  ///< is the recorded layer before it but for a scale and an offset per unit: a norm
    DifferenceSum sum;
    Line line;
  };

  void add_candidates();
  int rank(const std::string& name, size_t candidate) const;
  int named_choice(const Pair& pair) const;
  int agreeing_choice(const Pair& pair, size_t from) const;
  int same_choice(const Pair& pair, const Pair& other) const;
  int likely_choice(const Pair& pair, size_t from, size_t to) const;
  const Candidate& candidate(const Pair& pair) const;
  void judge_folded(std::vector<LayerMatch>& layers) const;
  std::vector<const Pair*> before(size_t pair, const std::vector<LayerMatch>& layers) const;
  double alone(size_t pair, const std::vector<at::Tensor>& inputs, int64_t count,
               const std::vector<LayerMatch>& layers) const;

  const model::Graph& graph_;
  const Reference& reference_;
  double tolerance_;
  std::vector<Candidate> candidates_;  ///< in order of execution
  std::vector<Pair> pairs_;
  std::vector<model::ValueId> wanted_;
};

}  // namespace netmend::stream
