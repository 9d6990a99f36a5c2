// A row of the table of criteria (table.h): all that the rest of the program knows of a criterion. Each criterion
// defines its row in its own file. No tensors here, so that help and flags can read the table.
#pragma once

#include <limits>
#include <string_view>

namespace netmend::observers {

struct CriterionMaterials;
struct MadeCriteria;
struct SurpriseMaterials;
struct SurpriseScores;

struct CriterionRow {
  std::string_view name;  ///< as the literature and all results have it
  std::string_view full_name;
  std::string_view asks;       ///< what it wants covered, in plain words
  std::string_view reference;  ///< where it was published
  std::string_view also = "";  ///< another name by which it may be asked for

  struct Setting {
    std::string_view name = "";  ///< "" where there is none
    double usual = 0;
    bool whole = false;
    double least = -std::numeric_limits<double>::infinity();
  };
  Setting parameter = {};  ///< may follow the name

  struct Needs {
    bool training = false;    ///< a profile of training data
    bool importance = false;  ///< of units, in that profile
    int layers = 1;
    int classes = 1;  ///< that are predicted
  };
  Needs needs = {};

  /// Whether each worker's tally is as large as that of the whole, or all of them share out entries of inputs.
  enum class Memory { kPerWorker, kPerInput };
  Memory memory = Memory::kPerWorker;
  bool lists_uncovered = false;  ///< one goal per unit: units that are left uncovered are worth a list
  bool fine = false;             ///< nearly every input adds something, so that it hardly helps to choose inputs
  bool counts = true;            ///< goals or patterns; else it is a magnitude
  bool asked_for = false;        ///< not among `all`: it has to be asked for by name

  /// One of the two: criteria that count in a pass, or scores of the traces that a pass has kept.
  MadeCriteria (*make)(const CriterionMaterials&) = nullptr;
  SurpriseScores (*score)(const SurpriseMaterials&) = nullptr;
};

}  // namespace netmend::observers
