"""Loads a Starling T5 that reads where tokens stand, and the page's picture or patches of it:

    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer
    model = AutoModelForSeq2SeqLM.from_pretrained(FOLDER, trust_remote_code=True)
    tokenizer = AutoTokenizer.from_pretrained(FOLDER)
    model.generate(**tokenizer(["a text"], return_tensors="pt"), boxes=boxes)  # [B, S, 4], 0 to 1000

With visual_config in config.json's t5, patches are the pixel_values [B, channels, height, width] that AutoImageProcessor gives.
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


class Visual(torch.nn.Module):
    def __init__(self, values, page, width):
        super().__init__()
        self.image_model = BeitModel(BeitConfig(**page), add_pooling_layer=False) if page else None
        self.visual_emb_matcher = torch.nn.Linear(page["hidden_size"] if page else values, width)

    def forward(self, patches):
        return self.visual_emb_matcher(self.image_model(patches).last_hidden_state if self.image_model else patches)

    def places(self, patches):
        return 1 + self.image_model.embeddings.patch_embeddings.num_patches if self.image_model else patches.shape[1]


class StarlingEncoder(torch.nn.Module):
    """T5's encoder over tokens with their boxes, and patches behind them."""

    main_input_name = "input_ids"

    def __init__(self, model):
        super().__init__()
        self.parts = [model]  # not a module of its own: the weights are the model's

    def forward(self, input_ids=None, attention_mask=None, boxes=None, patches=None, **_):
        m = self.parts[0]
        x = m.starling.shared(input_ids)
        if m.spatial_embedding is not None:
            x = x + m.spatial_embedding(torch.zeros(*input_ids.shape, 4, dtype=torch.long, device=x.device) if boxes is None else boxes)
        mask = m.mask(input_ids, attention_mask, patches)
        if m.visual_embedding is not None and patches is not None:
            x = torch.cat([x, m.visual_embedding(patches)], 1)
        return m.starling.encoder(inputs_embeds=x, attention_mask=mask)


class StarlingForConditionalGeneration(PreTrainedModel, GenerationMixin):
    config_class, base_model_prefix = StarlingConfig, "starling"
    _tied_weights_keys = {"starling." + n: "starling.shared.weight" for n in
                          ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight")}

    def __init__(self, config):
        super().__init__(config)
        inner = T5Config(**config.t5)
        self.starling = T5ForConditionalGeneration(inner)
        boxes, patch, page = (config.t5.get(n) for n in ("max_2d_position_embeddings", "patch_values", "visual_config"))
        self.spatial_embedding = Spatial(boxes, inner.d_model, inner.layer_norm_epsilon) if boxes else None
        self.visual_embedding = Visual(patch, page, inner.d_model) if patch or page else None
        self.post_init()

    def get_encoder(self, *_, **__):
        return StarlingEncoder(self)

    def get_input_embeddings(self):
        return self.starling.shared

    def get_output_embeddings(self):
        return self.starling.lm_head

    def mask(self, input_ids, attention_mask, patches):
        if attention_mask is None:
            attention_mask = input_ids.ne(self.config.pad_token_id).long()
        if self.visual_embedding is not None and patches is not None:
            attention_mask = torch.cat([attention_mask, attention_mask.new_ones(len(patches), self.visual_embedding.places(patches))], 1)
        return attention_mask

    def prepare_inputs_for_generation(self, input_ids, **kwargs):
        out = super().prepare_inputs_for_generation(input_ids, **kwargs)
        out.update({k: kwargs[k] for k in ("boxes", "patches") if k in kwargs})
        return out

    def forward(self, input_ids=None, attention_mask=None, boxes=None, patches=None, encoder_outputs=None, labels=None,
                decoder_input_ids=None, **kwargs):
        if encoder_outputs is None:
            encoder_outputs = self.get_encoder()(input_ids, attention_mask, boxes, patches)
            attention_mask = self.mask(input_ids, attention_mask, patches)
        elif self.visual_embedding is not None and patches is not None and attention_mask is not None:
            attention_mask = self.mask(None, attention_mask, patches)
        if not isinstance(encoder_outputs, BaseModelOutput):
            encoder_outputs = BaseModelOutput(last_hidden_state=encoder_outputs[0])
        return self.starling(encoder_outputs=encoder_outputs, attention_mask=attention_mask, labels=labels,
                             decoder_input_ids=decoder_input_ids, **kwargs)
