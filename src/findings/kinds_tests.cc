// What coverage, perturbations, trial repairs and other models show: what is untested, which predictions change, which
// unit causes failures, what got worse.
#include "findings/kind_parts.h"

namespace netmend::findings {
namespace {

// A field per line, so that texts can be read and compared.
// clang-format off
constexpr Kind kRows[] = {
    {"untested-region",
     "Tests never activate {unit} as strongly as training data does.",
     Rule::kMinor, kData | kTrain | kHidden,
     "test-low-quality, x-drift",
     "At least 2 % of the training inputs give this unit a higher activation than any test does. How the model "
     "behaves there is untested.",
     "The tests are few or of one kind, or the training data holds inputs that do not belong there.",
     "Look at the training inputs that are shown: do they matter in use?",
     "Add such inputs to the tests; netmend next selects them from a pool.",
     "coverage {case}\nnext {case} --pool {train} --on unit={unit}",
     R"(awk 'BEGIN{print "a,b,y"; for(i=0;i<900;i++){a=(i*0.618034)%1; b=(i*0.754878)%1; print a "," b "," (a>b ? "yes" : "no")}}' > train.csv
awk -F, 'NR==1 || $1<0.8' train.csv > test.csv
netmend lab new mlp:2-8-2 -o fresh.onnx
netmend train fresh.onnx --train csv:train.csv,label=y --epochs 10 --rate 0.01 -o sound.onnx
netmend check sound.onnx --train csv:train.csv,label=y --test csv:test.csv,label=y,train=train.csv --only untested)"},
    {"untested-units",
     "In {n} of {of} units, training data reaches higher activations than any test.",
     Rule::kNote, kData | kTrain | kHidden,
     "test-low-quality, val-wrong-split",
     "For more than a tenth of the units, more training inputs than chance explains exceed every test, so tests and "
     "training data differ in kind.",
     "The tests are few or too easy, or they were drawn differently from the training data.",
     "netmend coverage lists for each unit the training inputs with higher activations.",
     "Draw the tests as the training data was drawn, and add the kinds of inputs that are missing.",
     "coverage {case}",
     R"(awk 'BEGIN{print "a,b,y"; for(i=0;i<900;i++){a=(i*0.618034)%1; b=(i*0.754878)%1; print a "," b "," (a>b ? "yes" : "no")}}' > train.csv
awk -F, 'NR==1 || $1<0.8' train.csv > test.csv
netmend lab new mlp:2-8-2 -o fresh.onnx
netmend train fresh.onnx --train csv:train.csv,label=y --epochs 10 --rate 0.01 -o sound.onnx
netmend check sound.onnx --train csv:train.csv,label=y --test csv:test.csv,label=y,train=train.csv --only untested)"},
    {"not-robust", "Predictions change under {change}.", Rule::kEffect, kData | kClasses | kAnyBatch,
     "proc-missing-augmentation, x-adversarial",
     "A small perturbation, one that should not change the class, changes many predictions.",
     "The training data has no such variation.",
     "netmend stress writes the perturbed inputs. Compare them with the originals: should any of them have another label?",
     "Train with such perturbations (data augmentation), or with an architecture that is invariant to them.",
     "stress {case} --method {method} -o changed.npz",
     R"(netmend lab new mlp:784-16-10 -o fresh.onnx
netmend train fresh.onnx --data glyphs --epochs 1 -o sound.onnx
netmend check sound.onnx --data glyphs --only robustness)"},
    {"suspicious-unit", "Unit {unit} causes many failures.", Rule::kEffect, kData | kLabels | kHidden | kAnyBatch,
     "weights-trained",
     "Refitting the weights of this unit alone, or resetting its bias, improves the predictions on a hold-out set. A "
     "unit that is refitted must gain clearly more than one from the middle of the ranking.",
     "The file or the memory was damaged, wrong labels misled the unit, or merging or quantising went wrong.",
     "netmend diff against an older version says whether only its weights changed.",
     "netmend repair refits the unit and writes the model only if the gain is confirmed on a hold-out set.",
     "repair {case} --unit {unit} -o fixed.onnx\nlocate {case}",
     R"(netmend lab new mlp:784-32-10 -o fresh.onnx
netmend train fresh.onnx --data glyphs --epochs 3 -o sound.onnx
netmend lab plant sound.onnx --kind random-weights --data glyphs --at-least 5 -o faulty.onnx
netmend check faulty.onnx --data glyphs --only trial-repair)"},
    {"under-trained",
     "Training probably stopped too early: more of it would still help.",
     Rule::kEffect, kData | kLabels | kHidden | kAnyBatch,
     "hp-epochs, hp-learning-rate",
     "A unit or layer that is not suspicious gains nearly as much from refitting as the most suspicious one, or continuing "
     "training gains clearly while no unit or layer stands out.",
     "Training had too few epochs, a learning rate that was too low, or a schedule that ended too soon.",
     "Train for a few more epochs and watch the validation loss.",
     "Continue training from this model.",
     "train {model} --train {train} --epochs 3 --rate 1e-4 -o trained.onnx\neval {case}",
     R"(netmend lab new mlp:784-16-16-10 -o fresh.onnx
netmend train fresh.onnx --data glyphs --limit 3000 --epochs 1 -o early.onnx
netmend check early.onnx --data glyphs --only trial-repair)"},
    {"damaged-layer",
     "The weights of {layer} as a whole cause many failures.",
     Rule::kEffect, kData | kLabels | kHidden | kAnyBatch,
     "weights-trained, x-export-skew",
     "Refitting this layer, scaling its weights by one factor or resetting its biases improves the predictions on a "
     "hold-out set. Either it gains more than refitting a single unit, or several units of the layer gain about as much as "
     "each other. Later layers can make up for a damaged one, so among layers that gain about as much, the first is named.",
     "The weights were loaded wrongly, quantised too coarsely, or overwritten.",
     "netmend diff against an older version, or netmend match against the framework, says whether the layer changed.",
     "Restore the layer's older weights if you have them; otherwise use netmend repair.",
     "repair {case} -o fixed.onnx\nlocate {case} --layer {layer}",
     R"(netmend lab new mlp:784-64-64-10 -o fresh.onnx
netmend train fresh.onnx --data glyphs --epochs 3 -o sound.onnx
netmend lab plant sound.onnx --kind layer-noise --layer fc1 --strength 1.5 --seed 1 -o faulty.onnx
netmend check faulty.onnx --data glyphs:test --limit 1000 --budget quick)"},
    {"regressed", "The model is worse than {reference}.", Rule::kEffect, kData | kLabels | kReference,
     "weights-trained, hp-learning-rate",
     "There are more regressions (correct predictions that became wrong) than fixes, and the interval of the change "
     "lies below 0.",
     "Training data, learning rate, number of epochs or preprocessing changed since the reference.",
     "Look at the inputs that regressed: netmend compare lists them.",
     "Keep the reference, or aim a repair at the inputs that regressed.",
     "compare {reference} {case}",
     R"(netmend lab new mlp:784-16-10 -o fresh.onnx
netmend train fresh.onnx --data glyphs --epochs 1 -o sound.onnx
netmend lab plant sound.onnx --kind random-weights --data glyphs --at-least 2 -o newer.onnx
netmend check newer.onnx --data glyphs --against sound.onnx --only reference)"},
    {"regressed-class",
     "The recall of {class} is lower than in {reference}.",
     Rule::kEffect, kData | kLabels | kReference | kClasses,
     "weights-trained, data-unbalanced",
     "Recall of this class fell by at least 1 point, and chance does not explain it, even if the overall metric did not "
     "fall.",
     "The new training data has fewer or different inputs of this class.",
     "Look at the inputs of the class that regressed: netmend compare lists them.",
     "Add training inputs of the class, or aim a repair at it.",
     "compare {reference} {case}\nrepair {case} --on class={class} -o fixed.onnx",
     R"(netmend lab new mlp:784-16-10 -o fresh.onnx
netmend train fresh.onnx --data glyphs --epochs 1 -o sound.onnx
netmend lab plant sound.onnx --kind random-weights --data glyphs --at-least 2 -o newer.onnx
netmend check newer.onnx --data glyphs --against sound.onnx --only reference)"},
    {"seen-in-search", "The model is judged on inputs that were used to search for its repair.", Rule::kMinor, kData,
     "val-wrong-split",
     "The metric is too optimistic: a repair does best on the inputs that it was fitted to.",
     "The same data, or data that overlaps with it, was given to netmend repair and to this command.",
     "The evidence counts the inputs that the repair has seen.",
     "Judge the repaired model on other data.",
     "eval {case}",
     R"(netmend lab new mlp:784-16-10 -o fresh.onnx
netmend train fresh.onnx --data glyphs --epochs 1 -o sound.onnx
netmend lab plant sound.onnx --kind random-weights --data glyphs --at-least 5 -o faulty.onnx
netmend repair faulty.onnx --data glyphs -o fixed.onnx
netmend check fixed.onnx --data glyphs)"},
};
// clang-format on

}  // namespace

std::span<const Kind> test_kinds() { return kRows; }

}  // namespace netmend::findings
