// What predictions show: classes, confusions, confidence, numbers, labels, clusters of failures.
#include "findings/kind_parts.h"

namespace netmend::findings {
namespace {

// A field per line, so that texts can be read and compared.
// clang-format off
constexpr Kind kRows[] = {
    {"preprocessing", "The inputs are probably not preprocessed as in training.", Rule::kBlocker, kData | kLabels,
     "pre-missing-scaling, pre-wrong-normalisation, input-format, pre-missing-on-test",
     "The network receives values that differ from those in training, so no result would describe the model. Checks of "
     "the data still run.",
     "An ONNX file does not say how inputs are scaled and normalised, what order colour channels and axes are in, or "
     "how tokens are numbered, and netmend.toml and the data spec leave it out or get it wrong.",
     "netmend lists the set-ups it tried with the accuracy or error of each. The one it names also holds on inputs "
     "that were not used to choose it; without labels, the running statistics of the first batch normalisation decide.",
     "Add the line that is shown to netmend.toml (or preprocess the data accordingly), then check again. If your "
     "set-up is right after all, the weights may be damaged: --anyway runs the other checks.",
     "check {case}\ndata {data}",
     R"(netmend lab new mlp:784-16-10 -o fresh.onnx
netmend train fresh.onnx --data glyphs --epochs 1 -o sound.onnx
netmend check sound.onnx --data glyphs:test,scale=1)"},
    {"class-order", "The classes are probably numbered differently than in training.", Rule::kBlocker, kData | kLabels,
     "pre-wrong-categorical",
     "With the classes renumbered, clearly more predictions are correct: the network seems to work, but its outputs and "
     "the labels are not in the same order.",
     "Folders were sorted by name, a label file has a different order, labels count from 1, or classes were renamed, "
     "added or removed.",
     "The new order was found on one part of the inputs and also holds on another part.",
     "List the classes in netmend.toml in the order of the model's outputs, as shown.",
     "check {case}",
     R"(awk 'BEGIN{print "a,b,y"; for(i=0;i<900;i++){a=(i*0.618034)%1; b=(i*0.754878)%1; print a "," b "," (a<0.33 ? "ant" : b<0.5 ? "bee" : "cat")}}' > animals.csv
netmend lab new mlp:2-16-3 -o fresh.onnx
netmend train fresh.onnx --train csv:animals.csv,label=y --epochs 20 --rate 0.01 -o sound.onnx
sed 's/ant/wasp/' animals.csv > renamed.csv
netmend check sound.onnx --data csv:renamed.csv,label=y)"},
    {"wrong-output", "Another output of the model fits the labels better.", Rule::kBlocker, kData | kLabels,
     "input-shape-method",
     "The model has several outputs, and the one being judged is probably not the prediction.",
     "The export has auxiliary heads, or features and logits side by side.",
     "The accuracy or error of both outputs is shown, also on inputs that were not used to choose between them.",
     "Set model.output in netmend.toml, or pass --output.",
     "info {model} --nodes\ncheck {case}",
     R"(netmend lab new mlp:784-16-10 -o fresh.onnx
netmend train fresh.onnx --data glyphs --epochs 1 -o changed.onnx
python3 -c '
def field(number, content): return bytes([8 * number + 2, len(content)]) + content
def node(op, *names): return field(1, b"".join(field(1, name) for name in names[:-1]) + field(2, names[-1]) + field(4, op))
open("changed.onnx", "ab").write(field(7, node(b"Neg", b"logits", b"auxiliary") + field(12, field(1, b"auxiliary"))))'
netmend check changed.onnx --data glyphs --output auxiliary)"},
    {"wrong-split", "The expected metric was probably measured on another split.", Rule::kBlocker, kData | kLabels,
     "val-wrong-split",
     "goal.expect is not reached on this data, but it is reached on another split of the same source or on the other "
     "data that netmend.toml names.",
     "Training and test data were swapped, or the value was taken from the log of another split.",
     "The metric on both splits is shown.",
     "Name the intended split: data.test in netmend.toml, or --data.",
     "check {case}",
     R"(awk 'BEGIN{print "a,y"; for(i=0;i<600;i++) print i%2+0.4*((i*0.618034)%1) "," (i%2 ? "yes" : "no")}' > train.csv
awk -F, -v OFS=, 'NR%8==0{$2="yes"} {print}' train.csv > test.csv
netmend lab new mlp:1-8-2 -o fresh.onnx
netmend train fresh.onnx --train csv:train.csv,label=y --epochs 10 --rate 0.01 -o sound.onnx
printf 'data = { train = "csv:train.csv,label=y", test = "csv:test.csv,label=y" }\ngoal = { expect = 1.0 }\n' > netmend.toml
netmend check sound.onnx)"},
    {"output-kind", "The outputs are not what model.output_kind says.", Rule::kBlocker, kData,
     "layer-missing-softmax, act-missing-softmax",
     "Logits would be read as probabilities or probabilities as logits; confidence, loss and decision thresholds "
     "would all be wrong.",
     "The export kept or dropped the final softmax or sigmoid.",
     "The evidence gives the range of the outputs, or whether they sum to 1.",
     "Correct model.output_kind in netmend.toml.",
     "info {model}\ncheck {case} --anyway",
     R"(netmend lab new mlp:784-16-10 -o fresh.onnx
echo 'model = { output_kind = "probabilities" }' > netmend.toml
netmend check fresh.onnx --data glyphs)"},
    {"expectation", "The metric differs from the one that training reported.", Rule::kBlocker, kData | kLabels,
     "x-export-skew, val-wrong-split",
     "goal.expect in netmend.toml is what the training framework measured on this data. netmend measures a different "
     "value, and none of the usual set-ups explains the difference.",
     "The data, the preprocessing or the checkpoint differs from those of training, or the export changed the model.",
     "netmend match compares the outputs with saved outputs of the framework, layer by layer if the reference "
     "contains layers.",
     "Find out which of the two measurements is right before you rely on any other result.",
     "check {case} --anyway\neval {case}",
     R"(netmend lab new mlp:784-16-10 -o fresh.onnx
netmend train fresh.onnx --data glyphs --epochs 1 -o sound.onnx
printf 'data = { test = "glyphs:test" }\ngoal = { expect = 0.99 }\n' > netmend.toml
netmend check sound.onnx)"},
    {"reference", "The outputs differ from those of the training framework.", Rule::kBlocker, kData,
     "x-export-skew, api-error",
     "For the same inputs, the outputs differ from those of the saved reference (model.reference in netmend.toml).",
     "The export lost or changed an operator, or another checkpoint was exported.",
     "netmend match names the first layer that differs, if the reference contains layers.",
     "Export again. Check the opset, and that dropout and batch normalisation are in evaluation mode.",
     "match {model} --reference {reference}\ncheck {case} --anyway",
     R"(netmend lab new mlp:784-16-10 -o fresh.onnx
python3 -c '
import json, struct, zipfile
def npy(kind, shape, data):
    header = str({"descr": kind, "fortran_order": False, "shape": shape}).ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data
about = json.dumps({"format": "netmend-reference", "version": 1, "framework": "none", "samples": [0], "inputs": ["input"], "outputs": ["logits"], "layers": []}).encode()
with zipfile.ZipFile("ref.npz", "w") as file:
    file.writestr("meta.bytes.npy", npy("|u1", (len(about),), about))
    file.writestr("input.input.npy", npy("<f4", (1, 784), bytes(4 * 784)))
    file.writestr("output.logits.npy", npy("<f4", (1, 10), struct.pack("<10f", *range(10))))'
echo 'model = { reference = "ref.npz" }' > netmend.toml
netmend check fresh.onnx --data glyphs)"},
    {"no-better-than-baseline",
     "The model is {degree} always predicting {common}.",
     Rule::kEffect, kData | kLabels | kClasses,
     "hp-epochs, hp-learning-rate, proc-missing-checkpoint, data-wrong-labels",
     "Accuracy does not clearly exceed the majority-class baseline, and balanced accuracy is at most 10 points above "
     "chance. Confusions, recall by class and calibration are therefore not judged.",
     "The model was never trained, training collapsed, or the labels do not belong to the inputs.",
     "The preflight has tried the usual set-ups of the inputs. Measure accuracy on the training data as well: is it "
     "just as low?",
     "Train the model, or load the checkpoint that was trained. If accuracy on training data is high, look at how the "
     "test data is preprocessed and labelled.",
     "eval {case}\ndata {data}",
     R"(netmend lab new mlp:784-16-10 -o fresh.onnx
netmend check fresh.onnx --data glyphs --only majority-baseline)"},
    {"weak-class", "The recall of {class} is low.", Rule::kEffect, kData | kLabels | kClasses,
     "data-not-enough, data-unbalanced, data-wrong-labels, weights-trained",
     "Recall of this class is at least 5 points below the median over classes, and chance does not explain the "
     "difference.",
     "The training data has few inputs of the class or wrong labels among them, another class looks similar, or the "
     "weights that recognise it are damaged.",
     "Look at the confusion matrix: one-sided confusions point to labels or damage, two-sided ones to classes that "
     "look alike. Compare with the recall on training data.",
     "Collect or relabel inputs of the class. Where a few units cause the failures, netmend repair refits them.",
     "failures {case} --on class={class}\nlocate {case} --on class={class}",
     R"(netmend lab new mlp:784-16-10 -o fresh.onnx
netmend train fresh.onnx --data glyphs --epochs 1 -o sound.onnx
netmend check sound.onnx --data glyphs --only weak-classes)"},
    {"confused-classes", "{a} and {b} are often confused.", Rule::kEffect, kData | kLabels | kClasses,
     "data-wrong-labels, data-overlapping-classes, weights-trained",
     "Confusions of these two classes make up a large share of all failures (8 % or more), or a fifth or more of one "
     "class is predicted as the other.",
     "One-sided, confident confusions usually come from wrong labels or damaged output weights. Confusions in both "
     "directions with low confidence usually come from classes that look alike.",
     "Look at the inputs: how many are mislabelled, and could a person distinguish the two classes?",
     "Correct wrong labels; merge or redefine classes that nobody can distinguish; otherwise aim a repair at the pair.",
     "failures {case} --on confusion={a}:{b}\nrepair {case} --on confusion={a}:{b} -o fixed.onnx",
     R"(netmend lab new mlp:784-16-10 -o fresh.onnx
netmend train fresh.onnx --data glyphs --epochs 1 -o sound.onnx
netmend check sound.onnx --data glyphs --only confusions)"},
    {"never-predicted", "{class} is never predicted.", Rule::kEffect, kData | kLabels | kClasses,
     "data-unbalanced, weights-trained, layer-output-shape",
     "The data has inputs of this class, but the model predicts it for no input at all: its recall is 0.",
     "The class was missing or very rare in training, its output is damaged, or the bias of its output is far too low.",
     "Raise the bias of its output: if inputs of the class are then predicted correctly, the features distinguish it.",
     "netmend repair --method bias shifts the output biases. If that does not help, train with inputs of the class.",
     "failures {case} --on class={class}\nrepair {case} --method bias -o fixed.onnx",
     R"(netmend lab new mlp:784-16-10 -o fresh.onnx
python3 -c 'import json
print(json.dumps({"edits": [{"parameter": "fc2.bias", "axis": 0, "index": i, "before": [0], "after": [-1000]} for i in [3]]}))' > edits.json
netmend apply fresh.onnx edits.json -o changed.onnx
netmend train changed.onnx --data glyphs --epochs 1 -o never.onnx
netmend check never.onnx --data glyphs --only weak-classes)"},
    {"over-confident", "Predictions are over-confident.", Rule::kMinor, kData | kLabels | kClasses,
     "hp-missing-regularisation, data-wrong-labels, x-drift",
     "The expected calibration error (ECE) is larger than chance explains, and most of it is confidence above "
     "accuracy. A decision threshold on the confidence lets more errors through than it promises. This is serious if "
     "the interval of the ECE starts at 0.15 or above.",
     "Training continued after the validation loss had reached its minimum, or the inputs are unlike the training "
     "data.",
     "Look at the reliability diagram and the expected calibration error (ECE) in the report.",
     "Temperature scaling corrects the mean confidence with one number and changes no prediction.",
     "repair {case} --method temperature -o fixed.onnx\neval {case}",
     R"(python3 -c '
import random
draw = random.Random(1)
for name, rows in ("train", 150), ("test", 600):
    with open(name + ".csv", "w") as file:
        print(*"abcdefghij", "y", sep=",", file=file)
        for i in range(rows):
            x = [round(draw.gauss(0, 1), 3) for _ in range(10)]
            print(*x, int(sum(x) + draw.gauss(0, 2) > 0), sep=",", file=file)'
netmend lab new mlp:10-64-2 -o fresh.onnx
netmend train fresh.onnx --train csv:train.csv,label=y --epochs 60 --rate 0.01 -o fit.onnx
netmend check fit.onnx --train csv:train.csv,label=y --test csv:test.csv,label=y,train=train.csv --only calibration)"},
    {"under-confident", "Predictions are under-confident.", Rule::kMinor, kData | kLabels | kClasses,
     "layer-redundant-softmax, hp-epochs",
     "The expected calibration error (ECE) is at least 0.05, more than chance explains, and most of it is confidence "
     "below accuracy. A decision threshold on the confidence discards correct predictions.",
     "Training stopped early, label smoothing or regularisation is strong, or softmax is applied twice.",
     "Look at the reliability diagram and the expected calibration error (ECE) in the report.",
     "Temperature scaling corrects the mean confidence with one number and changes no prediction.",
     "repair {case} --method temperature -o fixed.onnx\neval {case}",
     R"(netmend lab new mlp:784-16-10 -o fresh.onnx
netmend train fresh.onnx --data glyphs --epochs 1 --rate 0.0005 -o early.onnx
netmend check early.onnx --data glyphs --only calibration)"},
    {"misleading-metric", "Accuracy hides classes with low recall.", Rule::kEffect, kData | kLabels | kClasses,
     "val-wrong-metric, data-unbalanced",
     "Balanced accuracy, the mean recall over classes, is at least 10 points below accuracy: large classes dominate "
     "the metric.",
     "The classes have very different sizes, and accuracy weights every input equally.",
     "Compare recall by class with the number of inputs of each class: netmend eval lists both.",
     "Report balanced_accuracy or f1 (goal.metric in netmend.toml), and weight the loss by class in training.",
     "eval {case} --metric balanced_accuracy\nslices {case}",
     R"(awk 'BEGIN{print "a,b,y"; for(i=0;i<2000;i++){a=(i*0.618034)%1; print a "," (i*0.754878)%1 "," (i%20==0 ? "rare" : a<0.5 ? "left" : "right")}}' > rare.csv
netmend lab new mlp:2-16-3 -o fresh.onnx
netmend train fresh.onnx --train csv:rare.csv,label=y --epochs 10 --rate 0.01 -o sound.onnx
netmend check sound.onnx --data csv:rare.csv,label=y --only metric)"},
    {"shifted-biases",
     "Shifting the output biases alone improves the predictions.",
     Rule::kEffect, kData | kLabels | kClasses | kHidden | kAnyBatch,
     "data-unbalanced, weights-trained, x-drift",
     "The features separate the classes better than the predictions show: the decision boundaries are offset.",
     "Class shares differ between training and this data, the output biases are damaged, or training stopped early.",
     "The gain is measured on a hold-out set that the shift was not fitted on.",
     "netmend repair --method bias writes the shift into the model. That is the right repair where class shares in "
     "use differ from those of training.",
     "repair {case} --method bias -o fixed.onnx\nslices {case}",
     R"(netmend lab new mlp:784-16-10 -o fresh.onnx
netmend train fresh.onnx --data glyphs --epochs 1 -o sound.onnx
python3 -c '
import struct
data = bytearray(open("sound.onnx", "rb").read())
first = data.rfind(b"fc2.bias") + 10
data[first : first + 4] = struct.pack("<f", 2)
open("shifted.onnx", "wb").write(data)'
netmend check shifted.onnx --data glyphs --only trial-repair)"},
    {"over-fit", "Accuracy is far higher on training data than on test data.", Rule::kEffect, kData | kLabels | kTrain,
     "hp-missing-regularisation, data-not-enough, hp-epochs, val-wrong-split",
     "The gap is at least 10 points, or 7 where accuracy on training data exceeds 90 %. The network has fitted "
     "details of its training data that do not generalise.",
     "There is too little data for a network of this size, training ran for too many epochs, regularisation is "
     "missing, or test data differs from training data.",
     "Drift between the splits would explain the gap too: look for drift, range-shift and class-shift among the "
     "findings.",
     "Use more data, augmentation, early stopping or weight decay.",
     "eval {case}\ncoverage {case}",
     R"(python3 -c '
import random
draw = random.Random(1)
for name, rows in ("train", 150), ("test", 600):
    with open(name + ".csv", "w") as file:
        print(*"abcdefghij", "y", sep=",", file=file)
        for i in range(rows):
            x = [round(draw.gauss(0, 1), 3) for _ in range(10)]
            print(*x, int(sum(x) + draw.gauss(0, 2) > 0), sep=",", file=file)'
netmend lab new mlp:10-64-2 -o fresh.onnx
netmend train fresh.onnx --train csv:train.csv,label=y --epochs 60 --rate 0.01 -o fit.onnx
netmend check fit.onnx --train csv:train.csv,label=y --test csv:test.csv,label=y,train=train.csv --only over-fitting)"},
    {"biased-numbers", "Predicted numbers are {direction} on average.", Rule::kMinor, kData | kLabels | kNumbers,
     "pre-wrong-normalisation, x-drift",
     "The mean error exceeds 10 % of the standard deviation of the labels, and its 95 % interval does not contain 0.",
     "The targets were scaled differently in training, or their mean has changed since.",
     "The evidence gives the mean error with its interval.",
     "netmend repair --method bias subtracts the mean error. If the targets were scaled in training, scale the "
     "predictions back.",
     "repair {case} --method bias -o fixed.onnx\neval {case}",
     R"(awk 'BEGIN{print "a,b,y"; for(i=0;i<600;i++){a=(i*0.618034)%1; b=(i*0.754878)%1; print a "," b "," a-b}}' > train.csv
awk -F, -v OFS=, 'NR>1{$3+=2} {print}' train.csv > shifted.csv
netmend lab new mlp:2-8-1 -o fresh.onnx
netmend train fresh.onnx --train csv:train.csv,label=y,kind=number --epochs 10 --rate 0.01 -o sound.onnx
netmend check sound.onnx --data csv:shifted.csv,label=y,kind=number --only bias)"},
    {"clipped-numbers", "Predicted numbers stop at {limit}, but labels do not.", Rule::kEffect, kData | kLabels | kNumbers,
     "act-wrong-type",
     "At least 2 % of the predictions lie exactly at this limit, and at least 2 % of the labels lie beyond it.",
     "The model ends in an activation function that cannot produce such values: ReLU, sigmoid or tanh.",
     "Compare the range of the predictions with that of the labels; netmend info --nodes shows the last operator.",
     "End the network in a linear layer and train again, or scale the targets into the range of the activation "
     "function.",
     "eval {case}\ninfo {model} --nodes",
     R"(awk 'BEGIN{print "a,b,y"; for(i=0;i<600;i++){a=(i*0.618034)%1; b=(i*0.754878)%1; print a "," b "," a-b}}' > train.csv
netmend lab new mlp:2-8-1 -o fresh.onnx
netmend train fresh.onnx --train csv:train.csv,label=y,kind=number --epochs 10 --rate 0.01 -o changed.onnx
python3 -c '
def field(number, content): return bytes([8 * number + 2, len(content)]) + content
def node(op, *names): return field(1, b"".join(field(1, name) for name in names[:-1]) + field(2, names[-1]) + field(4, op))
open("changed.onnx", "ab").write(field(7, node(b"Relu", b"logits", b"clipped") + field(12, field(1, b"clipped"))))'
netmend check changed.onnx --data csv:train.csv,label=y,kind=number --output clipped --anyway --only clipping)"},
    {"constant-predictions", "Predictions hardly vary.", Rule::kEffect, kData,
     "tensor-missing-squeeze, hp-learning-rate",
     "The standard deviation of predicted numbers is below 2 % of that of the labels; where there are no labels to "
     "compare with, all predictions are equal.",
     "Training collapsed to the mean of the targets, the targets were not scaled, the loss broadcast mismatched "
     "shapes, or the output does not depend on the inputs.",
     "Compare the standard deviation of predictions and labels, and look for a constant-layer finding.",
     "Check the shapes that the loss receives, the learning rate, and the scale of inputs and targets; then train "
     "again.",
     "eval {case}\ninfo {model}",
     R"(awk 'BEGIN{print "a,b,y"; for(i=0;i<600;i++){a=(i*0.618034)%1; b=(i*0.754878)%1; print a "," b "," 1000*(a-b)}}' > large.csv
netmend lab new mlp:2-8-1 -o fresh.onnx
netmend check fresh.onnx --data csv:large.csv,label=y,kind=number --only constant-predictions)"},
    {"mislabelled", "{n} {split} labels look wrong.", Rule::kEffect, kData | kLabels | kClasses,
     "data-wrong-labels",
     "For these inputs the network confidently predicts a class other than the label (confident learning). This means "
     "little if it was trained on them. It is only a note if the network is inaccurate, damaged or not clearly better "
     "than a linear model, or if the tests differ from the training data.",
     "Annotators made mistakes, classes were mixed up, or files were moved.",
     "Look at the inputs; the most convincing come first. Some may be hard inputs with correct labels.",
     "Correct the labels in the source. Do not just delete them: removing what the network gets wrong inflates the "
     "metric.",
     "failures {case} --on labels --export relabel.csv",
     R"(awk 'BEGIN{print "a,b,y"; for(i=0;i<900;i++){a=(i*0.618034)%1; b=(i*0.754878)%1; print a "," b "," (a>b ? "yes" : "no")}}' > train.csv
awk -F, -v OFS=, 'NR%30==0{$3=$3=="yes" ? "no" : "yes"} {print}' train.csv > test.csv
netmend lab new mlp:2-8-2 -o fresh.onnx
netmend train fresh.onnx --train csv:train.csv,label=y --epochs 20 --rate 0.01 -o sound.onnx
netmend check sound.onnx --data csv:test.csv,label=y --only label-errors)"},
    {"failure-cluster",
     "{n} failures lie together in feature space.",
     Rule::kEffect, kData | kLabels | kClasses | kHidden,
     "data-low-quality, x-drift, x-shortcut",
     "At least 70 % of the nearest neighbours of each of these failures, by the activations of the last hidden layer, "
     "are failures too: the network fails on a whole region of similar inputs.",
     "The training data has no such inputs, the inputs share an artefact, or one source has wrong labels.",
     "Look at the inputs together: what do they have in common?",
     "Collect and label more of them. If they share a cause (a camera, a crop, an annotator), correct that.",
     "failures {case} --group pair\nslices {case}",
     R"(awk 'BEGIN{print "a,b,y"; for(i=0;i<900;i++){a=(i*0.618034)%1; b=(i*0.754878)%1; print a "," b "," (a>b ? "yes" : "no")}}' > train.csv
awk -F, -v OFS=, 'NR>1 && $1>0.85{$3="no"} {print}' train.csv > test.csv
netmend lab new mlp:2-8-2 -o fresh.onnx
netmend train fresh.onnx --train csv:train.csv,label=y --epochs 20 --rate 0.01 -o sound.onnx
netmend check sound.onnx --data csv:test.csv,label=y,train=train.csv --only failure-clusters)"},
};
// clang-format on

}  // namespace

std::span<const Kind> answer_kinds() { return kRows; }

}  // namespace netmend::findings
