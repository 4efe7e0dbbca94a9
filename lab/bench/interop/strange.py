"""Checkpoints and PEFT adapters as strangers have them: other dtypes, shards, classes and options. What is not computed
must be refused by name."""

import json
import os
import subprocess

import torch
import transformers
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file, save_file

import check

SHAPE = dict(hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=37)
ID2LABEL = dict(id2label={0: "no, thanks", 1: "ja", 2: "日本"}, label2id={"no, thanks": 0, "ja": 1, "日本": 2})


def bert(**more):
    return transformers.BertConfig(**{**SHAPE, "vocab_size": 120, "max_position_embeddings": 20, "num_labels": 3, **more})


def roberta(**more):
    return transformers.RobertaConfig(**{**SHAPE, "vocab_size": 400, "max_position_embeddings": 24, "type_vocab_size": 1, "num_labels": 3, **more})


def distil(**more):
    return transformers.DistilBertConfig(**{"dim": 24, "n_layers": 2, "n_heads": 3, "hidden_dim": 37, "vocab_size": 120, "max_position_embeddings": 20,
                                            "num_labels": 3, **more})


def vit(**more):
    return transformers.ViTConfig(**{**SHAPE, "image_size": 8, "patch_size": 4, "num_channels": 3, "num_labels": 3, **more})


def checkpoints():
    """Name, model, task, what the folder is saved with, further flags of import."""
    t = transformers
    yield "float16 in shards", t.BertForSequenceClassification(bert()).half(), "", dict(max_shard_size="20KB"), []
    yield "bfloat16", t.RobertaForSequenceClassification(roberta()).bfloat16(), "", {}, []
    yield "float64", t.DistilBertForSequenceClassification(distil()).double(), "", {}, []
    yield "float16 image encoder in shards", t.ViTForImageClassification(vit()).half(), "", dict(max_shard_size="20KB"), []
    yield "padding elsewhere", t.BertForSequenceClassification(bert(pad_token_id=7)), "", {}, []
    yield "RoBERTa's padding elsewhere", t.RobertaForSequenceClassification(roberta(pad_token_id=4)), "", {}, []
    yield "many token types", t.BertForSequenceClassification(bert(type_vocab_size=5)), "", {}, []
    yield "one token type", t.BertForTokenClassification(bert(type_vocab_size=1)), "tag", {}, []
    yield "coarse eps", t.BertForSequenceClassification(bert(layer_norm_eps=0.01)), "", {}, []
    yield "labels in the config", t.BertForSequenceClassification(bert(**ID2LABEL)), "", {}, None
    yield "tags in the config", t.DistilBertForTokenClassification(distil(**ID2LABEL)), "tag", {}, None
    yield "RoBERTa's spans in shards", t.RobertaForQuestionAnswering(roberta(num_labels=2)), "span", dict(max_shard_size="20KB"), []
    yield "DistilBERT's spans, bfloat16", t.DistilBertForQuestionAnswering(distil(num_labels=2)).bfloat16(), "span", {}, []
    yield "sines for places", t.DistilBertForSequenceClassification(distil(sinusoidal_pos_embds=True)), "", {}, []
    yield "seven classes", t.RobertaForSequenceClassification(roberta(num_labels=7)), "", {}, ["--labels", "a,b,c,d,e,f,g"]
    yield "dropout for the classifier", t.BertForSequenceClassification(bert(classifier_dropout=0.5, hidden_dropout_prob=0.3)), "", {}, []
    yield "a vocabulary larger than the tokenizer's", t.BertForSequenceClassification(bert(vocab_size=128)), "", {}, []
    yield "one channel and one patch", t.ViTForImageClassification(vit(num_channels=1, patch_size=8)), "", {}, []


def tokenizer_for(folder, config):
    if config.model_type == "roberta":
        check.bytelevel(folder, config.vocab_size)
    elif config.model_type != "vit":
        check.wordpiece(folder, 120)
    name, usual = ("<pad>", 1) if config.model_type == "roberta" else ("[PAD]", 0)
    if config.model_type in ("roberta", "bert") and config.pad_token_id != usual:
        path = os.path.join(folder, "tokenizer.json")
        tok = json.load(open(path))
        vocab, to = tok["model"]["vocab"], config.pad_token_id
        other = next(p for p, i in vocab.items() if i == to)
        vocab[name], vocab[other] = to, usual
        for t in tok["added_tokens"]:
            t["id"] = vocab[t["content"]]
        json.dump(tok, open(path, "w"))


def saved(work, name, model, **options):
    folder = os.path.join(work, "strange-" + name.replace(" ", "-").replace("'", "").replace(",", ""))
    model.save_pretrained(folder, **options)
    tokenizer_for(folder, model.config)
    return folder


def check_checkpoint(s, work, name, model, task, options, flags):
    check.randomize(model.float() if name != "float64" else model, 2)
    model = model.to({"float16": torch.float16, "bfloat16": torch.bfloat16, "float64": torch.float64}.get(
        next((k for k in ("bfloat16", "float16", "float64") if k in name), ""), torch.float32))
    folder = saved(work, name, model, **options)
    config = model.float().config
    inputs = check.Inputs(config, task)
    asked = (["--task", task] if task else []) + ([] if task == "span" or flags is None else flags or ["--labels", "a,b,c"])
    own = folder + "-own"
    out = json.loads(s.run("import", "--base", folder, "--sequence", inputs.seq, "--out", own, "--json", *asked))
    if flags is None:
        check.report("strange", f"{name}: labels that differ", int(out["labels"] != list(ID2LABEL["id2label"].values())), 0)
    check.report("strange", f"{name}: logits", check.worst_of(s.ask(op="logits", checkpoint=own, rank=0, **inputs.probe), check.logits_of(model, inputs), inputs))


def adapters():
    """Name, options, what a refusal says."""
    query = dict(r=4, lora_alpha=6, target_modules=["query", "value"])
    yield "rsLoRA", dict(query, use_rslora=True), ""
    yield "targets as a regular expression", dict(query, target_modules=r".*\.(query|key)$"), ""
    yield "all linear maps", dict(query, target_modules=r".*encoder\.layer\..*(query|key|value|dense)"), ""
    yield "no head of its own", dict(query, modules_to_save=[]), ""
    yield "a rank pattern", dict(query, rank_pattern={"layer.0.attention.self.query": 2, "value": 5}), ""
    yield "an alpha pattern", dict(query, alpha_pattern={"layer.1.attention.self.query": 9}), ""
    yield "both patterns and rsLoRA", dict(query, rank_pattern={"value": 7}, alpha_pattern={r"layer\.\d+.attention.self.value": 2.5}, use_rslora=True), ""
    yield "patterns as whole names", dict(query, rank_pattern={"^bert.encoder.layer.0.attention.self.value": 1}, alpha_pattern={"^bert.encoder.layer.0.attention.self.value": 3}), ""
    yield "Gaussian start", dict(query, init_lora_weights="gaussian"), ""
    yield "orthogonal start", dict(query, init_lora_weights="orthogonal"), ""
    yield "DoRA", dict(query, use_dora=True), "use_dora"
    yield "biases beside LoRA", dict(query, bias="lora_only"), "bias"
    yield "all biases", dict(query, bias="all"), "bias"
    yield "a bias of LoRA's", dict(query, lora_bias=True), "lora_bias"
    yield "PiSSA, which changes the base", dict(query, init_lora_weights="pissa"), "init_lora_weights"
    yield "OLoRA, which changes the base", dict(query, init_lora_weights="olora"), "init_lora_weights"
    yield "one layer alone", dict(query, layers_to_transform=[1]), ""
    yield "one layer by its pattern", dict(query, layers_to_transform=0, layers_pattern=["layer"]), ""
    yield "modules left out", dict(query, target_modules=["dense", "query"], exclude_modules=["attention.output.dense", "classifier"]), ""
    yield "modules left out by an expression", dict(query, target_modules=["query", "key"], exclude_modules=r".*layer\.1\..*key"), ""
    yield "the feed-forward's second map alone", dict(query, target_modules=r".*layer\.\d+\.output\.dense"), ""
    yield "an expression that only Python has", dict(query, target_modules=r".*(?<!attention)\.output\.dense"), ""
    yield "all-linear", dict(query, target_modules="all-linear"), ""
    yield "a pooler trained whole", dict(query, modules_to_save=["classifier", "pooler"]), ""
    yield "norms trained whole", dict(query, modules_to_save=["classifier", "embeddings.LayerNorm", "output.LayerNorm"]), ""
    yield "embeddings trained whole", dict(query, modules_to_save=["classifier", "word_embeddings"]), ""
    yield "layers twice", dict(query, layer_replication=[[0, 2], [1, 2]]), "layer_replication"
    yield "trained tokens", dict(query, trainable_token_indices=[3, 5]), "single rows of the embeddings"
    yield "embeddings", dict(query, target_modules=["query", "value", "word_embeddings"]), "table of embeddings"
    yield "a parameter", dict(query, target_parameters=["query.weight"]), "target_parameters"
    yield "KaSA", dict(query, kasa_config={}), "kasa_config"


def check_adapter(s, work, i, name, options, refusal):
    torch.manual_seed(1)
    model = transformers.BertForSequenceClassification(bert())
    check.randomize(model, 2)
    folder = saved(work, f"adapter {i}", model)
    inputs = check.Inputs(model.config)
    try:
        lora = get_peft_model(model, LoraConfig(**{"task_type": None if "layer_replication" in options else "SEQ_CLS", "modules_to_save": ["classifier"], **options}))
    except Exception as e:
        if not refusal:
            raise
        print(f"  strange: PEFT itself has no {name}: {e}")
        return
    g = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for n, p in lora.named_parameters():
            if p.requires_grad:
                p.copy_(torch.randn(p.shape, generator=g) * 0.2)
    adapter = folder + "-peft"
    lora.save_pretrained(adapter)
    taken = folder + "-taken"
    args = [s.binary, "import", "--base", folder, "--adapter", adapter, "--labels", "a,b,c", "--sequence", inputs.seq, "--out", taken]
    p = subprocess.run(args, capture_output=True, text=True)
    if refusal:
        told = p.returncode != 0 and refusal in p.stderr and "panic" not in p.stderr
        check.report("strange", f"{name}: not refused by name{'' if told else ': ' + p.stderr[-300:]}", int(not told), 0)
        return
    if p.returncode:
        check.report("strange", f"{name}: {p.stderr[-300:]}", 1, 0)
        return
    rank = json.load(open(os.path.join(taken, "starling.json")))["lora"]["r_max"]
    want = check.logits_of(lora, inputs)
    check.report("strange", f"{name}: logits", check.relative(s.ask(op="logits", checkpoint=taken, rank=rank, **inputs.probe), want))
    out = folder + "-out"
    s.run("export", "--checkpoint", taken, "--rank", str(rank), "--format", "peft", "--out", out)
    again = transformers.AutoModelForSequenceClassification.from_pretrained(os.path.join(out, "base"))
    check.report("strange", f"{name}: exported for PEFT", check.relative(check.logits_of(check.PeftModel.from_pretrained(again, out), inputs), want))


def refused():
    """Name, model, task, an edit of its config, what a refusal says."""
    t = transformers
    yield "no pooler", t.BertModel(bert(), add_pooling_layer=False), "classify", {}, "pooler"
    yield "a decoder", t.BertLMHeadModel(bert(is_decoder=True)), "classify", {}, "is_decoder"
    yield "several labels at once", t.BertForSequenceClassification(bert(problem_type="multi_label_classification")), "classify", {}, "problem_type"
    yield "a number for a label", t.BertForSequenceClassification(bert(num_labels=2, problem_type="regression")), "classify", {}, "problem_type"
    yield "half of a T5", t.T5EncoderModel(t.T5Config(vocab_size=120, d_model=16, d_kv=8, d_ff=24, num_layers=1, num_heads=2)), "", {}, "decoder"
    yield "an unknown activation", t.BertForSequenceClassification(bert(hidden_act="mish")), "classify", {}, "hidden_act"
    yield "another architecture", t.AlbertForSequenceClassification(t.AlbertConfig(vocab_size=120, embedding_size=8, hidden_size=16, num_attention_heads=2, intermediate_size=24)), "classify", {}, "albert"
    yield "a layer too few", t.BertForSequenceClassification(bert()), "classify", {"num_hidden_layers": 3}, "encoder.layer.2"
    yield "a layer too many", t.BertForSequenceClassification(bert()), "classify", {"num_hidden_layers": 1}, "layer.1"
    yield "other heads than weights", t.BertForSequenceClassification(bert()), "classify", {"num_attention_heads": 5}, "num_attention_heads"


def check_refused(s, work, name, model, task, edit, refusal):
    folder = saved(work, name, model)
    if model.config.model_type == "t5":
        import t5

        t5.unigram(folder, model.config.vocab_size)
    path = os.path.join(folder, "config.json")
    config = {**json.load(open(path)), **edit}
    json.dump(config, open(path, "w"))
    labels = ["--labels", "a,b,c" if config.get("num_labels", len(config.get("id2label") or "abc")) != 2 else "a,b", "--task", task] if task else []
    p = subprocess.run([s.binary, "import", "--base", folder, "--out", folder + "-own", *labels], capture_output=True, text=True)
    told = p.returncode != 0 and refusal in p.stderr and "panic" not in p.stderr
    check.report("strange", f"{name}: not refused by name{'' if told else ': ' + p.stderr[-300:]}", int(not told), 0)


def check_poolerless(s, work):
    """What has no pooler serves the tasks that read every token, whatever class saved it."""
    model = transformers.BertModel(bert(), add_pooling_layer=False)
    check.randomize(model, 2)
    folder = saved(work, "an encoder alone", model)
    head = {"classifier.weight": torch.randn(3, 24), "classifier.bias": torch.randn(3)}
    path = os.path.join(folder, "model.safetensors")
    save_file({**load_file(path), **head}, path, metadata={"format": "pt"})
    there = transformers.BertForTokenClassification(model.config)
    there.bert.load_state_dict(model.state_dict())
    there.classifier.load_state_dict({k.split(".")[1]: v for k, v in head.items()})
    inputs = check.Inputs(model.config, "tag")
    own = folder + "-own"
    s.run("import", "--base", folder, "--task", "tag", "--labels", "a,b,c", "--sequence", inputs.seq, "--out", own)
    check.report("strange", "an encoder without a pooler, for tags: logits",
                 check.worst_of(s.ask(op="logits", checkpoint=own, rank=0, **inputs.probe), check.logits_of(there, inputs), inputs))


def check_all(s, work, only):
    if not "strange".startswith(only):
        return
    torch.manual_seed(1)
    for case in checkpoints():
        check_checkpoint(s, work, *case)
    check_poolerless(s, work)
    for i, case in enumerate(adapters()):
        check_adapter(s, work, i, *case)
    for case in refused():
        check_refused(s, work, *case)
