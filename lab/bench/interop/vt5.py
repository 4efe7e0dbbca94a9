"""Writes model/nn/testdata/vt5: tiny VT5s (Tito et al. 2023) with the tensor names of the published one, and T5s with linear
boxes and a page's patches (Nguyen et al. 2024), with the logits and the gradients of LoRA, matchers, patches and boxes that
transformers' T5 and BEiT compute of documents with a page. Go's tests hold Starling to them where there is no PyTorch. Run by hand: python vt5.py FOLDER"""

import json, math, os, sys
from fractions import Fraction
from types import SimpleNamespace

import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import save_file
from transformers import BeitConfig, BeitModel, T5Config, T5ForConditionalGeneration

OUT = sys.argv[1]
ANSWER, ROWS = 5, 4
rounded = lambda t, n=9: [round(v, n) for v in t.flatten().tolist()]


class Spatial(torch.nn.Module):
    def __init__(self, rows, width, eps):
        super().__init__()
        self.x_position_embeddings, self.y_position_embeddings = (torch.nn.Embedding(rows, width) for _ in "xy")
        self.LayerNorm = torch.nn.LayerNorm(width, eps=eps)
        self.spatial_emb_matcher = torch.nn.ModuleDict({"layers": torch.nn.ModuleList([torch.nn.Linear(width, width)])})

    def forward(self, boxes):
        x, y = self.x_position_embeddings, self.y_position_embeddings
        return self.spatial_emb_matcher["layers"][0](self.LayerNorm(
            x(boxes[..., 0]) + y(boxes[..., 1]) + x(boxes[..., 2]) + y(boxes[..., 3])))


class Visual(torch.nn.Module):
    def __init__(self, config, width):
        super().__init__()
        self.image_model = BeitModel(config).requires_grad_(False)
        self.visual_emb_matcher = torch.nn.ModuleDict({"layers": torch.nn.ModuleList([torch.nn.Linear(config.hidden_size, width)])})

    def forward(self, pixels):
        return self.visual_emb_matcher["layers"][0](self.image_model(pixels).last_hidden_state)


class Patches(torch.nn.Module):
    """Layout-Induced Vision-Text Embedding, a token and a patch at a time, over the boxes' numbers as fractions of the page."""

    def __init__(self, config, page, boxes):
        super().__init__()
        self.language_backbone, self.page, self.side = T5ForConditionalGeneration(config), page, boxes - 1
        size, channels = page["patch_size"], page["num_channels"]
        self.spatial_embedding = torch.nn.ModuleDict({"spatial_emb_matcher": torch.nn.Linear(4, config.d_model)})
        self.visual_embedding = torch.nn.ModuleDict({"patch_embed": torch.nn.ModuleDict({"proj": torch.nn.Conv2d(channels, config.d_model, size, size)})})

    def inside(self, box):
        """The patches that a box stands in."""
        n, side = self.page["image_size"] // self.page["patch_size"], self.side
        left, top, right, bottom = box
        if box == [0, 0, 0, 0] or box == [0, 0, side, side]:
            return []
        if self.page["overlap"]:
            covers = lambda a, b, i: Fraction(a, side) < Fraction(i + 1, n) and Fraction(b, side) > Fraction(i, n)
            return [y * n + x for y in range(n) for x in range(n) if covers(left, right, x) and covers(top, bottom, y)]
        cell = lambda a, b: min(n - 1, math.floor(Fraction(a + b, 2 * side) * n))
        return [cell(top, bottom) * n + cell(left, right)]

    def forward(self, tokens, boxes, pixels, decoder, labels=None):
        place = self.spatial_embedding["spatial_emb_matcher"]
        x = self.language_backbone.shared(tokens) + place(boxes / self.side)
        seen = self.visual_embedding["patch_embed"]["proj"](pixels).flatten(2).transpose(1, 2)
        read, rows = torch.ones(seen.shape[:2], dtype=torch.long), []
        for r in range(len(tokens)):
            for i in range(tokens.shape[1]):
                at = self.inside(boxes[r, i].tolist())
                read[r, at] = 0
                rows.append(x[r, i] + seen[r, at].mean(0) if at else x[r, i])
        x = torch.stack(rows).view(x.shape)
        if not self.page["unplaced"]:
            n, side = self.page["image_size"] // self.page["patch_size"], self.side
            own = [[c * side // n for c in (i % n, i // n, i % n + 1, i // n + 1)] for i in range(n * n)]
            seen = seen + place(torch.tensor(own) / side)
        both, mask = [x, seen], [tokens.ne(0).long(), read]
        if self.page["first"]:
            both, mask = both[::-1], mask[::-1]
        return self.language_backbone(inputs_embeds=torch.cat(both, 1), attention_mask=torch.cat(mask, 1), decoder_input_ids=decoder, labels=labels)


class VT5(torch.nn.Module):
    def __init__(self, config, page, boxes):
        super().__init__()
        self.language_backbone = T5ForConditionalGeneration(config)
        self.spatial_embedding = Spatial(boxes, config.d_model, config.layer_norm_epsilon)
        self.visual_embedding = Visual(page, config.d_model)

    def forward(self, tokens, boxes, pixels, decoder, labels=None):
        x = self.language_backbone.shared(tokens) + self.spatial_embedding(boxes)
        page = self.visual_embedding(pixels)
        mask = torch.cat([tokens.ne(0).long(), torch.ones(page.shape[:2], dtype=torch.long)], 1)
        return self.language_backbone(inputs_embeds=torch.cat([x, page], 1), attention_mask=mask, decoder_input_ids=decoder, labels=labels)


def filed(name):
    """A tensor's name in files, which earlier versions of transformers wrote, of how version 5 has it in memory."""
    if "image_model." not in name:
        return name
    name = name.replace("image_model.shared_position_bias.", "image_model.encoder.relative_position_bias.")
    name = name.replace("image_model.layers.", "image_model.encoder.layer.")
    for now, then in {".relative_position_bias.rel": ".attention.attention.relative_position_bias.rel", "attention.q_proj": "attention.attention.query",
                      "attention.k_proj": "attention.attention.key", "attention.v_proj": "attention.attention.value",
                      "attention.o_proj": "attention.output.dense", "mlp.fc1": "intermediate.dense", "mlp.fc2": "output.dense"}.items():
        if now.startswith(".relative") and ".layer." not in name:
            continue
        name = name.replace(now, then)
    return name


small = dict(vocab_size=40, pad_token_id=0, eos_token_id=1, decoder_start_token_id=0, dropout_rate=0.0, d_kv=4, num_layers=1, num_decoder_layers=1)
page = dict(num_hidden_layers=2, num_attention_heads=2, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, drop_path_rate=0.0)
cases = {
    # As DiT-base is: positions by table, scaled layers, no norm at the end.
    "dit": (dict(d_model=12, d_ff=16, num_heads=2), dict(hidden_size=8, intermediate_size=12, image_size=12, patch_size=4,
            use_absolute_position_embeddings=True)),
    # A bias by distance in each layer, unscaled, with a norm.
    "each": (dict(d_model=8, d_ff=12, num_heads=3, feed_forward_proj="gated-gelu"), dict(hidden_size=12, intermediate_size=9, image_size=8, patch_size=2,
             use_relative_position_bias=True, layer_scale_init_value=0.0, use_mean_pooling=False, hidden_act="gelu_new", layer_norm_eps=1e-6)),
    # One for all layers, and positions; one channel.
    "shared": (dict(d_model=16, d_ff=8, num_heads=2), dict(hidden_size=6, intermediate_size=10, image_size=6, patch_size=2, num_channels=1,
               use_absolute_position_embeddings=True, use_shared_relative_position_bias=True)),
    # Patches as tokens, what is left open as it is by default; then each otherwise, with one channel.
    "patches": (dict(d_model=12, d_ff=16, num_heads=2), dict(image_size=12, patch_size=4, num_channels=3, overlap=False, unplaced=False, first=False)),
    "overlap": (dict(d_model=8, d_ff=12, num_heads=3, feed_forward_proj="gated-gelu"),
                dict(image_size=8, patch_size=2, num_channels=1, overlap=True, unplaced=True, first=True)),
}

for name, (text, picture) in cases.items():
    torch.manual_seed(1)
    config, beit = T5Config(**small, **text), None if "overlap" in picture else BeitConfig(**page, **picture)
    boxes = 21
    model = (VT5(config, beit, boxes) if beit else Patches(config, picture, boxes)).eval()
    g = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for n, p in model.named_parameters():
            wide = 0.5 if p.dim() > 1 and "table" not in n else 0.2
            p.copy_(torch.randn(p.shape, generator=g) * wide + (1.0 if p.dim() == 1 and n.endswith("weight") or "lambda" in n else 0.0))
    folder = os.path.join(OUT, name)
    os.makedirs(folder, exist_ok=True)
    state = {filed(n): p.detach().contiguous() for n, p in model.named_parameters() if "pooler" not in n}
    save_file({n: p.clone() for n, p in state.items()}, os.path.join(folder, "model.safetensors"), metadata={"format": "pt"})
    plain = {k: v for k, v in config.to_dict().items() if k in {**small, **text, "feed_forward_proj": 0, "model_type": 0, "layer_norm_epsilon": 0,
             "relative_attention_num_buckets": 0, "relative_attention_max_distance": 0}}
    page_keys = {k: v for k, v in beit.to_dict().items() if k in {**page, **picture, "model_type": 0}} if beit else picture
    looks = {"visual_config": page_keys} if beit else {"linear_boxes": True, "patch_config": page_keys}
    beit = beit or SimpleNamespace(**picture)
    json.dump({**plain, "max_2d_position_embeddings": boxes, **looks}, open(os.path.join(folder, "config.json"), "w"), indent=1)
    json.dump({"image_mean": [0.5, 0.4, 0.3][:beit.num_channels], "image_std": [0.5, 0.25, 0.2][:beit.num_channels], "resample": 2,
               "size": beit.image_size}, open(os.path.join(folder, "preprocessor_config.json"), "w"))
    open(os.path.join(folder, "tokenizer.json"), "w").write("{}")

    tokens = torch.randint(2, 40, (ROWS, 7), generator=g)
    targets = torch.randint(2, 40, (ROWS, ANSWER), generator=g)
    for r in range(ROWS):
        tokens[r, 7 - r:], targets[r, ANSWER - r:] = 0, -100
    decoder = torch.cat([torch.zeros((ROWS, 1), dtype=torch.long), targets[:, :-1].clamp_min(0)], 1)
    where = torch.randint(0, boxes, (ROWS, 7, 4), generator=g)
    if "overlap" in picture:  # corners in order; nowhere, on the whole page, in the last corner, on borders of patches
        where = torch.cat([torch.minimum(where[..., :2], where[..., 2:]), torch.maximum(where[..., :2], where[..., 2:])], -1)
        where[0, :4] = torch.tensor([[0, 0, 0, 0], [0, 0, 20, 20], [20, 20, 20, 20], [5, 5, 10, 15]])
        where[1, 0] = torch.tensor([0, 0, 1, 1])
    levels = torch.randint(0, 256, (ROWS, beit.num_channels, beit.image_size, beit.image_size), generator=g)
    shape = (1, beit.num_channels, 1, 1)
    pixels = (levels / 255 - torch.tensor([0.5, 0.4, 0.3][:beit.num_channels]).view(shape)) / torch.tensor([0.5, 0.25, 0.2][:beit.num_channels]).view(shape)
    with torch.no_grad():
        logits = model(tokens, where, pixels, decoder).logits
        blank = (model(tokens, where, torch.zeros_like(pixels), decoder).logits - logits).abs().max().item()
    print(name, "parameters", sum(p.numel() for p in model.parameters()), "moves by a blank page", blank)

    frozen = getattr(model.visual_embedding, "image_model", torch.nn.Module())
    tuned = get_peft_model(model, LoraConfig(r=2, lora_alpha=3, target_modules=["q", "v"]))
    tuned.eval()
    also = ("spatial_embedding.", "visual_emb_matcher", "visual_embedding.patch_embed")
    values, trained = {}, {}
    for full, p in tuned.named_parameters():
        if any(a in full for a in also):
            p.requires_grad_(True)
        if not p.requires_grad:
            continue
        with torch.no_grad():
            if "lora_B" in full:
                p.copy_(torch.randn(p.shape, generator=g) * 0.3)
        trained[full.removeprefix("base_model.model.").replace(".default", "").replace("language_backbone.", "").replace("matcher.layers.0.", "matcher.")] = p
    loss = tuned(tokens, where, pixels, decoder, labels=targets).loss
    loss.backward()
    assert all(p.grad is None for p in frozen.parameters())
    with open(os.path.join(folder, "expected.json"), "w") as f:
        json.dump({"tokens": tokens.tolist(), "boxes": where.flatten(1).tolist(), "levels": levels.flatten(1).tolist(), "decoder": decoder.tolist(),
                   "targets": targets.tolist(), "logits": [rounded(l, 7) for l in logits], "loss": loss.item(),
                   "values": {n: rounded(p) for n, p in trained.items() if "lora" in n},
                   "gradients": {n: rounded(p.grad) for n, p in trained.items()}}, f)
