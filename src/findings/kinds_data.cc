// What the data shows, and where the network is weak.
#include "findings/kind_parts.h"

namespace netmend::findings {
namespace {

constexpr Kind kRows[] = {
    {"imbalance", "Some classes of the {split} data are rare.", Rule::kEffect, kData | kLabels | kClasses,
     "data-unbalanced pre-missing-oversampling",
     "The largest class has more than ten times as many inputs as the smallest, or a few classes hold nearly all. "
     "An average then speaks of the large classes; the rare ones may be answered badly and hardly show in it.",
     "Data was collected as it came: rare things are rare. Training on it, a network gains more by being right "
     "about what is common.",
     "See whether recall follows the size of a class: netmend eval lists both. Weight the loss by class and train "
     "again briefly; when recall of the rare classes rises without new data, imbalance was the reason, otherwise "
     "they need more examples.",
     "Judge by balanced_accuracy or by class. Weight rare classes in the loss, draw them more often, or move the "
     "bias of the last layer by the log of the ratio of shares, which netmend repair tries first because it costs "
     "nothing.",
     "eval {case} --metric balanced_accuracy\nrepair {case} -o fixed.onnx",
     "awk 'BEGIN{print \"a,y\"; for(i=0;i<600;i++) print i%17 \",\" (i%60 ? \"common\" : \"rare\")}' > "
     "rare.csv\nnetmend data csv:rare.csv,label=y"},
    {"absent-class", "There are no {split} inputs of class {class}.", Rule::kEffect, kData | kLabels | kClasses,
     "data-not-enough test-low-quality val-wrong-split",
     "The class is known to the network or to the other part of the data, but nothing of it is here. Without "
     "training inputs it cannot be learned; without tests nobody knows whether it was.",
     "A split that was not stratified, a folder that was not copied, a class that was renamed in one place.",
     "Count classes of both parts with netmend data; look whether a class of a similar name has about as many.",
     "Split again by class, or collect inputs of it. Where the class is gone for good, take it out of the list of "
     "classes.",
     "data {test}", "netmend data glyphs:test --limit 5"},
    {"class-shift", "Classes have other shares in test than in training.", Rule::kEffect,
     kData | kLabels | kTrain | kClasses, "val-wrong-split x-drift",
     "Training and test data were not drawn alike: some classes are much more common in one of them. The figure on "
     "this test data is not the one that data with training's shares would give.",
     "A split by time, place or person; a test set that was balanced on purpose; data that changed since training.",
     "Compare the shares with netmend data for both parts. If the test data is what the network will meet, the "
     "shift is real and training data should follow it; if it was balanced on purpose, weight classes when "
     "reporting.",
     "Draw both parts from one pool by class, or weight the metric by the shares that the network will meet. A "
     "shift of shares alone is repaired by moving the biases of the last layer.",
     "data {test}\ndata {train}\nrepair {case} -o fixed.onnx",
     "netmend data glyphs:train --limit 2000\nnetmend data glyphs:test --limit 20"},
    {"duplicates", "Inputs of the {split} data occur more than once.", Rule::kEffect, kData, "pre-missing-subsampling",
     "Copies count several times in every average, and in training they weigh like several inputs.",
     "Data joined from sources that overlap, an augmentation that was saved, rows of a table that has few columns.",
     "netmend data --duplicates lists them with their labels and says how many are the same and how many nearly.",
     "Keep one of each. In tables with few columns equal rows may be different people: then nothing is wrong.",
     "data {spec} --duplicates --export drop.csv",
     "awk 'BEGIN{print \"a,b,y\"; for(i=0;i<300;i++) print i%250 \",\" i%250 \",\" i%250%2}' > twice.csv\nnetmend "
     "data csv:twice.csv,label=y --duplicates"},
    {"conflicting-labels", "Equal inputs of the {split} data have different labels.", Rule::kEffect,
     kData | kLabels | kClasses, "data-wrong-labels data-overlapping-classes data-discarded-features",
     "The same input is labelled in two ways. One of them must be answered wrong, whatever the network does.",
     "Annotators who disagree, a label that was mixed up, or columns that would tell the inputs apart and were left "
     "out.",
     "Look at the pairs: netmend data --duplicates --export writes both labels. If people agree on one, the other "
     "is a mistake; if they cannot tell either, something is missing in the input.",
     "Correct the labels, or add what tells them apart. Where neither is possible this is the best that can be "
     "reached.",
     "data {spec} --duplicates --export drop.csv",
     "printf 'a,b,y\\n1,2,yes\\n1,2,no\\n3,4,yes\\n5,6,no\\n' > both.csv\nnetmend data csv:both.csv,label=y "
     "--duplicates"},
    {"split-leak", "Test inputs are also in the training data.", Rule::kEffect, kData | kTrain,
     "val-wrong-split pre-wrong-leak",
     "A network may know such inputs by heart. What it scores on them says nothing about new ones, so the figure is "
     "too good by what they add to it.",
     "Copies or near copies in the source before it was split; frames of one film, patients or sentences on both "
     "sides.",
     "Judge the twins apart: the evidence has the metric with and without them. Then split by what belongs together "
     "(film, patient, day) and train again: if the test figure falls and the gap to training opens, it was a leak.",
     "Drop the twins from the test data, or from the training data and train again. Split by group or time from "
     "then on.",
     "data {test} --duplicates --against {train} --export drop.csv",
     "netmend data glyphs:test --limit 2000 --duplicates --against glyphs:test"},
    {"constant-features", "Some columns of the {split} data never change.", Rule::kEffect, kData,
     "data-small-range data-low-quality",
     "A column that is the same everywhere tells nothing. If it changes in the other part of the data, the network "
     "has never learned what it means, or the tests never show it.",
     "A sensor that was off, a column that was filled with a default, a filter that left one value.",
     "Look at the column in the source. Compare with the other part: netmend data shows ranges of both.",
     "Drop the column, or find out where its values went.", "data {spec}",
     "awk 'BEGIN{print \"a,y\"; for(i=0;i<50;i++) print \"7,\" i%2}' > flat.csv\nnetmend data "
     "csv:flat.csv,label=y,standardize=no"},
    {"missing-values", "Some inputs of the {split} data hold values that are no numbers.", Rule::kEffect, kData,
     "data-low-quality pre-missing-cleaning pre-missing-interpolation",
     "NaN or infinite values run through every layer: the answer to such an input is no answer.",
     "Missing measurements that were read as NaN, a division by zero or the logarithm of zero in preprocessing.",
     "netmend data counts them; the inputs are named in the evidence. Follow one back to its source.",
     "Fill, interpolate or drop them before they reach the network, in training and in use alike.", "data {spec}",
     "awk 'BEGIN{print \"a,y\"; for(i=0;i<50;i++) print (i==9 ? \"nan\" : i) \",\" i%2}' > holes.csv\nnetmend data "
     "csv:holes.csv,label=y"},
    {"range-shift", "Test values lie elsewhere than training values.", Rule::kEffect, kData | kTrain,
     "pre-missing-on-test pre-wrong-normalisation pre-missing-scaling x-drift",
     "Raw values of test inputs have another scale or offset than those of training: the network is fed numbers "
     "that it has not seen. This is what a forgotten preprocessing step looks like.",
     "Scaling or normalisation done to one part only or done twice, other units, another camera or export.",
     "Compare ranges with netmend data for both specs. Give the test data the scale and mean that would move it "
     "onto the training data: if the metric returns, it was preprocessing; if nothing helps, the world has changed.",
     "Apply the same steps, with the constants of training, to both parts. netmend check tries the common set-ups "
     "and names the line for netmend.toml.",
     "data {test}\ndata {train}",
     "netmend data glyphs:train --limit 100\nnetmend data glyphs:test,scale=255 --limit 100"},
    {"drift", "{name} is different in test than in training.", Rule::kEffect, kData | kTrain,
     "x-drift val-wrong-split pre-wrong-representation",
     "One column or property is spread differently in the two parts. What the network learned where training data "
     "is dense is used where it is thin.",
     "A split by time or source, a season, another device, a filter that was applied to one part.",
     "The evidence has the distance of the distributions (0 is none, 1 is no overlap) and the metric as it would be "
     "if test inputs were spread as in training. Split the training data at random again: if the difference stays, "
     "it is in the source; if it goes, it was the split.",
     "Train on data that is spread as it will be in use; weight or collect inputs where training is thin.",
     "slices {case}\ndata {test}\ndata {train}",
     "awk 'BEGIN{print \"age,y\"; for(i=0;i<500;i++) print 20+i%30 \",\" i%2}' > then.csv\nawk 'BEGIN{print "
     "\"age,y\"; for(i=0;i<500;i++) print 35+i%30 \",\" i%2}' > now.csv\nnetmend data "
     "csv:then.csv,label=y,standardize=no\nnetmend data csv:now.csv,label=y,standardize=no"},
    {"sorted-data", "The {split} data is sorted by label.", Rule::kNote, kData | kLabels, "pre-missing-shuffle",
     "Long runs of one label follow each other. Reading it in this order, a training step sees one class at a time, "
     "and a part that is cut off the front or the end lacks whole classes.",
     "Data read folder by folder, or exported by a query that sorts.",
     "Look at the first hundred labels. In a training trace the loss makes a saw-tooth within each epoch.",
     "Shuffle before training and before splitting. Most loaders do when told so; then nothing is wrong.",
     "data {spec}",
     "awk 'BEGIN{print \"a,y\"; for(i=0;i<300;i++) print i%7 \",\" (i<150 ? \"cat\" : \"dog\")}' > "
     "sorted.csv\nnetmend data csv:sorted.csv,label=y\nnetmend data csv:sorted.csv,label=y --limit 100"},
    {"label-leak", "{name} alone nearly tells the label.", Rule::kMinor, kData | kLabels | kClasses,
     "pre-wrong-leak data-wrong-features x-shortcut",
     "One column or property gives the answer away. Perhaps the task is that easy; often the column was made from "
     "the label, or will not be known when the network is used.",
     "An identifier, a date or a code that was filled in after the fact; a scanner or camera that goes with the "
     "class.",
     "Ask when the value becomes known. Leave the column out and train again: what the metric loses is what it gave.",
     "Drop what is not known at the time of asking; balance properties that go with the class by accident.",
     "slices {case}",
     "awk 'BEGIN{srand(1); print \"a,code,y\"; for(i=0;i<900;i++) print rand() \",\" 10*(i%2)+rand() \",\" i%2}' > "
     "leak.csv\nnetmend lab new mlp:1-4-2 -o one.onnx\nnetmend train one.onnx --train "
     "csv:leak.csv,label=y,columns=code --epochs 20 --rate 0.01 -o told.onnx"},
    {"few-tests", "There are few tests for what the figures claim.", Rule::kNote, kData | kLabels,
     "test-low-quality data-not-enough",
     "With so few inputs the metric is known to a few points only, or single classes cannot be judged. A difference "
     "between two models that is smaller than that is chance.",
     "Labels are dear; rare classes stay rare in a part that is drawn at random.",
     "The interval of the metric and the counts of the classes are the evidence.",
     "Label more, those first that tell most; or judge several splits of all data in turn.", "eval {case}",
     "netmend data glyphs:test --limit 50"},
    {"unknown-tokens", "Many words of the {split} data are not in the vocabulary.", Rule::kEffect, kData,
     "pre-missing-vocabulary pre-wrong-char-encoding",
     "Unknown words all look the same to the network; what they say is lost.",
     "A vocabulary from other texts, another spelling or case, text decoded with the wrong code page, other "
     "tokenisation.",
     "netmend data counts unknown ids. Look at some inputs with many: names and rare words are normal, common words "
     "are a sign that words are cut or spelt differently than in training.",
     "Prepare the text as in training (case, punctuation, encoding); extend the vocabulary or use parts of words "
     "and train again.",
     "slices {case}\ndata {test}",
     "printf 'text,y\\na good film,1\\na bad film,0\\na good day,1\\n' > old.csv\nprintf 'text,y\\nein guter "
     "film,1\\nein schlechter film,0\\n' > new.csv\nnetmend data text:new.csv,text=text,label=y,train=old.csv"},
    {"truncated-text", "Many texts of the {split} data are cut off.", Rule::kEffect, kData,
     "pre-wrong-segmentation pre-wrong-padding pre-missing-padding",
     "Texts that fill the whole length were probably longer. What was cut may have been what matters.",
     "A length limit that was set for speed or taken from shorter texts.",
     "Compare failures of full and of shorter texts: the evidence has both. Read some with a greater length.",
     "Raise the length if the network allows it, keep the end instead of the beginning, or answer for parts and "
     "combine.",
     "slices {case}",
     "printf 'text,y\\na good film that ends badly,0\\na bad film,0\\na good day,1\\n' > long.csv\nnetmend data "
     "text:long.csv,text=text,label=y,length=3"},
    {"outlier-inputs", "Some inputs of the {split} data are unlike all others.", Rule::kEffect, kData,
     "data-low-quality pre-missing-cleaning",
     "Blank inputs, or ones whose values or properties lie far outside of where nearly all others lie.",
     "Broken files, wrong units in a few rows, pictures of something else.",
     "Look at them; the evidence names some. See whether failures gather there.",
     "Correct or drop what is broken, in training too; decide what the network should answer to what is rare but "
     "real.",
     "data {spec}",
     "awk 'BEGIN{print \"a,y\"; for(i=0;i<500;i++) print (i==77 ? 1000000 : i%40) \",\" i%2}' > odd.csv\nnetmend "
     "data csv:odd.csv,label=y,standardize=no"},
    {"weak-slice", "It is weaker where {rule}.", Rule::kEffect, kData | kLabels,
     "x-unfair-group data-not-enough weights-trained",
     "Inputs with this property are answered worse than the others. The rule was found on one half of the inputs "
     "and the figures are of the other half, so they are not the best of many by chance.",
     "Too little training data of that kind, data of that kind that is prepared or labelled differently, or inputs "
     "that are hard for anybody. Where the network is less sure there too, it knows; where it is as sure as ever, "
     "something misleads it.",
     "Count training inputs of the slice. Look at failures: are labels right, are inputs as they should be? Locate "
     "on the slice shows whether few units are to blame.",
     "More or better data of that kind; prepare it alike; a repair that aims at the slice; or refuse to answer "
     "there.",
     "slices {case}\nlocate {case}",
     "netmend lab new mlp:784-16-10 -o m.onnx\nnetmend train m.onnx --data glyphs --limit 3000 --epochs 1 -o "
     "weak.onnx\nnetmend slices weak.onnx --data glyphs:test --limit 4000 --anyway"},
    {"group-gap", "{group} fares worse: {what}.", Rule::kEffect, kData | kLabels | kGroups | kClasses, "x-unfair-group",
     "Among those who deserve a yes, or among those who deserve a no, this group is answered wrongly more often "
     "than everybody else. The gap has an interval and is corrected for the number of groups that were compared.",
     "Fewer or differently labelled training examples of the group, inputs that stand for membership, different "
     "base rates that one threshold treats differently.",
     "See the rates with their intervals; cross the group with others, since a gap often sits in an intersection. "
     "Look at what other thresholds do: if one threshold closes the gap cheaply, scores are shifted; if none does, "
     "they tell less about this group.",
     "A threshold for each group where that is allowed, more data of the group, weights in training. Decide first "
     "which rate should be equal: not all can be at once.",
     "slices {case} --groups {column} --threshold sweep",
     "awk 'BEGIN{srand(2); print \"a,sex,y\"; for(i=0;i<3000;i++){a=rand(); f=i%2; y=(a>0.5); if(f && y && "
     "rand()<0.4) a=a-0.5; print a \",\" (f?\"F\":\"M\") \",\" (y?\"yes\":\"no\")}}' > people.csv\nnetmend lab new "
     "mlp:1-4-2 -o m.onnx\nnetmend train m.onnx --train csv:people.csv,label=y,groups=sex --epochs 15 --rate 0.01 "
     "-o risk.onnx\nnetmend slices risk.onnx --data csv:people.csv,label=y,groups=sex --threshold sweep"},
};

}  // namespace

std::span<const Kind> data_kinds() { return kRows; }

}  // namespace netmend::findings
