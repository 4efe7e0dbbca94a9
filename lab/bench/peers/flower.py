"""Rounds in Flower's simulation: one actor a core, every client in every round. An actor keeps its model, unless
FLOWER_KEEPS=0: then every client builds one."""
import os
import sys

import torch
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation

from workload import CLIENTS, Classifier, examples, kept
from workload import train as fit

rounds = int(sys.argv[1])
keeps = os.environ.get("FLOWER_KEEPS") != "0"
client, server = ClientApp(), ServerApp()


def trained(model):
    return {name: p.detach() for name, p in model.named_parameters() if p.requires_grad}


@client.train()
def train(message, context):
    torch.set_num_threads(1)
    if keeps:
        model = kept()
    else:
        torch.manual_seed(0)  # the frozen base is everybody's
        model = Classifier()
    model.load_state_dict(message.content["arrays"].to_torch_state_dict(), strict=False)
    tokens, labels = examples(int(context.node_config["partition-id"]))
    fit(model, tokens, labels)
    return Message(content=RecordDict({"arrays": ArrayRecord(trained(model)), "metrics": MetricRecord({"num-examples": len(labels)})}),
                   reply_to=message)


@server.main()
def main(grid, context):
    torch.manual_seed(0)
    FedAvg(fraction_train=1.0, fraction_evaluate=0.0, min_available_nodes=CLIENTS).start(
        grid=grid, initial_arrays=ArrayRecord(trained(Classifier())), num_rounds=rounds, train_config=ConfigRecord())


run_simulation(server_app=server, client_app=client, num_supernodes=CLIENTS,
               backend_config={"client_resources": {"num_cpus": 1}, "init_args": {"num_cpus": os.cpu_count()}})
