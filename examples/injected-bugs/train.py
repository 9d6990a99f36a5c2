"""Sentences of film reviews told apart by a small convolutional network (Kim, EMNLP 2014), trained on rt-polarity (Pang and
Lee 2005): one thread, one seed, a few seconds. The program that `netmend inject` and `netmend lab study injected-bugs` put bugs
into.

usage: python3 train.py FOLDER [SEED]        FOLDER holds rt-polarity.pos and rt-polarity.neg
"""
import os
import re
import sys

import torch
from torch import nn
from torch.nn import functional as F

EPOCHS = 6
BATCH = 50
WORDS = 30  # of a sentence; longer ones are cut, shorter ones filled up
TRAINING = 3200
TESTS = 400


# netmend: preprocessing
def words_of(line):
    line = re.sub(r"[^a-z0-9(),!?'`]", " ", line.lower())
    return re.sub(r"\s+", " ", line).strip().split(" ")


def read_reviews(folder, name, count):
    with open(os.path.join(folder, name), encoding="latin-1") as file:
        lines = file.read().split("\n")
    step = len(lines) // count
    return [words_of(lines[i * step]) for i in range(count)]


def number_words(sentences):
    known = {}
    for sentence in sentences:
        for word in sentence:
            known[word] = known.get(word, 0) + 1
    often = sorted(word for word in known if known[word] >= 2)
    return {word: number + 2 for number, word in enumerate(often)}


def as_numbers(sentences, vocabulary):
    rows = []
    for sentence in sentences:
        numbers = [vocabulary.get(word, 1) for word in sentence[:WORDS]]
        rows.append(numbers + [0] * (WORDS - len(numbers)))
    return torch.tensor(rows)


def load(folder):
    half = (TRAINING + TESTS) // 2
    good = read_reviews(folder, "rt-polarity.pos", half)
    bad = read_reviews(folder, "rt-polarity.neg", half)
    sentences = [one for pair in zip(good, bad) for one in pair]
    labels = torch.tensor([1, 0] * half)
    vocabulary = number_words(sentences[:TRAINING])
    return as_numbers(sentences, vocabulary), labels, len(vocabulary) + 2


# netmend: construction
class SentenceNetwork(nn.Module):
    def __init__(self, words, width=32, filters=24):
        super().__init__()
        self.embedding = nn.Embedding(words, width, padding_idx=0)
        self.windows = nn.ModuleList([nn.Conv1d(width, filters, size) for size in (3, 4, 5)])
        self.dropout = nn.Dropout(0.5)
        self.output = nn.Linear(3 * filters, 2)

    def forward(self, numbers):
        x = self.embedding(numbers).transpose(1, 2)
        parts = [F.relu(window(x)).max(dim=2).values for window in self.windows]
        return self.output(self.dropout(torch.cat(parts, dim=1)))


def build(words):
    network = SentenceNetwork(words)
    optimiser = torch.optim.Adam(network.parameters(), lr=0.005)
    return network, optimiser, nn.CrossEntropyLoss()


# netmend: learning
def learn(network, optimiser, loss_function, inputs, labels):
    network.train()
    for epoch in range(EPOCHS):
        order = torch.randperm(len(inputs))
        total = 0.0
        for first in range(0, len(inputs), BATCH):
            batch = order[first:first + BATCH]
            loss = loss_function(network(inputs[batch]), labels[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            total += float(loss) * len(batch)
        print(f"epoch {epoch + 1} loss {total / len(inputs):.4f}")


def accuracy(network, inputs, labels):
    network.eval()
    with torch.no_grad():
        right = network(inputs).argmax(dim=1) == labels
    return float(right.float().mean())


# netmend: preprocessing
torch.manual_seed(int(sys.argv[2]) if len(sys.argv) > 2 else 7)
torch.set_num_threads(1)
inputs, labels, size = load(sys.argv[1])
# netmend: construction
network, optimiser, loss_function = build(size)
# netmend: learning
learn(network, optimiser, loss_function, inputs[:TRAINING], labels[:TRAINING])
print(f"accuracy {accuracy(network, inputs[TRAINING:], labels[TRAINING:]):.4f}")
