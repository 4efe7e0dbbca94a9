"""A step of words.sh in PyTorch: transformers' HuBERT in DistilHuBERT's shape with random weights, its convolutions frozen
and without gradients, PEFT's LoRA on query and value projections, and the head trained by AdamW. Prints the least
processor time of a step in milliseconds.

    words.py eager|sdpa EXAMPLES STEPS
"""

import sys
import time

import torch
from peft import LoraConfig, get_peft_model
from transformers import HubertConfig, HubertForSequenceClassification

attention, examples, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
torch.set_num_threads(1)
torch.manual_seed(1)
config = HubertConfig(num_hidden_layers=2, num_labels=30, classifier_proj_size=256, attn_implementation=attention,
                      apply_spec_augment=False, layerdrop=0.0, hidden_dropout=0.0, attention_dropout=0.0, activation_dropout=0.0,
                      feat_proj_dropout=0.0, final_dropout=0.0)
model = HubertForSequenceClassification(config)
model.freeze_feature_encoder()
model = get_peft_model(model, LoraConfig(r=8, lora_alpha=16, target_modules=["q_proj", "v_proj"], modules_to_save=["projector", "classifier"]))
model.train()
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
sound, labels = torch.randn(examples, 16000), torch.arange(examples) % 30
best = float("inf")
for _ in range(steps + 1):
    start = time.process_time()
    optimizer.zero_grad()
    model(input_values=sound, labels=labels).loss.backward()
    optimizer.step()
    best = min(best, time.process_time() - start)
print(f"{best * 1000:.0f}")
