"""The task that every simulator is given: LoRA on a small BERT in PyTorch, and the
examples. Shapes only count for time; the examples are random."""
import functools
import os

import torch
from torch import nn
from torch.nn import functional as F

CLIENTS = int(os.environ.get("CLIENTS", 100))
STEPS = int(os.environ.get("STEPS", 1))  # of a client
EXAMPLES, BATCH, SEQUENCE = 16, 16, 32
VOCAB, WIDTH, LAYERS, HEADS, RANK, CLASSES = 4096, 128, 2, 4, 8, 8
RATE = 0.01


class LoRA(nn.Module):
    """A frozen linear map and its low-rank update."""

    def __init__(self, width):
        super().__init__()
        self.base = nn.Linear(width, width)
        self.a = nn.Parameter(torch.randn(RANK, width) / width**0.5)
        self.b = nn.Parameter(torch.zeros(width, RANK))

    def forward(self, x):
        return self.base(x) + F.linear(F.linear(x, self.a), self.b)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.v = LoRA(WIDTH), LoRA(WIDTH)
        self.k, self.o = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.n1, self.n2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, x):
        n, s, _ = x.shape
        q, k, v = (f(x).view(n, s, HEADS, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, s, WIDTH)
        x = self.n1(x + self.o(y))
        return self.n2(x + self.down(F.gelu(self.up(x), approximate="tanh")))


class Classifier(nn.Module):
    """Embeddings, two layers, the mean, a head; LoRA and the head are trained."""

    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(VOCAB, WIDTH), nn.Embedding(SEQUENCE, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, CLASSES)
        for name, p in self.named_parameters():
            p.requires_grad = name.startswith("head") or name.endswith((".a", ".b"))

    def forward(self, tokens):
        x = self.norm(self.words(tokens) + self.places.weight)
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean(1))

    def loss(self, tokens, labels):
        return F.cross_entropy(self(tokens), labels)

    def metrics(self, tokens, labels):
        return {}


@functools.cache
def kept():
    """The model of this process: the frozen base is everybody's, and a client brings what is trained."""
    torch.manual_seed(0)
    return Classifier()


def examples(client):
    g = torch.Generator().manual_seed(client)
    return (torch.randint(VOCAB, (EXAMPLES, SEQUENCE), generator=g), torch.randint(CLASSES, (EXAMPLES,), generator=g))


def optimizer(parameters):
    return torch.optim.AdamW(parameters, lr=RATE, weight_decay=0)


def train(model, tokens, labels):
    """A client's steps, all on its one batch."""
    opt = optimizer(p for p in model.parameters() if p.requires_grad)
    for _ in range(STEPS):
        opt.zero_grad()
        model.loss(tokens, labels).backward()
        opt.step()
