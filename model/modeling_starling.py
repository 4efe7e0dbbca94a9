"""Loads a Starling model whose head no class of transformers has:

    from transformers import AutoModelForSequenceClassification, AutoTokenizer
    model = AutoModelForSequenceClassification.from_pretrained(FOLDER, trust_remote_code=True)
    tokenizer = AutoTokenizer.from_pretrained(FOLDER)
"""

import torch
from transformers import AutoConfig, AutoModel, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import SequenceClassifierOutput


class StarlingConfig(PretrainedConfig):
    model_type = "starling"

    def __init__(self, encoder=None, pooling="mean", **kwargs):
        super().__init__(**kwargs)
        self.encoder, self.pooling = encoder or {"model_type": "bert"}, pooling


class StarlingForSequenceClassification(PreTrainedModel):
    config_class, base_model_prefix = StarlingConfig, "starling"

    def __init__(self, config):
        super().__init__(config)
        encoder = AutoConfig.for_model(**config.encoder)
        kwargs = {} if encoder.model_type == "distilbert" else {"add_pooling_layer": False}
        self.starling = AutoModel.from_config(encoder, **kwargs)
        width = encoder.hidden_size
        affine = config.pooling == "mean_affine"
        self.pooler = torch.nn.ModuleDict({"dense": torch.nn.Linear(width, width)} if affine else {})
        self.classifier = torch.nn.Linear(width, config.num_labels)
        self.post_init()

    def forward(self, input_ids, attention_mask=None, labels=None, **_):
        if attention_mask is None:
            attention_mask = input_ids.ne(self.starling.config.pad_token_id).long()
        x = self.starling(input_ids, attention_mask=attention_mask).last_hidden_state
        if self.config.pooling == "first":
            x = x[:, 0]
        else:
            keep = attention_mask.unsqueeze(-1).to(x.dtype)
            x = (x * keep).sum(1) / keep.sum(1)
        for dense in self.pooler.values():
            x = dense(x)
        logits = self.classifier(x)
        loss = None if labels is None else torch.nn.functional.cross_entropy(logits, labels)
        return SequenceClassifierOutput(loss=loss, logits=logits)
