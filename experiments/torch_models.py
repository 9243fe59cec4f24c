"""The paper's networks of PyTorch: a transformer of tables, and a deep network. Importing this module needs torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from exanova.typing import FloatArray, IntArray
from experiments.harness import SEED

WIDTH, HEADS, LAYERS = 32, 4, 3

torch.set_flush_denormal(
    True
)  # moments of weights that get no gradient fade into numbers that are slow to compute with


class Layer(nn.Module):
    """A layer of an encoder that hands out its attention, averaged over the heads."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.forward_part = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(n, tokens, width) again, and (n, tokens, tokens) attention."""
        inner = self.norms[0](x)
        attended, weights = self.attention(inner, inner, inner, need_weights=True)
        x = x + attended
        return x + self.forward_part(self.norms[1](x)), weights


class Transformer(nn.Module):
    """One token a feature, three layers of width 32, then 320, 64 and one output a class."""

    def __init__(self, sizes: list[int], classes: int) -> None:
        super().__init__()
        self.register_buffer("offsets", torch.tensor(np.cumsum([0, *sizes[:-1]])))
        self.embedding = nn.Embedding(sum(sizes), WIDTH)
        self.layers = nn.ModuleList([Layer() for _ in range(LAYERS)])
        self.classifier = nn.Sequential(nn.Linear(len(sizes) * WIDTH, 64), nn.ReLU(), nn.Linear(64, classes))

    def encoded(self, codes: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Tokens after the last layer, and the attention of every layer."""
        x, weights = self.embedding(codes + self.offsets), []
        for layer in self.layers:
            x, attention = layer(x)
            weights.append(attention)
        return x, weights

    def forward(self, codes: Tensor) -> Tensor:
        """(n, classes) logits."""
        return self.classifier(self.encoded(codes)[0].flatten(1))


def transformer(sizes: list[int], classes: int) -> Transformer:
    """A transformer with the same weights every time."""
    torch.manual_seed(SEED)
    return Transformer(sizes, classes)


def rollout(attention: list[Tensor]) -> Tensor:
    """(n, tokens) attention rollout: attention and the path around it, half each, multiplied through the layers.

    The classifier reads every token, so that what reaches a token of the input is averaged over those of the output.
    """
    joint = torch.eye(attention[0].shape[-1])
    for weights in attention:
        joint = (0.5 * weights + 0.5 * torch.eye(weights.shape[-1])) @ joint
    return joint.mean(dim=1)


def deep_network(inputs: int, widths: tuple[int, ...], outputs: int) -> nn.Sequential:
    """A fully connected network with ReLU between its layers, and the same weights every time."""
    torch.manual_seed(SEED)
    layers: list[nn.Module] = []
    for before, after in zip((inputs, *widths), widths, strict=False):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(widths[-1], outputs))


def trained(
    model: nn.Module,
    epoch: Callable[[], tuple[Any, Any]],
    epochs: int,
    *,
    rate: float = 1e-3,
    batch: int = 256,
    enough: Callable[[nn.Module], bool] = lambda model: False,
) -> None:
    """Train on what ``epoch`` returns (inputs and labels, anew each time), for so many epochs or until it is enough."""
    torch.manual_seed(SEED)
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs)
    for _ in range(epochs):
        inputs, labels = (torch.as_tensor(part) for part in epoch())
        model.train()
        for rows in torch.randperm(len(labels)).split(batch):
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(inputs[rows]), labels[rows]).backward()
            optimiser.step()
        schedule.step()
        if enough(model):
            break


@torch.no_grad()
def probabilities(model: nn.Module, inputs: Any, batch: int = 4096) -> FloatArray:
    """(n, classes) outputs of a trained network."""
    model.eval()
    parts = [torch.softmax(model(part), dim=1) for part in torch.as_tensor(inputs).split(batch)]
    return torch.cat(parts).double().numpy()


@torch.no_grad()
def rolled_out(model: Transformer, codes: IntArray, batch: int = 4096) -> FloatArray:
    """(n, tokens) attention rollout of rows."""
    model.eval()
    parts = [rollout(model.encoded(part)[1]) for part in torch.as_tensor(codes).split(batch)]
    return torch.cat(parts).double().numpy()
