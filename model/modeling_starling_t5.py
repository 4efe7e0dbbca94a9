"""Loads a Starling T5 that reads where tokens stand, and the page's picture:

    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer
    model = AutoModelForSeq2SeqLM.from_pretrained(FOLDER, trust_remote_code=True)
    tokenizer = AutoTokenizer.from_pretrained(FOLDER)
    model.generate(**tokenizer(["a text"], return_tensors="pt"), boxes=boxes)  # [B, S, 4], 0 to 1000

With visual_config or patch_config in config.json's t5, patches are the pixel_values [B, channels, height, width] that AutoImageProcessor
gives.
"""

import torch
from transformers import BeitConfig, BeitModel, GenerationMixin, PretrainedConfig, PreTrainedModel, T5Config, T5ForConditionalGeneration
from transformers.modeling_outputs import BaseModelOutput


class StarlingConfig(PretrainedConfig):
    model_type = "starling"
    is_composition = False

    def __init__(self, t5=None, **kwargs):
        self.t5 = t5 or {}
        for name in ("num_layers", "num_decoder_layers", "num_heads", "d_kv", "d_model"):
            setattr(self, name, self.t5.get(name))
        self.num_hidden_layers, self.num_attention_heads = self.num_layers, self.num_heads
        kwargs.setdefault("is_encoder_decoder", True)
        super().__init__(**kwargs)


class Spatial(torch.nn.Module):
    def __init__(self, rows, width, eps):
        super().__init__()
        self.x_position_embeddings = torch.nn.Embedding(rows, width)
        self.y_position_embeddings = torch.nn.Embedding(rows, width)
        self.LayerNorm = torch.nn.LayerNorm(width, eps=eps)
        self.spatial_emb_matcher = torch.nn.Linear(width, width)

    def forward(self, boxes):
        x, y = self.x_position_embeddings, self.y_position_embeddings
        sum = x(boxes[..., 0]) + y(boxes[..., 1]) + x(boxes[..., 2]) + y(boxes[..., 3])
        return self.spatial_emb_matcher(self.LayerNorm(sum))


class LinearSpatial(torch.nn.Module):
    def __init__(self, rows, width):
        super().__init__()
        self.side, self.spatial_emb_matcher = rows - 1, torch.nn.Linear(4, width)

    def forward(self, boxes):
        return self.spatial_emb_matcher(boxes / self.side)


class Visual(torch.nn.Module):
    """A frozen encoder's states behind the tokens."""

    def __init__(self, page, width):
        super().__init__()
        self.image_model = BeitModel(BeitConfig(**page), add_pooling_layer=False)
        self.visual_emb_matcher = torch.nn.Linear(page["hidden_size"], width)

    def forward(self, x, boxes, patches, places):
        return torch.cat([x, self.visual_emb_matcher(self.image_model(patches).last_hidden_state)], 1)

    def mask(self, mask, boxes):
        return torch.cat([mask, mask.new_ones(len(mask), 1 + self.image_model.embeddings.patch_embeddings.num_patches)], 1)


class Patches(torch.nn.Module):
    """Patches of the page as tokens, but those that a token stands in, which are added to it."""

    def __init__(self, page, rows, width):
        super().__init__()
        pair = lambda n: (n, n) if isinstance(n, int) else n
        self.page, self.side, size = page, rows - 1, pair(page["patch_size"])
        self.grid = [whole // part for whole, part in zip(pair(page["image_size"]), size)]
        self.patch_embed = torch.nn.ModuleDict({"proj": torch.nn.Conv2d(page["num_channels"], width, size, size)})

    def inside(self, boxes):
        """[B, S, patches]: 1 where a box stands in a patch."""
        left, top, right, bottom = boxes.unsqueeze(-1).unbind(-2)
        def axis(low, high, n):
            cell = torch.arange(n, device=boxes.device)
            if self.page["overlap"]:
                return (low * n < self.side * (cell + 1)) & (high * n > self.side * cell)
            return torch.clamp((low + high) * n // (2 * self.side), max=n - 1) == cell
        both = axis(top, bottom, self.grid[0]).unsqueeze(-1) & axis(left, right, self.grid[1]).unsqueeze(-2)
        nowhere = (boxes.sum(-1) == 0) | (right - left + bottom - top == 2 * self.side).squeeze(-1)
        return (both.flatten(-2) & ~nowhere.unsqueeze(-1)).float()

    def own(self, device):
        y, x = torch.meshgrid(*(torch.arange(n, device=device) for n in self.grid), indexing="ij")
        part = lambda at, n: at.flatten() * self.side // n
        return torch.stack([part(x, self.grid[1]), part(y, self.grid[0]), part(x + 1, self.grid[1]), part(y + 1, self.grid[0])], -1)

    def forward(self, x, boxes, patches, places):
        seen = self.patch_embed["proj"](patches).flatten(2).transpose(1, 2)
        inside = self.inside(boxes)
        x = x + inside / inside.sum(-1, keepdim=True).clamp(min=1) @ seen
        if not self.page["unplaced"]:
            seen = seen + places(self.own(x.device))
        return torch.cat([seen, x] if self.page["first"] else [x, seen], 1)

    def mask(self, mask, boxes):
        read = 1 - self.inside(boxes).amax(1).to(mask.dtype)
        return torch.cat([read, mask] if self.page["first"] else [mask, read], 1)


class StarlingEncoder(torch.nn.Module):
    """T5's encoder over tokens with their boxes, and what it sees of the page beside them."""

    main_input_name = "input_ids"

    def __init__(self, model):
        super().__init__()
        self.parts = [model]  # not a module of its own: the weights are the model's

    def forward(self, input_ids=None, attention_mask=None, boxes=None, patches=None, **_):
        m = self.parts[0]
        x = m.starling.shared(input_ids)
        boxes = m.placed(input_ids, boxes)
        if m.spatial_embedding is not None:
            x = x + m.spatial_embedding(boxes)
        mask = m.mask(input_ids, attention_mask, boxes, patches)
        if m.visual_embedding is not None and patches is not None:
            x = m.visual_embedding(x, boxes, patches, m.spatial_embedding)
        return m.starling.encoder(inputs_embeds=x, attention_mask=mask)


class StarlingForConditionalGeneration(PreTrainedModel, GenerationMixin):
    config_class, base_model_prefix = StarlingConfig, "starling"
    _tied_weights_keys = {"starling." + n: "starling.shared.weight" for n in
                          ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight")}

    def __init__(self, config):
        super().__init__(config)
        inner = T5Config(**config.t5)
        self.starling = T5ForConditionalGeneration(inner)
        boxes, linear, page, patched = (config.t5.get(n) for n in ("max_2d_position_embeddings", "linear_boxes", "visual_config", "patch_config"))
        self.spatial_embedding = self.visual_embedding = None
        if boxes:
            self.spatial_embedding = LinearSpatial(boxes, inner.d_model) if linear else Spatial(boxes, inner.d_model, inner.layer_norm_epsilon)
        if page or patched:
            self.visual_embedding = Visual(page, inner.d_model) if page else Patches(patched, boxes, inner.d_model)
        self.post_init()

    def get_encoder(self, *_, **__):
        return StarlingEncoder(self)

    def get_input_embeddings(self):
        return self.starling.shared

    def get_output_embeddings(self):
        return self.starling.lm_head

    def placed(self, input_ids, boxes):
        return torch.zeros(*input_ids.shape, 4, dtype=torch.long, device=input_ids.device) if boxes is None else boxes

    def mask(self, input_ids, attention_mask, boxes, patches):
        if attention_mask is None:
            attention_mask = input_ids.ne(self.config.pad_token_id).long()
        if self.visual_embedding is not None and patches is not None:
            attention_mask = self.visual_embedding.mask(attention_mask, boxes)
        return attention_mask

    def prepare_inputs_for_generation(self, input_ids, **kwargs):
        out = super().prepare_inputs_for_generation(input_ids, **kwargs)
        out.update({k: kwargs[k] for k in ("boxes", "patches") if k in kwargs})
        return out

    def forward(self, input_ids=None, attention_mask=None, boxes=None, patches=None, encoder_outputs=None, labels=None,
                decoder_input_ids=None, **kwargs):
        if encoder_outputs is None:
            encoder_outputs = self.get_encoder()(input_ids, attention_mask, boxes, patches)
            attention_mask = self.mask(input_ids, attention_mask, self.placed(input_ids, boxes), patches)
        elif self.visual_embedding is not None and patches is not None and attention_mask is not None:
            at = boxes if boxes is not None else attention_mask.new_zeros(*attention_mask.shape, 4)
            attention_mask = self.mask(None, attention_mask, at, patches)
        if not isinstance(encoder_outputs, BaseModelOutput):
            encoder_outputs = BaseModelOutput(last_hidden_state=encoder_outputs[0])
        return self.starling(encoder_outputs=encoder_outputs, attention_mask=attention_mask, labels=labels,
                             decoder_input_ids=decoder_input_ids, **kwargs)
