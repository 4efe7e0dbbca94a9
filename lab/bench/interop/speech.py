"""Writes model/nn/testdata/speech: tiny encoders of recordings as transformers saves them, the logits that it computes
of recordings with and without padding, and the gradients of LoRA (PEFT) and of the head. Go's tests hold Starling to
them where there is no PyTorch. Run by hand: python speech.py FOLDER"""

import json, os, sys

import torch
from peft import LoraConfig, get_peft_model
from transformers import HubertConfig, HubertForSequenceClassification, Wav2Vec2Config, Wav2Vec2FeatureExtractor, Wav2Vec2ForSequenceClassification

FRAMES, LABELS, RATE = 11, 3, 8000
hubert, wav2vec2 = (HubertConfig, HubertForSequenceClassification), (Wav2Vec2Config, Wav2Vec2ForSequenceClassification)
small = dict(hidden_size=12, num_hidden_layers=2, num_attention_heads=2, intermediate_size=20, num_labels=LABELS, classifier_proj_size=7, mask_time_prob=0.0)
short = dict(conv_dim=[6, 8, 5], conv_kernel=[10, 3, 2], conv_stride=[5, 2, 2], num_conv_pos_embeddings=6, num_conv_pos_embedding_groups=3)
deep = dict(conv_dim=[4, 6, 4, 6, 4, 6, 4], conv_kernel=[10, 3, 3, 3, 3, 2, 2], conv_stride=[5, 2, 2, 2, 2, 2, 2], num_conv_pos_embeddings=17, num_conv_pos_embedding_groups=2)
odd = dict(conv_dim=[5, 6], conv_kernel=[7, 2], conv_stride=[3, 3], num_conv_pos_embeddings=128, num_conv_pos_embedding_groups=4)
cases = {
    "distilhubert": (hubert, dict(short, feat_proj_layer_norm=False), False),  # group norm, no norm before the projection
    "hubert-deep": (hubert, dict(deep, feat_extract_norm="layer", do_stable_layer_norm=True, conv_bias=True), True),
    "hubert-odd": (hubert, dict(odd, hidden_act="gelu_new"), False),
    "wav2vec2": (wav2vec2, dict(short), False),
    "wav2vec2-deep": (wav2vec2, dict(deep, feat_extract_norm="layer", do_stable_layer_norm=True, conv_bias=True), True),
    "wav2vec2-odd": (wav2vec2, dict(odd, feat_extract_norm="layer", conv_bias=True), True),
}
for name, ((Config, Model), keys, masked) in cases.items():
    torch.manual_seed(1)
    model = Model(Config(**small, **keys)).eval()
    g = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn(p.shape, generator=g) * 0.15)
    samples = FRAMES
    for k, s in zip(reversed(keys["conv_kernel"]), reversed(keys["conv_stride"])):
        samples = (samples - 1) * s + k
    extractor = Wav2Vec2FeatureExtractor(sampling_rate=RATE, return_attention_mask=masked, do_normalize=True)
    sounds = [torch.randn(samples - cut * samples // 5, generator=g) * 0.1 + 0.02 for cut in (0, 1, 3)]
    inputs = extractor([s.numpy() for s in sounds], sampling_rate=RATE, padding="max_length", max_length=samples, return_tensors="pt")
    folder = os.path.join(sys.argv[1], name)
    model.save_pretrained(folder)
    extractor.save_pretrained(folder)
    with torch.no_grad():
        logits = model(**inputs).logits

    model = get_peft_model(model, LoraConfig(r=2, lora_alpha=3, target_modules=["q_proj", "v_proj"], modules_to_save=["projector", "classifier"]))
    model.eval()
    values, trained = {}, {}
    for full, p in model.named_parameters():
        if not p.requires_grad:
            continue
        with torch.no_grad():
            if "lora_B" in full:
                p.copy_(torch.randn(p.shape, generator=g) * 0.3)
        short_name = full.removeprefix("base_model.model.").replace(".default", "").replace(".modules_to_save", "")
        trained[short_name.removeprefix("hubert.").removeprefix("wav2vec2.")] = p
    loss = model(**inputs, labels=torch.tensor([0, 1, 2])).loss
    loss.backward()
    with open(os.path.join(folder, "expected.json"), "w") as f:
        json.dump({"sounds": [[round(v, 7) for v in s.tolist()] for s in sounds], "logits": logits.tolist(), "loss": loss.item(),
                   "values": {n: p.flatten().tolist() for n, p in trained.items()},
                   "gradients": {n: p.grad.flatten().tolist() for n, p in trained.items()}}, f)
