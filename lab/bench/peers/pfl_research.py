"""Rounds in pfl-research: one process, PyTorch with a thread a core."""
import os
import sys

import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.hyperparam import NNEvalHyperParams, NNTrainHyperParams
from pfl.model.pytorch import PyTorchModel

from workload import BATCH, CLIENTS, RATE, STEPS, Classifier, examples, optimizer

rounds = int(sys.argv[1])
torch.set_num_threads(int(os.environ.get("PFL_THREADS", os.cpu_count())))
torch.manual_seed(0)
at = iter(range(10**9))
data = FederatedDataset(lambda user: Dataset(raw_data=list(examples(user)), user_id=str(user)), lambda: next(at) % CLIENTS)
module = Classifier()
model = PyTorchModel(module, lambda parameters, lr: optimizer(parameters),
                     torch.optim.SGD((p for p in module.parameters() if p.requires_grad), lr=1.0))
FederatedAveraging().run(
    algorithm_params=NNAlgorithmParams(central_num_iterations=rounds, evaluation_frequency=10**9, train_cohort_size=CLIENTS, val_cohort_size=0),
    backend=SimulatedBackend(training_data=data, val_data=data),
    model=model,
    model_train_params=NNTrainHyperParams(local_learning_rate=RATE, local_num_epochs=STEPS, local_batch_size=BATCH),
    model_eval_params=NNEvalHyperParams(local_batch_size=BATCH))
