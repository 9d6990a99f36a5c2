// What the answers show: classes, confusions, confidence, numbers, labels, clusters of failures.
#include "findings/kind_parts.h"

namespace netmend::findings {
namespace {

constexpr Kind kRows[] = {
    {"preprocessing", "The inputs are probably not prepared as in training.", Rule::kBlocker, kData | kLabels,
     "pre-missing-scaling, pre-wrong-normalisation, input-format, pre-missing-on-test",
     "The network sees other numbers than it learned from; every other result would be about noise.",
     "Scale, mean and standard deviation, the order of colours or axes are not part of an ONNX file and were not "
     "given.",
     "The table of set-ups that were tried, judged on inputs that they were not chosen on.",
     "Write the line that is shown into netmend.toml, then check again.", "check {case}\ndata {data}",
     "netmend lab new lenet5 -o fresh.onnx\nnetmend train fresh.onnx --data glyphs --epochs 1 -o sound.onnx\nnetmend "
     "check "
     "sound.onnx --data glyphs:test,scale=1"},
    {"class-order", "Classes are numbered otherwise than in training.", Rule::kBlocker, kData | kLabels,
     "pre-wrong-categorical",
     "A renumbering of the labels makes most answers right: the network is fine, the numbers of the classes are not.",
     "Folders sorted by name, a label file in another order, classes that were added or removed.",
     "The renumbering is found on one half of the inputs and holds on the other.",
     "Write the classes in the order of training into netmend.toml.", "check {case}",
     "netmend lab new lenet5 -o fresh.onnx\nnetmend train fresh.onnx --data glyphs --epochs 1 -o sound.onnx\nnetmend "
     "check "
     "sound.onnx --data glyphs:test"},
    {"wrong-output", "Another output of the model is the one to judge.", Rule::kBlocker, kData | kLabels,
     "input-shape-method", "The model has several outputs, and another one fits the labels.",
     "Exports with auxiliary heads, features and scores side by side.", "Its accuracy is shown beside this one's.",
     "Write model.output into netmend.toml, or give --output.", "info {case} --nodes\ncheck {case}",
     "netmend lab new lenet5 -o fresh.onnx\nnetmend info fresh.onnx --nodes"},
    {"wrong-split", "This is probably not the data that was meant.", Rule::kBlocker, kData | kLabels, "val-wrong-split",
     "Another split of the same source gives what was expected.", "Train and test were taken for each other.",
     "The accuracy on the other split is shown.", "Name the split that was meant.", "check {case}",
     "netmend lab new lenet5 -o fresh.onnx\nnetmend train fresh.onnx --data glyphs --epochs 1 -o sound.onnx\nnetmend "
     "check "
     "sound.onnx --data glyphs:test"},
    {"expect", "The metric is not what training reported.", Rule::kBlocker, kData | kLabels,
     "x-export-skew, val-wrong-split",
     "goal.expect in netmend.toml says what the training framework measured on this data, and we measure something "
     "else.",
     "Other data, other preprocessing, another checkpoint, or a fault of the export.",
     "netmend match compares with saved outputs of the framework, layer by layer.",
     "Find out which of the two runs is the one that was meant; only then go on.", "check {case} --anyway\neval {case}",
     "netmend lab new lenet5 -o fresh.onnx\nnetmend check fresh.onnx --data glyphs:test"},
    {"reference", "The model does not answer as the framework did that trained it.", Rule::kBlocker, kData,
     "x-export-skew, api-error",
     "Saved outputs of the original framework differ from what this file gives for the same inputs.",
     "The export lost or changed something, or another checkpoint was exported.",
     "netmend match shows the first layer that departs.",
     "Export again; check the opset and the mode of norms and dropout.", "check {case} --anyway\ninfo {case}",
     "netmend lab new lenet5 -o fresh.onnx\nnetmend info fresh.onnx"},
    {"no-better-than-guessing", "It does no better than always saying {common}.", Rule::kEffect,
     kData | kLabels | kClasses, "hp-epochs, hp-learning-rate, proc-missing-checkpoint, data-wrong-labels",
     "The metric is within chance of what an empty-headed answer gets, and no usual set-up of the inputs explains it.",
     "It was never trained, training collapsed, or labels and inputs belong to different things.",
     "netmend check tried the usual set-ups; look at the accuracy on training data: is it as bad there?",
     "Train first. If accuracy on training data is good, look at how test data is prepared.",
     "eval {case}\ndata {data}", "netmend lab new lenet5 -o fresh.onnx\nnetmend check fresh.onnx --data glyphs:test"},
    {"weak-class", "{class} is recognised less often than the rest.", Rule::kEffect, kData | kLabels | kClasses,
     "data-not-enough, data-unbalanced, data-wrong-labels, weights-trained",
     "Right answers are far rarer for this class than for the others.",
     "Few training inputs of it, wrong labels among them, a look-alike, or damage to what recognises it.",
     "One-sided confusions point to labels or damage, two-sided ones to classes that look alike; compare with training "
     "data.",
     "More or better labels for it; where a few units are to blame, netmend repair.",
     "failures {case} --on class={class}\nlocate {case} --on class={class}",
     "netmend lab new lenet5 -o fresh.onnx\nnetmend train fresh.onnx --data glyphs --epochs 1 -o sound.onnx\nnetmend "
     "lab "
     "plant sound.onnx --kind swapped-classes -o faulty.onnx\nnetmend check faulty.onnx --data glyphs:test"},
    {"confused-classes", "{a} and {b} are taken for each other.", Rule::kEffect, kData | kLabels | kClasses,
     "data-wrong-labels, data-overlapping-classes, weights-trained",
     "A large part of all failures is between these two classes.",
     "One-sided and sure: labels, or a damaged output. Two-sided and unsure: the classes look alike.",
     "Look at the inputs; how many of them look mislabelled? Would you tell them apart?",
     "Relabel what is wrong; merge or redefine classes that nobody can tell apart; else aim a repair at the pair.",
     "failures {case} --on confusion={a}:{b}\nrepair {case} --on confusion={a}:{b} -o fixed.onnx",
     "netmend lab new lenet5 -o fresh.onnx\nnetmend train fresh.onnx --data glyphs --epochs 1 -o sound.onnx\nnetmend "
     "lab "
     "plant sound.onnx --kind swapped-classes -o faulty.onnx\nnetmend check faulty.onnx --data glyphs:test"},
    {"never-answered", "It never answers {class}.", Rule::kEffect, kData | kLabels | kClasses,
     "data-unbalanced, weights-trained, layer-output-shape",
     "There are inputs of this class, and not one is recognised as such, nor is anything else taken for it.",
     "The class was missing in training, its output is damaged, or its bias is far too low.",
     "Shift the bias of its output: if answers return, the features are there.",
     "netmend repair --method bias, or train with the class.",
     "failures {case} --on class={class}\nrepair {case} --method bias -o fixed.onnx",
     "netmend lab new lenet5 -o fresh.onnx\nnetmend check fresh.onnx --data glyphs:test"},
    {"over-confident", "It is surer than it is right.", Rule::kMinor, kData | kLabels | kClasses,
     "hp-missing-regularisation, data-wrong-labels, x-drift",
     "Who acts on the confidence will be wrong more often than it says.",
     "Training long past the point where the loss on unseen data is lowest; inputs unlike training data.",
     "The curve of accuracy against confidence, in the report.",
     "One number repairs it and changes no answer: the temperature.",
     "repair {case} --method temperature -o fixed.onnx\neval {case}",
     "netmend lab new lenet5 -o fresh.onnx\nnetmend train fresh.onnx --data glyphs --epochs 1 -o sound.onnx\nnetmend "
     "check "
     "sound.onnx --data glyphs:test"},
    {"under-confident", "It is right more often than it is sure.", Rule::kMinor, kData | kLabels | kClasses,
     "layer-redundant-softmax, hp-epochs",
     "Answers are better than their confidence says; thresholds on it throw good answers away.",
     "Softmax twice, strong label smoothing or regularisation, or training that stopped early.",
     "The curve of accuracy against confidence, in the report.",
     "One number repairs it and changes no answer: the temperature.",
     "repair {case} --method temperature -o fixed.onnx\neval {case}",
     "netmend lab new lenet5 -o fresh.onnx\nnetmend check fresh.onnx --data glyphs:test"},
    {"misleading-metric", "Accuracy hides that small classes do badly.", Rule::kEffect, kData | kLabels | kClasses,
     "val-wrong-metric, data-unbalanced",
     "The mean over classes is far below the mean over inputs: large classes carry the figure.",
     "Classes of very different size, and a metric that counts inputs.", "The table per class.",
     "Report balanced_accuracy or f1 (goal.metric); weigh the loss by class.",
     "eval {case} --metric balanced_accuracy\nslices {case}",
     "netmend lab new lenet5 -o fresh.onnx\nnetmend eval fresh.onnx --data glyphs:test --metric balanced_accuracy"},
    {"shifted-answers", "Shifting the final biases alone makes answers better.", Rule::kEffect,
     kData | kLabels | kClasses, "data-unbalanced, weights-trained, x-drift",
     "The network tells inputs apart better than its answers show: the thresholds between classes are off.",
     "Classes were more or less frequent in training than here, or the output layer is damaged.",
     "The gain is measured on inputs that the shift was not fitted on.",
     "netmend repair --method bias writes the shift; for a class balance that differs in use, it is the right repair.",
     "repair {case} --method bias -o fixed.onnx\nslices {case}",
     "netmend lab new lenet5 -o fresh.onnx\nnetmend check fresh.onnx --data glyphs:test"},
    {"over-fit", "It does far better on training data than on tests.", Rule::kEffect, kData | kLabels | kTrain,
     "hp-missing-regularisation, data-not-enough, hp-epochs, val-wrong-split",
     "What it learned holds for the inputs it saw more than for others.",
     "Too little data for so large a network, too many epochs, nothing that restrains it; or tests unlike training.",
     "Drift between the splits would explain it too: netmend check says whether inputs differ.",
     "More data, augmentation, early stopping, weight decay.", "eval {case}\nstress {case} --method rotate",
     "netmend lab new lenet5 -o fresh.onnx\nnetmend train fresh.onnx --data glyphs --epochs 1 -o sound.onnx\nnetmend "
     "check "
     "sound.onnx --data glyphs"},
    {"biased-numbers", "Answers are {direction} on average.", Rule::kMinor, kData | kLabels,
     "pre-wrong-normalisation, x-drift", "The mean error is far from 0: a constant could be subtracted.",
     "Targets scaled otherwise, or shifted since training.", "The mean error with its interval.",
     "netmend repair --method bias subtracts it.", "repair {case} --method bias -o fixed.onnx\neval {case}",
     "netmend data glyphs:test"},
    {"clipped-numbers", "Answers stop at {limit}, truths do not.", Rule::kEffect, kData | kLabels, "act-wrong-type",
     "Many answers lie exactly at one limit while true values go beyond it.",
     "An activation at the end that cannot give such numbers: ReLU, sigmoid, tanh.",
     "The range of answers beside the range of labels.", "End in a linear layer and train again, or scale the targets.",
     "eval {case}\ninfo {case} --nodes", "netmend data glyphs:test"},
    {"constant-answers", "It answers nearly the same whatever it is asked.", Rule::kEffect, kData,
     "tensor-missing-squeeze, hp-learning-rate", "Answers hardly vary, while inputs and labels do.",
     "Training that collapsed to the mean, inputs that do not arrive.", "The spread of answers beside that of labels.",
     "Check shapes at the loss, the learning rate, the scale of inputs.", "eval {case}\ninfo {case}",
     "netmend lab new lenet5 -o fresh.onnx\nnetmend check fresh.onnx --data glyphs:test"},
    {"mislabelled", "{n} {split} labels look wrong.", Rule::kMinor, kData | kLabels | kClasses, "data-wrong-labels",
     "The network is surely and consistently of another opinion, on inputs that it did not learn from.",
     "Labelling mistakes, classes that were mixed up, files that were moved.",
     "Look at them: the most convincing are shown first. Some will be hard inputs with right labels.",
     "Correct the labels in the source. Look before you delete: removing what the network dislikes flatters it.",
     "failures {case} --on labels --export relabel.csv",
     "netmend lab new lenet5 -o fresh.onnx\nnetmend train fresh.onnx --data glyphs --epochs 1 -o sound.onnx\nnetmend "
     "failures sound.onnx --data glyphs:test --on labels"},
    {"failure-cluster", "Failures come in a bunch: {n} inputs that look alike to the network.", Rule::kEffect,
     kData | kLabels | kClasses, "data-low-quality, x-drift, x-shortcut",
     "A region of inputs, as the last hidden layer sees them, in which most answers are wrong.",
     "A kind of input that training did not show, a common artefact, wrong labels from one source.",
     "Look at them together: what have they in common?",
     "Collect and label more of them; if they share a cause (a camera, a crop), repair that.",
     "failures {case} --group pair\nslices {case}",
     "netmend lab new lenet5 -o fresh.onnx\nnetmend train fresh.onnx --data glyphs --epochs 1 -o sound.onnx\nnetmend "
     "check "
     "sound.onnx --data glyphs:test"},
};

}  // namespace

std::span<const Kind> answer_kinds() { return kRows; }

}  // namespace netmend::findings
