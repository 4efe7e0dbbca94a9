"""The clients' steps in PyTorch and nothing else: one process, one thread, one model that
stays; what no simulator over PyTorch can be faster than."""
import sys

import torch

from workload import CLIENTS, Classifier, examples, train

rounds = int(sys.argv[1])
torch.set_num_threads(1)
torch.manual_seed(0)
model = Classifier()
batches = [examples(client) for client in range(CLIENTS)]
for _ in range(rounds):
    for tokens, labels in batches:
        train(model, tokens, labels)
