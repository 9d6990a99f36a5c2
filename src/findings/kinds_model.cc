// What the graph, the weights and the activations show.
#include "findings/kind_parts.h"

namespace netmend::findings {
namespace {

// A field per line, so that texts can be read and compared.
// clang-format off
constexpr Kind kRows[] = {
    {"non-finite-weights", "{layer} has weights that are NaN or Inf.", Rule::kBlocker, kModel,
     "hp-learning-rate, x-export-skew",
     "A prediction that depends on such a weight usually becomes NaN or Inf.",
     "Training diverged and the result was saved anyway, half precision overflowed, or the file is damaged.",
     "Look at the checkpoint that was exported. If its weights are finite, the export or the file is at fault; "
     "otherwise training diverged.",
     "Go back to the last checkpoint with finite weights. Lower the learning rate or clip gradients before you "
     "continue training.",
     "info {model}",
     R"(netmend lab new mlp:784-16-10 -o fresh.onnx
python3 -c '
data = bytearray(open("fresh.onnx", "rb").read())
first = data.rfind(b"fc1.weight") + 14
data[first : first + 4] = bytes.fromhex("0000c07f")
open("nan.onnx", "wb").write(data)'
netmend check nan.onnx --only finite-weights)"},
    {"non-finite-predictions", "There are predictions that are NaN or Inf.", Rule::kBlocker, kData,
     "x-numeric-limit, data-low-quality",
     "For such an input there is no predicted class, confidence or loss; it counts as a wrong prediction.",
     "The inputs themselves contain NaN or Inf, the graph divides by 0 or takes the logarithm of 0, or an activation "
     "overflows.",
     "Look at these inputs first: the finding missing-values reports inputs that contain NaN or Inf. If they are "
     "finite, find the first layer whose activations are not.",
     "Clean the inputs, or use a numerically stable operator (log-softmax instead of the logarithm of a softmax).",
     "failures {case}\ninfo {model}",
     R"(awk 'BEGIN{print "a,b,y"; for(i=0;i<200;i++) print (i%20==7 ? "inf" : i%9) "," i%13 "," i%2}' > holes.csv
netmend lab new mlp:2-4-2 -o fresh.onnx
netmend check fresh.onnx --data csv:holes.csv,label=y,standardize=no --only finite-predictions)"},
    {"unused-weights", "Parts of the graph reach no output.", Rule::kNote, kModel,
     "model-wrong-architecture",
     "These nodes and weights influence no prediction. They cost memory and time, and they may belong to a branch "
     "that should have been connected.",
     "The export kept an auxiliary head, or a skip connection was never added back.",
     "netmend info --nodes lists which node reads which value. Decide whether the branch should reach the output.",
     "Connect the branch and train again, or export the model without it.",
     "info {model} --nodes",
     R"(netmend lab new mlp:784-16-10 -o changed.onnx
python3 -c '
def field(number, content): return bytes([8 * number + 2, len(content)]) + content
def node(op, *names): return field(1, b"".join(field(1, name) for name in names[:-1]) + field(2, names[-1]) + field(4, op))
open("changed.onnx", "ab").write(field(7, node(b"Relu", b"logits", b"forgotten")))'
netmend check changed.onnx --only unused-weights)"},
    {"duplicate-weights", "{a} and {b} have identical weights.", Rule::kMinor, kModel,
     "model-wrong-init, x-export-skew",
     "The file stores the same values for two layers. Layers that were trained separately do not end up with "
     "identical weights.",
     "A checkpoint was loaded into both layers, a list of layers repeats one object, or tied weights were exported as "
     "two tensors.",
     "If the two layers share their weights in training, this is harmless. Otherwise one of them was overwritten.",
     "Check the parameter names when the checkpoint is loaded, restore the layer that was overwritten, and export "
     "again.",
     "info {model}",
     R"(netmend lab new mlp:784-16-16-16-10 -o fresh.onnx
python3 -c '
bytes = bytearray(open("fresh.onnx", "rb").read())
a, b = (bytes.rfind(name) + 13 for name in (b"fc2.weight", b"fc3.weight"))
bytes[b : b + 4 * 16 * 16] = bytes[a : a + 4 * 16 * 16]
open("copied.onnx", "wb").write(bytes)'
netmend check copied.onnx --only duplicate-weights)"},
    {"double-softmax", "Softmax is applied twice.", Rule::kEffect, kModel,
     "layer-redundant-softmax",
     "A softmax of probabilities flattens them: with C classes no confidence can exceed e/(e+C-1), which is about 73 % "
     "for two classes and 23 % for ten. The predicted classes stay the same, but confidence, loss and decision thresholds are wrong. "
     "It is a blocker if data is given and this output is the one that is judged.",
     "The model already ends in a softmax, and the export or a wrapper added another.",
     "netmend info --nodes shows the two softmax nodes. No confidence exceeds the bound.",
     "Remove one of the two, or judge the value before the second softmax (model.output in netmend.toml). If the "
     "network was trained with both, train its last layers again.",
     "info {model} --nodes",
     R"(netmend lab new mlp:784-16-10 -o changed.onnx
python3 -c '
def field(number, content): return bytes([8 * number + 2, len(content)]) + content
def node(op, *names): return field(1, b"".join(field(1, name) for name in names[:-1]) + field(2, names[-1]) + field(4, op))
open("changed.onnx", "ab").write(field(7, node(b"Softmax", b"logits", b"p") + node(b"Softmax", b"p", b"q") + field(12, field(1, b"q"))))'
netmend check changed.onnx --output q --only double-softmax)"},
    {"linear-pair", "There is no nonlinearity between {a} and {b}.", Rule::kMinor, kModel,
     "act-missing-relu",
     "Two linear layers in a row compute one linear map: the second one adds parameters, but no capacity.",
     "The activation function between them was forgotten, or the export lost it.",
     "netmend info --nodes lists the nodes between the two layers. Multiplying the two weight matrices into one "
     "changes no prediction.",
     "Insert the activation function and train again, or merge the two layers into one.",
     "info {model} --nodes",
     R"(netmend lab new mlp:784-16-10-10 -o changed.onnx
python3 -c '
def field(number, content): return bytes([8 * number + 2, len(content)]) + content
def node(op, *names): return field(1, b"".join(field(1, name) for name in names[:-1]) + field(2, names[-1]) + field(4, op))
open("changed.onnx", "ab").write(field(7, node(b"Gemm", b"logits", b"fc3.weight", b"fc3.bias", b"again") + field(12, field(1, b"again"))))'
netmend check changed.onnx --output again --only nonlinearity)"},
    {"linear-network", "The network has no nonlinearity.", Rule::kEffect, kModel,
     "act-missing-relu, model-wrong-selection",
     "There is no nonlinear operator between the layers, so a single linear layer can make the same predictions: depth "
     "adds nothing.",
     "The activation functions were left out, or the export lost them.",
     "netmend info --nodes lists no activation function between layers. A linear model (logistic or linear regression) "
     "fitted to the same data reaches about the same metric.",
     "Add activation functions and train again.",
     "info {model} --nodes",
     R"(netmend lab new mlp:784-16-10 -o fresh.onnx
LC_ALL=C sed 's/Relu/Mean/' fresh.onnx > linear.onnx
netmend check linear.onnx --only nonlinearity)"},
    {"stale-running-statistics", "The running statistics of {layer} were never updated.", Rule::kMinor, kModel,
     "api-missing-call",
     "All running means are exactly 0 and all running variances exactly 1, as at initialisation. In evaluation mode "
     "this batch normalisation does not normalise.",
     "The model was never trained, running statistics were switched off, the buffers were not loaded with the "
     "checkpoint, or the layer was added after training.",
     "Look at running_mean and running_var in the checkpoint. If they are not 0 and 1 there, loading or exporting "
     "lost them.",
     "Load the buffers together with the weights, or run training data through the network once in training mode; "
     "then export again.",
     "info {model}",
     R"(netmend lab new resnet20 -o fresh.onnx
netmend check fresh.onnx --only running-statistics)"},
    {"extreme-weights", "Some weights of {layer} are far larger than the rest.", Rule::kMinor, kModel,
     "weights-trained, x-numeric-limit",
     "A unit's weights are several times as large as those of the other units of its layer (by their root mean "
     "square, and beyond the spread of the others), or single weights exceed twenty times the 99.9th percentile of the "
     "layer. Either they are damaged, or their unit dominates the layer.",
     "The file or memory was damaged, training used inputs that were not scaled, or a unit came to dominate the layer.",
     "netmend locate says whether failures depend on that unit. netmend diff against an older version says whether "
     "only its weights changed.",
     "netmend repair refits the unit and confirms the gain on a hold-out set.",
     "locate {case} --layer {layer}\ninfo {model}",
     R"(netmend lab new mlp:784-16-10 -o fresh.onnx
netmend train fresh.onnx --data glyphs --epochs 1 -o sound.onnx
netmend lab plant sound.onnx --kind scaled --strength 10 -o faulty.onnx
netmend check faulty.onnx --only weight-outliers)"},
    {"zero-units", "In {layer}, all weights of {n} are zero.", Rule::kMinor, kModel,
     "weights-trained, weights-wrong-init",
     "The activation of such a unit depends on its bias alone and is the same for every input: the unit carries no "
     "information.",
     "The model was pruned, the file is damaged, or the weights started at 0 and never received a gradient.",
     "If the model was pruned, this is intended. Otherwise netmend diff against an older version says whether the "
     "unit once had weights.",
     "Remove the units, or let netmend repair refit them.",
     "locate {case} --layer {layer}",
     R"(netmend lab new mlp:784-16-10 -o fresh.onnx
netmend train fresh.onnx --data glyphs --epochs 1 -o sound.onnx
netmend lab plant sound.onnx --kind zeroed -o faulty.onnx
netmend check faulty.onnx --only zero-units)"},
    {"duplicate-units", "Several units of {layer} are duplicates.", Rule::kMinor, kModel,
     "weights-wrong-init, layer-neuron-count",
     "Their weight vectors point in the same direction (cosine above 0.999), so they compute nearly the same feature up "
     "to a factor, and the layer is narrower than its number of units says.",
     "Units that start with equal weights receive equal gradients and stay equal; or the layer is far wider than the "
     "task needs.",
     "If most of the layer duplicates a single unit, the initialisation is at fault. A few pairs in a wide layer are "
     "harmless.",
     "Train again from a random initialisation, or make the layer narrower.",
     "info {model}",
     R"(netmend lab new mlp:784-16-10 -o fresh.onnx
python3 -c '
bytes = bytearray(open("fresh.onnx", "rb").read())
first, row = bytes.rfind(b"fc1.weight") + 14, 4 * 784
bytes[first : first + 8 * row] = bytes[first : first + row] * 8
open("alike.onnx", "wb").write(bytes)'
netmend check alike.onnx --only duplicate-units)"},
    {"untrained-layer", "{layer} looks untrained.", Rule::kMinor, kModel,
     "opt-wrong-backprop, proc-missing-checkpoint",
     "All of its biases are still equal and its weights have the standard deviation of a fresh initialisation, while "
     "biases elsewhere have changed.",
     "The layer was frozen, is missing from the optimiser, receives no gradient, or was not loaded from the "
     "checkpoint.",
     "Compare with the initial weights or an earlier checkpoint: netmend diff lists which parameters differ.",
     "Give its parameters to the optimiser (in PyTorch: requires_grad) and train it, or load the checkpoint that "
     "holds it.",
     "info {model}",
     R"(netmend lab new mlp:784-32-32-10 -o fresh.onnx
netmend train fresh.onnx --data glyphs --epochs 1 -o sound.onnx
python3 -c '
def parts(file):
    data = open(file, "rb").read()
    first, last = data.rfind(b"fc2.weight"), data.rfind(b"fc3.weight")
    return data[:first], data[first:last], data[last:]
sound, fresh = parts("sound.onnx"), parts("fresh.onnx")
open("partly.onnx", "wb").write(sound[0] + fresh[1] + sound[2])'
netmend check partly.onnx --only untrained-layers)"},
    {"dead-units", "{n} of {of} units of {layer} are dead.", Rule::kEffect, kData | kHidden,
     "hp-learning-rate, layer-neuron-count",
     "Each of them has the same activation, usually 0, on every input that was run, so the layer is narrower than its "
     "number of units says. Up to a sixth of a layer is usual for small ReLU networks and is not reported. More is "
     "reported: as a note, or above a note if accuracy is clearly below that of a linear model or most of the layer is "
     "dead.",
     "The learning rate was too high early in training, the biases drifted far below 0, or the layer has far more "
     "units than the task needs.",
     "Look at the biases: scattered negative ones mean that the units died in training, identical ones that they were "
     "never trained.",
     "Train again with a lower learning rate, another initialisation or leaky ReLU, or with fewer units. A dead unit "
     "whose activation is 0 can be removed without changing any of these predictions.",
     "info {model}\ncoverage {case} --layer {layer}",
     R"(netmend lab new mlp:784-16-10 -o fresh.onnx
python3 -c 'import json
print(json.dumps({"edits": [{"parameter": "fc1.bias", "axis": 0, "index": i, "before": [0], "after": [-1000]} for i in range(8)]}))' > edits.json
netmend apply fresh.onnx edits.json -o changed.onnx
netmend train changed.onnx --data glyphs --epochs 1 -o dead.onnx
netmend check dead.onnx --data glyphs --only dead-units)"},
    {"constant-layer", "The activations of {layer} are the same for every input.", Rule::kBlocker, kData | kHidden,
     "weights-wrong-init, hp-learning-rate",
     "No information about the input passes through this layer. It is the first such layer; later ones are not "
     "reported again.",
     "All of its units died in training, its weights are 0, or the inputs arrive on the wrong scale.",
     "Compare its weights and biases with an earlier checkpoint, and the range of the inputs with that of training.",
     "Go back to a checkpoint in which its activations vary. Lower the learning rate, and scale the inputs as in "
     "training.",
     "info {model}",
     R"(netmend lab new mlp:784-16-10 -o fresh.onnx
python3 -c 'import json
print(json.dumps({"edits": [{"parameter": "fc1.bias", "axis": 0, "index": i, "before": [0], "after": [-1000]} for i in range(16)]}))' > edits.json
netmend apply fresh.onnx edits.json -o changed.onnx
netmend check changed.onnx --data glyphs --only constant-layers)"},
    {"saturated-units", "{n} of {of} units of {layer} are saturated.", Rule::kMinor, kData | kHidden,
     "act-wrong-type, pre-missing-normalisation",
     "Their activation (sigmoid, tanh or similar) stays within 1 % of its range from one limit on every input that was "
     "run, or is always near one of the two and flips between them. The first hardly distinguishes inputs, the second "
     "knows two values, and the gradient of either is almost 0.",
     "The inputs are not scaled, the weights or biases are too large, or a saturating activation function is used "
     "where ReLU would do.",
     "Standardise the inputs and run again: if the units recover, the scale of the inputs is the cause; otherwise "
     "look at the weights and biases.",
     "Scale the inputs as in training, or train again from smaller weights or with ReLU.",
     "info {model}\nlocate {case} --layer {layer}",
     R"(netmend lab new mlp:784-16-10 -o relu.onnx
LC_ALL=C sed 's/Relu/Tanh/' relu.onnx > fresh.onnx
python3 -c 'import json
print(json.dumps({"edits": [{"parameter": "fc1.bias", "axis": 0, "index": i, "before": [0], "after": [50]} for i in range(8)]}))' > edits.json
netmend apply fresh.onnx edits.json -o changed.onnx
netmend check changed.onnx --data glyphs --only saturated-units)"},
    {"exploding-activations", "Activations of {layer} exceed 10,000 in magnitude.", Rule::kMinor, kData | kHidden,
     "x-numeric-limit, layer-missing-normalisation",
     "Large activations lose precision, and beyond 65,504 half precision overflows. It is the first layer in which "
     "this happens.",
     "A deep network lacks normalisation layers, the inputs are on the wrong scale, or a single unit is damaged.",
     "The inputs with the highest activations are shown: are they unusual? Does one unit alone cause it?",
     "Scale the inputs, add normalisation, clip the activations, or repair the unit.",
     "locate {case} --layer {layer}\ninfo {model}",
     R"(netmend lab new mlp:784-16-10 -o fresh.onnx
python3 -c 'import json
print(json.dumps({"edits": [{"parameter": "fc1.bias", "axis": 0, "index": i, "before": [0], "after": [1000000.0]} for i in range(1)]}))' > edits.json
netmend apply fresh.onnx edits.json -o changed.onnx
netmend check changed.onnx --data glyphs --only activation-range)"},
};
// clang-format on

}  // namespace

std::span<const Kind> model_kinds() { return kRows; }

}  // namespace netmend::findings
