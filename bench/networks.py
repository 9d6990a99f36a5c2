"""The zoo's networks as one would write them in PyTorch, for comparison."""
import torch
from torch import nn


class BasicBlock(nn.Module):
    def __init__(self, inside, out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.shortcut = nn.Sequential()
        if stride != 1 or inside != out:
            self.shortcut = nn.Sequential(nn.Conv2d(inside, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        y = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(y)) + self.shortcut(x))


def conv_relu(inside, out, size=3):
    return [nn.Conv2d(inside, out, size, padding=size // 2), nn.ReLU()]


def lenet5():
    return nn.Sequential(*conv_relu(1, 6, 5), nn.MaxPool2d(2), *conv_relu(6, 16, 5), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(784, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))


def dnn1():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 16), nn.ReLU(), nn.Linear(16, 10))


def cifar_convnet():
    layers = []
    for inside, out in ((3, 32), (32, 64), (64, 128)):
        layers += conv_relu(inside, out) + conv_relu(out, out) + [nn.MaxPool2d(2), nn.Dropout(0.25)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(2048, 320), nn.ReLU(), nn.Dropout(0.5), nn.Linear(320, 10))


def resnet20():
    layers = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    inside = 16
    for out, stride in ((16, 1), (32, 2), (64, 2)):
        for block in range(3):
            layers.append(BasicBlock(inside, out, stride if block == 0 else 1))
            inside = out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


NETWORKS = {"lenet5": (lenet5, (1, 28, 28)), "dnn1": (dnn1, (1, 28, 28)),
            "cifar-convnet": (cifar_convnet, (3, 32, 32)), "resnet20": (resnet20, (3, 32, 32))}
