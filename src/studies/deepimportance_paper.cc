#include "studies/deepimportance_paper.h"

#include <array>

namespace netmend::studies::paper {
namespace {

constexpr const char* kModels[] = {"lenet1", "lenet4", "lenet5", "cifar"};
constexpr const char* kSets[] = {"U_O", "U_S", "U_DI"};
constexpr Figure kNone{-1};

struct Diversity {
  const char* criterion;
  std::array<Figure, 12> figures;  ///< by model, then set
};
constexpr Diversity kDiversity[] = {
    {"IDC6",
     {{{34.6, 2.2},
       {38.0, 2.5},
       {38.8, 2.4},
       {58.8, 2.7},
       {64.2, 2.7},
       {65.8, 2.7},
       {47.0, 3.0},
       {51.1, 2.9},
       {52.1, 2.8},
       {29.4, 1.3},
       {37.9, 1.5},
       {39.0, 1.4}}}},
    {"IDC8",
     {{{14.1, 0.9},
       {16.5, 1.1},
       {17.5, 1.2},
       {26.9, 1.1},
       {31.8, 1.4},
       {32.9, 1.5},
       {28.0, 1.2},
       {33.7, 1.7},
       {34.5, 1.7},
       {11.1, 0.6},
       {15.5, 0.8},
       {16.6, 0.9}}}},
    {"IDC10",
     {{{5.5, 0.3},
       {6.6, 0.4},
       {7.0, 0.4},
       {13.5, 0.8},
       {16.9, 1.0},
       {18.1, 1.0},
       {9.5, 0.4},
       {12.2, 0.5},
       {13.1, 0.6},
       {5.1, 0.3},
       {7.4, 0.4},
       {8.1, 0.4}}}},
    {"IDC12",
     {{{2.1, 0.1},
       {2.6, 0.1},
       {2.9, 0.2},
       {4.5, 0.2},
       {6.3, 0.3},
       {6.9, 0.4},
       {4.4, 0.2},
       {6.2, 0.4},
       {6.8, 0.4},
       {2.0, 0.2},
       {3.2, 0.3},
       {3.7, 0.3}}}},
    {"NC",
     {{{17.3, 0.5},
       {20.7, 0.3},
       {20.5, 0.3},
       {37.9, 0.7},
       {44.1, 0.8},
       {43.4, 0.8},
       {44.2, 0.9},
       {51.7, 0.9},
       {50.6, 0.9},
       {20.2, 0.3},
       {35.2, 0.2},
       {34.5, 0.2}}}},
    {"KMNC",
     {{{35.1, 0.3},
       {51.3, 0.4},
       {48.2, 0.4},
       {34.9, 0.2},
       {54.4, 0.3},
       {50.8, 0.3},
       {32.5, 0.2},
       {52.0, 0.3},
       {48.4, 0.2},
       {36.8, 0},
       {43.5, 0},
       {41.5, 0}}}},
    {"NBC",
     {{{16.7, 1.3},
       {22.5, 1.4},
       {21.5, 1.3},
       {9.3, 0.6},
       {12.3, 0.6},
       {11.7, 0.6},
       {9.3, 0.5},
       {12.1, 0.6},
       {11.5, 0.5},
       {9.4, 0},
       {9.5, 0},
       {9.5, 0}}}},
    {"SNAC",
     {{{10.9, 0.6},
       {14.6, 0.6},
       {13.8, 0.6},
       {12.0, 0.5},
       {15.0, 0.6},
       {14.3, 0.6},
       {14.4, 0.5},
       {18.1, 0.6},
       {17.3, 0.6},
       {8.8, 0},
       {8.9, 0},
       {8.9, 0}}}},
    {"TKNC",
     {{{100.0, 0.0},
       {100.0, 0.0},
       {100.0, 0.0},
       {91.3, 0.0},
       {91.7, 0.2},
       {91.6, 0.2},
       {88.8, 0.0},
       {89.2, 0.0},
       {89.1, 0.1},
       {15.2, 0.0},
       {17.0, 0.1},
       {16.6, 0.1}}}},
    {"DSC",
     {{{86.3, 0.0},
       {91.7, 0.3},
       {92.3, 0.5},
       {60.2, 0.3},
       {66.8, 0.1},
       {66.7, 0.2},
       {54.9, 0.0},
       {60.9, 0.2},
       {61.4, 0.2},
       kNone,
       kNone,
       kNone}}},
    {"LSC",
     {{{2.8, 0.1},
       {3.3, 0.1},
       {3.2, 0.1},
       {14.6, 0.1},
       {16.7, 0.1},
       {16.5, 0.2},
       {13.8, 0.0},
       {16.5, 0.1},
       {16.8, 0.2},
       kNone,
       kNone,
       kNone}}},
};

constexpr const char* kCriteria[] = {"IDC6", "IDC8", "NC", "KMNC", "NBC", "SNAC", "TKNC", "LSC", "DSC"};
struct Effectiveness {
  const char *model, *set;
  std::array<double, 9> values;  ///< by criterion
};
constexpr Effectiveness kEffectiveness[] = {
    {"lenet1", "U_O", {34.6, 14.1, 23.8, 62.7, 15.1, 18.6, 100, 2.6, 86.2}},
    {"lenet1", "+S", {36.3, 16.1, 23.8, 70.8, 25.0, 18.6, 100, 4.0, 87.6}},
    {"lenet1", "+FGSM", {42.3, 20.9, 23.8, 81.1, 46.5, 55.8, 100, 13.7, 85.3}},
    {"lenet1", "+BIM", {43.2, 20.8, 23.8, 71.6, 45.3, 53.4, 100, 9.6, 86.8}},
    {"lenet1", "+JSMA", {41.0, 19.0, 23.8, 80.5, 31.3, 37.2, 100, 13.9, 86.9}},
    {"lenet1", "+CW", {37.9, 17.0, 23.8, 64.9, 16.6, 19.0, 100, 5.2, 86.2}},
    {"lenet4", "U_O", {58.8, 27.0, 63.7, 69.2, 7.9, 12.3, 91.3, 14.4, 61.5}},
    {"lenet4", "+S", {62.0, 29.1, 64.4, 72.6, 10.8, 12.3, 91.3, 10.9, 67.0}},
    {"lenet4", "+FGSM", {65.6, 33.4, 64.4, 79.4, 38.8, 65.4, 93.4, 39.3, 83.7}},
    {"lenet4", "+BIM", {66.5, 33.4, 79.3, 74.2, 41.0, 69.7, 92.7, 45.1, 78.8}},
    {"lenet4", "+JSMA", {64.7, 32.2, 63.7, 76.8, 14.3, 20.8, 91.3, 64.4, 88.8}},
    {"lenet4", "+CW", {62.8, 31.0, 63.7, 70.5, 7.9, 12.3, 91.3, 14.4, 60.1}},
    {"lenet5", "U_O", {47.0, 28.0, 75.3, 69.2, 7.6, 13.8, 88.8, 13.8, 54.9}},
    {"lenet5", "+S", {48.1, 29.1, 75.3, 71.5, 10.0, 13.8, 88.8, 10.8, 57.3}},
    {"lenet5", "+FGSM", {51.6, 32.3, 75.3, 79.6, 40.7, 71.3, 89.1, 40.4, 83.5}},
    {"lenet5", "+BIM", {51.6, 32.3, 84.7, 76.1, 46.2, 83.2, 89.1, 42.4, 74.3}},
    {"lenet5", "+JSMA", {49.8, 32.3, 75.3, 74.3, 12.8, 21.1, 89.1, 61.0, 85.7}},
    {"lenet5", "+CW", {49.8, 31.8, 75.3, 70.6, 7.6, 13.8, 88.8, 15.2, 61.2}},
};

struct Layer {
  const char *model, *layer;
  double alone, with;
};
constexpr Layer kLayers[] = {
    {"lenet1", "conv1", 35.3, 38.3}, {"lenet1", "conv2", 76.2, 80.8}, {"lenet4", "conv1", 33.9, 35.9},
    {"lenet4", "conv2", 81.6, 84.0}, {"lenet4", "fc1", 86.0, 90.0},   {"lenet5", "conv1", 12.5, 15.6},
    {"lenet5", "conv2", 31.0, 36.6}, {"lenet5", "fc1", 37.0, 44.2},   {"lenet5", "fc2", 35.8, 43.4},
};

struct Network {
  double accuracy;
  Figure random, important;
};
constexpr Network kNetworks[] = {{98.33, {0.07, 0.05}, {0.28, 0.13}},
                                 {98.59, {1.09, 0.49}, {4.79, 1.35}},
                                 {98.96, {0.93, 0.51}, {4.18, 1.61}},
                                 {77.68, {47.22, 42.8}, {112.03, 70.3}}};

template <typename List>
std::optional<size_t> place(const List& list, const std::string& name) {
  for (size_t i = 0; i < std::size(list); ++i)
    if (name == list[i]) return i;
  return {};
}

}  // namespace

std::optional<double> accuracy(const std::string& model) {
  auto at = place(kModels, model);
  return at ? std::optional(kNetworks[*at].accuracy) : std::nullopt;
}

std::optional<Figure> reaction(const std::string& model, const std::string& units) {
  auto at = place(kModels, model);
  if (!at) return {};
  return units == "important" ? kNetworks[*at].important : kNetworks[*at].random;
}

std::optional<Figure> diversity(const std::string& model, const std::string& criterion, const std::string& set) {
  auto of = place(kModels, model), in = place(kSets, set);
  if (!of || !in) return {};
  for (const Diversity& row : kDiversity)
    if (criterion == row.criterion && row.figures[3 * *of + *in].mean >= 0) return row.figures[3 * *of + *in];
  return {};
}

std::optional<double> effectiveness(const std::string& model, const std::string& criterion, const std::string& set) {
  auto at = place(kCriteria, criterion);
  if (!at) return {};
  for (const Effectiveness& row : kEffectiveness)
    if (model == row.model && set == row.set) return row.values[*at];
  return {};
}

std::optional<double> layer(const std::string& model, const std::string& layer, const std::string& set) {
  for (const Layer& row : kLayers)
    if (model == row.model && layer == row.layer) return set == "U_O" ? row.alone : row.with;
  return {};
}

}  // namespace netmend::studies::paper
