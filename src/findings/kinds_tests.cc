// What tests, trials and other models show: what is untested, what small changes do, which unit is to blame, what got
// worse.
#include "findings/kind_parts.h"

namespace netmend::findings {
namespace {

constexpr Kind kRows[] = {
    {"untested-region", "The tests never drive {unit} as high as training does.", Rule::kMinor, kData | kTrain,
     "test-low-quality, x-drift",
     "Training data shows the network something that no test does: how it answers there is not known.",
     "Tests that are too few or of one kind; or training data with inputs that do not belong.",
     "Look at the training inputs that do: are they something that matters in use?",
     "Add such inputs to the tests; netmend next picks them from what you have.",
     "coverage {case}\nnext {case} --pool {train} --on unit={unit}",
     "netmend lab new lenet5 -o fresh.onnx\nnetmend train fresh.onnx --data glyphs --epochs 1 -o sound.onnx\nnetmend "
     "coverage sound.onnx --data glyphs"},
    {"untested-units", "{n} of {of} units are never driven as high as in training.", Rule::kNote, kData | kTrain,
     "test-low-quality, val-wrong-split",
     "For many units training shows values that no test reaches: tests and training differ in kind.",
     "Tests that are too few or too easy, or drawn otherwise than training data.",
     "netmend coverage shows for each unit the training inputs that go higher.",
     "Draw tests as training data is drawn; add the kinds that are missing.", "coverage {case}",
     "netmend lab new lenet5 -o fresh.onnx\nnetmend train fresh.onnx --data glyphs --epochs 1 -o sound.onnx\nnetmend "
     "coverage sound.onnx --data glyphs"},
    {"redundant-tests", "{n} tests add nothing new.", Rule::kNote, kData, "test-low-quality",
     "The others reach every region of every unit that these reach.", "Many near-equal inputs.",
     "netmend coverage writes the list of those that are needed.",
     "Spend labels on other inputs; keep these for the interval.", "coverage {case}",
     "netmend lab new lenet5 -o fresh.onnx\nnetmend coverage fresh.onnx --data glyphs"},
    {"not-robust", "{change} changes many answers.", Rule::kEffect, kData | kClasses,
     "proc-missing-augmentation, x-adversarial",
     "A change that no person would mind turns right answers into wrong ones.", "Training never showed such inputs.",
     "Look at pairs of inputs before and after.", "Train with such changes (augmentation).",
     "stress {case} --method {method} -o changed.npz",
     "netmend lab new lenet5 -o fresh.onnx\nnetmend train fresh.onnx --data glyphs --epochs 1 -o sound.onnx\nnetmend "
     "stress "
     "sound.onnx --data glyphs:test --method translate -o changed.npz"},
    {"suspicious-unit", "One unit explains many failures, and refitting it helps.", Rule::kEffect, kData | kLabels,
     "weights-trained",
     "Changing the weights of this unit alone makes the network better on inputs that were not used to find the "
     "change.",
     "Damage to the file or in memory, a unit misled by wrong labels, a bad merge or quantisation.",
     "netmend diff against an older version shows whether its weights moved alone.",
     "netmend repair writes the change after confirming it on unseen inputs.",
     "repair {case} --unit {unit} -o fixed.onnx\nlocate {case}",
     "netmend lab new lenet5 -o fresh.onnx\nnetmend train fresh.onnx --data glyphs --epochs 1 -o sound.onnx\nnetmend "
     "lab "
     "plant sound.onnx --kind random-weights --data glyphs:test --at-least 5 -o faulty.onnx\nnetmend check faulty.onnx "
     "--data glyphs:test"},
    {"under-trained", "Training stopped early: fitting almost anything still helps.", Rule::kEffect, kData | kLabels,
     "hp-epochs, hp-learning-rate",
     "A unit or layer that nothing speaks against gains as much from a little fitting as the most suspicious one.",
     "Too few epochs, a learning rate that was too low, or a schedule that ended too soon.",
     "Train on for a fifth of the epochs and watch the loss on unseen data.", "Train on from this model.",
     "eval {case}",
     "netmend lab new lenet5 -o fresh.onnx\nnetmend train fresh.onnx --data glyphs --epochs 1 -o sound.onnx"},
    {"damaged-layer", "{layer} as a whole does badly, and refitting it helps.", Rule::kEffect, kData | kLabels,
     "weights-trained, x-export-skew",
     "No single unit is to blame, but a small change to this layer wins back many answers on unseen inputs.",
     "Weights that were loaded wrongly, quantised too coarsely, or overwritten.",
     "netmend diff against an older version; netmend match against the framework.",
     "Go back to the layer's older weights if there are any; else netmend repair.",
     "repair {case} -o fixed.onnx\nlocate {case} --layer {layer}",
     "netmend lab new lenet5 -o fresh.onnx\nnetmend train fresh.onnx --data glyphs --epochs 1 -o sound.onnx\nnetmend "
     "lab "
     "plant sound.onnx --kind layer-noise -o faulty.onnx\nnetmend check faulty.onnx --data glyphs:test"},
    {"regressed", "It got worse than {reference}.", Rule::kEffect, kData | kLabels | kReference,
     "weights-trained, hp-learning-rate", "More inputs were broken than fixed, by more than chance explains.",
     "Whatever changed since: data, rate, epochs.", "Look at the inputs that were broken.",
     "Keep the older one, or aim a repair at what was broken.", "compare {reference} {case}",
     "netmend lab new lenet5 -o a.onnx\nnetmend train a.onnx --data glyphs --epochs 1 -o b.onnx\nnetmend compare "
     "b.onnx a.onnx --data glyphs:test"},
    {"regressed-class", "{class} got worse than in {reference}.", Rule::kEffect,
     kData | kLabels | kReference | kClasses, "weights-trained, data-unbalanced",
     "The average may have risen, but answers to this class did not.",
     "Fewer or other inputs of this class in the new training data.",
     "Look at the inputs of the class that were broken.", "More inputs of the class; or a repair aimed at it.",
     "compare {reference} {case}\nrepair {case} --on class={class} -o fixed.onnx",
     "netmend lab new lenet5 -o a.onnx\nnetmend train a.onnx --data glyphs --epochs 1 -o b.onnx\nnetmend compare "
     "b.onnx a.onnx --data glyphs:test"},
    {"seen-in-search", "It is judged on inputs that its repair was searched on.", Rule::kMinor, kData,
     "val-wrong-split", "The figure flatters: a repair does best on the inputs that it was found on.",
     "The same data was given to repair and to check.", "The share of inputs that were seen is counted.",
     "Judge on other data.", "eval {case}", "netmend lab new lenet5 -o fresh.onnx\nnetmend info fresh.onnx"},
};

}  // namespace

std::span<const Kind> test_kinds() { return kRows; }

}  // namespace netmend::findings
