// What the data shows, and on which inputs predictions are worse.
#include "findings/kind_parts.h"

namespace netmend::findings {
namespace {

// A field per line, so that texts can be read and compared.
// clang-format off
constexpr Kind kRows[] = {
    {"imbalance", "Classes of the {split} data differ much in size.", Rule::kEffect, kData | kLabels | kClasses,
     "data-unbalanced, pre-missing-oversampling",
     "The largest class has more than ten times as many inputs as the smallest, or the effective number of classes "
     "(exp of the entropy of the class shares) is below half of their number. Accuracy then describes mostly the large "
     "classes, and low recall of the rare ones hardly shows.",
     "The data was collected without balancing the classes. Training then lowers the loss mostly on the common classes.",
     "See whether recall falls with the number of inputs of a class: netmend eval lists both. Weight the loss by "
     "class and train briefly: if recall of the rare classes rises, imbalance was the cause; otherwise they need more "
     "inputs.",
     "Judge by balanced_accuracy or recall by class. Weight or oversample the rare classes in training, or shift the "
     "output biases, which netmend repair tries first.",
     "eval {case} --metric balanced_accuracy\nrepair {case} -o fixed.onnx",
     R"(awk 'BEGIN{print "a,y"; for(i=0;i<1200;i++) print (i*0.618034)%1 "," (i%40 ? "common" : "rare")}' > rare.csv
netmend lab new mlp:1-4-2 -o fresh.onnx
netmend check fresh.onnx --data csv:rare.csv,label=y --only imbalance)"},
    {"absent-class", "The {split} data has no input of {class}.", Rule::kEffect, kData | kLabels | kClasses,
     "data-not-enough, test-low-quality, val-wrong-split",
     "The class is one of the model's or of the other split, but it has no input here. A class without training "
     "inputs cannot be learned; a class without tests cannot be judged.",
     "The split was not stratified, a folder was not copied, or the class was renamed in one place.",
     "Count the classes of both splits with netmend data, and look for a class with a similar name.",
     "Split again with stratification, or collect inputs of the class. If the class no longer exists, remove it from "
     "the list of classes.",
     "data {test}",
     R"(awk 'BEGIN{print "a,y"; for(i=0;i<600;i++) print (i*0.618034)%1 "," (i%3==0 ? "ant" : i%3==1 ? "bee" : "cat")}' > train.csv
grep -v cat train.csv > test.csv
netmend lab new mlp:1-4-3 -o fresh.onnx
netmend check fresh.onnx --train csv:train.csv,label=y --test csv:test.csv,label=y,train=train.csv --only absent-classes)"},
    {"class-shift",
     "Class shares differ between training and test data.",
     Rule::kEffect, kData | kLabels | kTrain | kClasses,
     "val-wrong-split, x-drift",
     "The total variation distance between the class shares is at least 5 points, and chance does not explain it. The "
     "metric on this test data is not the one that the training shares would give.",
     "The data was split by time, place or person, the test data was balanced on purpose, or the shares changed since "
     "training.",
     "Compare the shares with netmend data. If the test data has the shares of real use, the training data should "
     "follow; if it was balanced on purpose, weight the classes when reporting.",
     "Draw both splits from one pool with stratification, or weight the metric by the shares of real use. Shifting "
     "the output biases corrects the predictions for a change of shares alone.",
     "data {test}\ndata {train}\nrepair {case} -o fixed.onnx",
     R"(awk 'BEGIN{print "a,y"; for(i=0;i<900;i++) print (i*0.618034)%1 "," (i%2 ? "yes" : "no")}' > train.csv
awk 'BEGIN{print "a,y"; for(i=0;i<900;i++) print (i*0.754878)%1 "," (i%5 ? "yes" : "no")}' > test.csv
netmend lab new mlp:1-4-2 -o fresh.onnx
netmend check fresh.onnx --train csv:train.csv,label=y --test csv:test.csv,label=y,train=train.csv --only label-shift)"},
    {"duplicates", "Inputs of the {split} data occur more than once.", Rule::kEffect, kData,
     "pre-missing-subsampling",
     "Exact duplicates and near-duplicates count several times in every average and make intervals too narrow; in "
     "training they have the weight of several inputs.",
     "Overlapping sources were merged, augmented inputs were saved, or the table has so few columns that equal rows "
     "are to be expected.",
     "netmend data --duplicates lists them with their labels, exact duplicates and near-duplicates apart.",
     "Keep one of each. In a table with few columns equal rows may be different cases; then nothing is wrong.",
     "data {spec} --duplicates --export drop.csv",
     R"(awk 'BEGIN{print "a,y"; for(i=0;i<600;i++) print (i%580*0.618034)%1 "," i%580%2}' > twice.csv
netmend lab new mlp:1-4-2 -o fresh.onnx
netmend check fresh.onnx --data csv:twice.csv,label=y --only duplicates)"},
    {"conflicting-labels",
     "Identical inputs of the {split} data have different labels.",
     Rule::kEffect, kData | kLabels | kClasses,
     "data-wrong-labels, data-overlapping-classes, data-discarded-features",
     "The same input carries different labels, so at least one prediction is wrong, whatever the network predicts.",
     "Annotators disagreed, labels were mixed up, or columns that would distinguish the inputs were left out.",
     "netmend data --duplicates --export writes the pairs with both labels. If people agree on one label, the other "
     "is a mistake; if they cannot decide, the inputs lack information.",
     "Correct the labels, or add the features that distinguish the inputs. Where neither is possible, this limits the "
     "metric that can be reached.",
     "data {spec} --duplicates --export drop.csv",
     R"(awk 'BEGIN{print "a,y"; for(i=0;i<600;i++) print (i%590*0.618034)%1 "," (i<590 ? i%2 : (i+1)%2)}' > both.csv
netmend lab new mlp:1-4-2 -o fresh.onnx
netmend check fresh.onnx --data csv:both.csv,label=y --only conflicting-labels)"},
    {"split-leak", "Test inputs also occur in the training data.", Rule::kEffect, kData | kTrain,
     "val-wrong-split, pre-wrong-leak",
     "These inputs are exact duplicates or near-duplicates of training inputs, which the network may have memorised. "
     "Correct predictions for them say nothing about new inputs, so the metric may be too high.",
     "The source held duplicates before it was split, or frames of one video, records of one patient or sentences of "
     "one text are on both sides.",
     "The evidence gives the metric with and without these inputs. Split by group (video, patient, day) and train "
     "again: if the metric on test data falls, it was a leak.",
     "Remove the duplicates from the test data, or from the training data and train again. From then on split by "
     "group or by time.",
     "data {test} --duplicates --against {train} --export drop.csv",
     R"(awk 'BEGIN{print "a,y"; for(i=0;i<600;i++) print (i*0.618034)%1 "," i%2}' > train.csv
awk 'BEGIN{print "a,y"; for(i=590;i<1190;i++) print (i*0.618034)%1 "," i%2}' > test.csv
netmend lab new mlp:1-4-2 -o fresh.onnx
netmend check fresh.onnx --train csv:train.csv,label=y --test csv:test.csv,label=y,train=train.csv --only split-leak)"},
    {"constant-features", "The {split} data has constant features.", Rule::kEffect, kData,
     "data-small-range, data-low-quality",
     "A feature with the same value for all inputs carries no information. If it varies in the other split, either "
     "the network could not learn it or the tests do not test it.",
     "A sensor was off, a column was filled with a default, or a filter left a single value.",
     "Look at the feature in the source, and compare its range in both splits with netmend data.",
     "Remove the feature, or find out why its values are missing.",
     "data {spec}",
     R"(awk 'BEGIN{print "a,b,y"; for(i=0;i<300;i++) print (i*0.618034)%1 ",7," i%2}' > flat.csv
netmend lab new mlp:2-4-2 -o fresh.onnx
netmend check fresh.onnx --data csv:flat.csv,label=y,standardize=no --only constant-features)"},
    {"missing-values", "The {split} data contains NaN or Inf.", Rule::kEffect, kData,
     "data-low-quality, pre-missing-cleaning, pre-missing-interpolation",
     "NaN and Inf pass through nearly every layer, so the predictions for these inputs are NaN or meaningless.",
     "Missing measurements were read as NaN, or preprocessing divided by 0 or took the logarithm of 0.",
     "netmend data counts them, and the evidence names the features. Trace one of the inputs back to its source.",
     "Impute or drop them before they reach the network, in training and in use alike.",
     "data {spec}",
     R"(awk 'BEGIN{print "a,y"; for(i=0;i<300;i++) print (i%30==7 ? "nan" : (i*0.618034)%1) "," i%2}' > holes.csv
netmend lab new mlp:1-4-2 -o fresh.onnx
netmend check fresh.onnx --data csv:holes.csv,label=y --only missing-values)"},
    {"range-shift", "The values of the test data have a different range than in training.", Rule::kEffect, kData | kTrain,
     "pre-missing-on-test, pre-wrong-normalisation, pre-missing-scaling, x-drift",
     "For at least half of the features the mean moved by more than one standard deviation, or the standard deviation "
     "changed by more than a factor of two. A missing preprocessing step looks like this.",
     "One split was scaled or normalised and the other was not, the units differ, or the data comes from another "
     "device or export.",
     "Compare the ranges with netmend data. Give the test data the scale and mean that map it onto the training data: "
     "if the metric recovers, preprocessing was the cause; otherwise the data has changed.",
     "Apply the same preprocessing, with the constants of the training data, to both splits.",
     "data {test}\ndata {train}",
     R"(awk 'BEGIN{print "metres,y"; for(i=0;i<300;i++) print (i*0.618034)%1 "," i%2}' > train.csv
awk 'BEGIN{print "metres,y"; for(i=0;i<300;i++) print 100*((i*0.754878)%1) "," i%2}' > centimetres.csv
netmend lab new mlp:1-4-2 -o fresh.onnx
netmend check fresh.onnx --train csv:train.csv,label=y --test csv:centimetres.csv,label=y,train=train.csv --only drift)"},
    {"drift", "The distribution of {name} differs between training and test data.", Rule::kEffect, kData | kTrain,
     "x-drift, val-wrong-split, pre-wrong-representation",
     "This is covariate shift in one column or property of the inputs: the network is used in regions with little "
     "training data.",
     "The data was split by time or source, or comes from another season, device or filter.",
     "The evidence gives the distance between the distributions (0 is none; 1, or 100 points for categories, is no "
     "overlap) and what it may cost. Split all data again at random: if the difference disappears, it was the split.",
     "Train on data that is distributed as in production; weight or collect inputs where training data is sparse.",
     "slices {case}\ndata {test}\ndata {train}",
     R"(awk 'BEGIN{print "age,y"; for(i=0;i<500;i++) print 20+30*((i*0.618034)%1) "," i%2}' > then.csv
awk 'BEGIN{print "age,y"; for(i=0;i<500;i++) print 28+30*((i*0.754878)%1) "," i%2}' > now.csv
netmend lab new mlp:1-4-2 -o fresh.onnx
netmend check fresh.onnx --train csv:then.csv,label=y --test csv:now.csv,label=y,train=then.csv --only drift)"},
    {"sorted-data", "The {split} data is sorted by label.", Rule::kNote, kData | kLabels | kTrain,
     "pre-missing-shuffle",
     "Labels come in long runs. Read in this order, each batch holds few classes, and a split taken from one end "
     "lacks whole classes.",
     "The data was read folder by folder, or exported by a query that sorts.",
     "Look at the first hundred labels. If training reads them in this order, its loss jumps within each epoch.",
     "Shuffle before training and before splitting. If your data loader shuffles (shuffle=True), nothing is wrong.",
     "data {spec}",
     R"(awk 'BEGIN{print "a,y"; for(i=0;i<600;i++) print (i*0.618034)%1 "," (i<300 ? "cat" : "dog")}' > sorted.csv
awk 'BEGIN{print "a,y"; for(i=0;i<600;i++) print (i*0.754878)%1 "," (i%2 ? "cat" : "dog")}' > test.csv
netmend lab new mlp:1-4-2 -o fresh.onnx
netmend check fresh.onnx --train csv:sorted.csv,label=y --test csv:test.csv,label=y,train=sorted.csv --only label-order)"},
    {"label-leak", "{name} alone nearly determines the label.", Rule::kMinor, kData | kLabels | kClasses,
     "pre-wrong-leak, data-wrong-features, x-shortcut",
     "A predictor fitted on this one column or property has an accuracy of at least 95 % on other inputs, far above the "
     "majority-class baseline. The task may be that easy; often the column was derived from the label, or is unknown "
     "when the network is used.",
     "An identifier, a date or a code was filled in after the label was known, or a scanner or camera goes with the "
     "class.",
     "Ask when the value becomes known. Leave the column out and train again: what the metric loses is what the "
     "column contributed.",
     "Drop columns that are unknown at prediction time; balance properties that go with the class by accident.",
     "slices {case}",
     R"(awk 'BEGIN{print "a,code,y"; for(i=0;i<600;i++) print (i*0.618034)%1 "," 10*(i%3==0)+(i*0.754878)%1 "," (i%3==0)}' > leak.csv
netmend lab new mlp:2-4-2 -o fresh.onnx
netmend check fresh.onnx --data csv:leak.csv,label=y --only label-leak)"},
    {"few-tests", "There are too few tests, overall or of some classes.", Rule::kNote, kData | kLabels,
     "test-low-quality, data-not-enough",
     "The 95 % interval of the metric is wider than ±2 points, or some classes have fewer than 30 tests. A smaller "
     "difference between two models may be chance.",
     "Labels are expensive, and rare classes stay rare in a random split.",
     "The evidence gives the interval of the metric and the classes with few tests.",
     "Label more inputs (netmend next ranks an unlabelled pool), or use cross-validation.",
     "eval {case}",
     R"(netmend lab new mlp:784-16-10 -o fresh.onnx
netmend train fresh.onnx --data glyphs --epochs 1 -o sound.onnx
netmend check sound.onnx --data glyphs --limit 50 --only test-size)"},
    {"unknown-tokens", "Many tokens of the {split} data are not in the vocabulary.", Rule::kEffect, kData,
     "pre-missing-vocabulary, pre-wrong-char-encoding",
     "More than 5 % of the tokens map to the unknown token, so the network cannot distinguish them.",
     "The vocabulary comes from other texts, or spelling, case, encoding or tokenisation differ from training.",
     "netmend data counts unknown tokens. Look at texts with many of them: names and rare words are normal; common "
     "words mean that texts are tokenised or spelt differently than in training.",
     "Preprocess the text as in training (case, punctuation, encoding), or extend the vocabulary or use subword "
     "tokens and train again.",
     "slices {case}\ndata {test}",
     R"(python3 -c '
for name, words in ("train", "good bad film day"), ("test", "gut schlecht film Tag"):
    word = words.split()
    with open(name + ".csv", "w") as file:
        print("text,y", file=file)
        for i in range(300): print(" ".join(word[i // 4**k % 4] for k in range(5)) + "," + str(i % 2), file=file)'
netmend lab new textcnn -o fresh.onnx
netmend check fresh.onnx --data text:test.csv,text=text,label=y,train=train.csv,length=56 --limit 100 --only unknown-tokens)"},
    {"truncated-text", "Many texts of the {split} data fill the whole length.", Rule::kEffect, kData,
     "pre-wrong-segmentation, pre-wrong-padding, pre-missing-padding",
     "More than 5 % of the texts have no padding and were probably truncated. The part that was cut may be the one "
     "that matters.",
     "The length limit was set for speed, or chosen from shorter texts.",
     "The evidence says how many points of the metric errors on these texts cost. Read where some of them are cut.",
     "Raise the length if the network allows it, keep the end instead of the beginning, or predict for parts of the "
     "text and average the predictions.",
     "slices {case}",
     R"(awk 'BEGIN{print "text,y"; for(i=0;i<200;i++){t="film"; for(k=0;k<i;k++) t=t " " (k%3 ? "good" : "bad"); print t "," i%2}}' > long.csv
netmend lab new textcnn -o fresh.onnx
netmend check fresh.onnx --data text:long.csv,text=text,label=y,length=56 --only truncated-text)"},
    {"outlier-inputs", "The {split} data contains outliers.", Rule::kEffect, kData,
     "data-low-quality, pre-missing-cleaning",
     "They are blank images, or they have a value or property whose distance from the median exceeds five times the "
     "range that holds 99 % of the values.",
     "Files are damaged, a few rows use other units of measurement, or pictures show something else.",
     "Look at the inputs that the evidence names. Does the network fail on them more often?",
     "Correct or drop damaged inputs, in training too. Decide what the network should predict for inputs that are rare "
     "but real.",
     "data {spec}",
     R"(awk 'BEGIN{print "a,y"; for(i=0;i<500;i++) print (i==77 ? 1000000 : (i*0.618034)%1) "," i%2}' > odd.csv
netmend lab new mlp:1-4-2 -o fresh.onnx
netmend check fresh.onnx --data csv:odd.csv,label=y,standardize=no --only outliers)"},
    {"weak-slice", "Predictions are worse where {rule}.", Rule::kEffect, kData | kLabels,
     "x-unfair-group, data-not-enough, weights-trained",
     "The error rate (or mean error) is higher in this slice than elsewhere. The rule was found on one half of the "
     "inputs and judged on the other half.",
     "Training data has too few such inputs, they are preprocessed or labelled differently, or they are hard. Lower "
     "confidence there says that the network notices, not that nothing is wrong: inputs from a source that was not in "
     "the training data look like that too.",
     "Count the training inputs of the slice. Look at its failures: are labels and inputs correct? netmend locate "
     "says whether few units cause them.",
     "Collect or relabel inputs of the slice, preprocess them as the others are, aim a repair at it, or let the model "
     "abstain there.",
     "slices {case}\nlocate {case}",
     R"(awk 'BEGIN{print "a,device,y"; for(i=0;i<2000;i++){a=(i*0.618034)%1; old=i%7==0; print a "," (old ? "old" : "new") "," (a>(old ? 0.7 : 0.4) ? "yes" : "no")}}' > devices.csv
netmend lab new mlp:1-8-2 -o fresh.onnx
netmend train fresh.onnx --train csv:devices.csv,label=y,drop=device --epochs 10 --rate 0.01 -o sound.onnx
netmend check sound.onnx --data csv:devices.csv,label=y,drop=device,groups=device --only slices)"},
    {"group-gap", "Predictions for {group} differ: {what}.", Rule::kEffect, kData | kLabels | kGroups | kClasses,
     "x-unfair-group",
     "Accuracy is lower (with two classes: the true positive rate is lower, or the false positive rate higher) than "
     "for all other inputs, by at least 2 points; the p-value is corrected for the number of groups compared. Or the "
     "inputs of the group look different, and confidence is lower there, whether or not accuracy is yet.",
     "Training data has fewer or differently labelled inputs of the group, the group's inputs were taken or prepared "
     "differently (another camera, another exposure), other features are proxies for the group, or base rates differ and one decision threshold serves all.",
     "Look at the rates with their intervals, and at intersections with other groups. Sweep the decision threshold: "
     "if another threshold closes the gap, the scores are shifted; otherwise they are less informative for this group.",
     "Use a decision threshold per group where that is allowed, collect more data of the group, or weight it in "
     "training. Decide first which rate should be equal: not all can be.",
     "slices {case} --groups {column} --threshold sweep",
     R"(awk 'BEGIN{print "a,sex,y"; for(i=0;i<3000;i++){a=(i*0.618034)%1; f=i%3==0; print a "," (f ? "F" : "M") "," (a>(f ? 0.3 : 0.5) ? "yes" : "no")}}' > people.csv
netmend lab new mlp:1-8-2 -o fresh.onnx
netmend train fresh.onnx --train csv:people.csv,label=y,drop=sex --epochs 10 --rate 0.01 -o risk.onnx
netmend check risk.onnx --data csv:people.csv,label=y,drop=sex,groups=sex --only groups)"},
};
// clang-format on

}  // namespace

std::span<const Kind> data_kinds() { return kRows; }

}  // namespace netmend::findings
