"""Holds Starling against transformers, PEFT and tokenizers: random checkpoints of
every architecture, and a real one where it is given. Prints a table in markdown and
exits with 1 where a figure misses its limit."""

import argparse, base64, csv, json, os, subprocess, sys, tempfile, warnings

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
warnings.filterwarnings("ignore")

import torch
import transformers
from peft import LoraConfig, PeftModel, get_peft_model
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import AutoModel, AutoModelForImageClassification, AutoModelForSequenceClassification, AutoModelForDocumentQuestionAnswering, AutoModelForQuestionAnswering, AutoModelForTokenClassification, AutoTokenizer

LIMIT = 1e-4
rows, failed = [], 0


def report(case, what, value, limit=LIMIT):
    global failed
    ok = value <= limit
    failed += not ok
    rows.append((case, what, f"{value:.1e}" if isinstance(value, float) else str(value), "ok" if ok else "MISS"))
    print(f"  {case}: {what}: {value}{'' if ok else '   MISS'}", file=sys.stderr)


def relative(got, want):
    got, want = torch.as_tensor(got).double(), torch.as_tensor(want).double()
    return float((got - want).abs().max() / want.abs().max().clamp_min(1e-12))


class Starling:
    def __init__(self, binary, probe):
        self.binary, self.probe = binary, probe

    def run(self, *args, input=None):
        p = subprocess.run([self.binary, *args], input=input, capture_output=True, text=True)
        if p.returncode:
            raise SystemExit(f"starling {' '.join(args)}: {p.stderr}")
        return p.stdout

    def ask(self, **request):
        p = subprocess.run([self.probe], input=json.dumps(request), capture_output=True, text=True)
        if p.returncode:
            raise SystemExit(f"probe: {p.stderr}")
        return json.loads(p.stdout)


def wordpiece(folder, vocab):
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    pieces += [chr(c) for c in range(97, 123)] + ["##" + chr(c) for c in range(97, 123)]
    pieces += [f"w{i}" for i in range(vocab - len(pieces))]
    tok = Tokenizer(models.WordPiece({p: i for i, p in enumerate(pieces)}, unk_token="[UNK]"))
    tok.normalizer = normalizers.BertNormalizer(lowercase=True)
    tok.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tok.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tok.add_special_tokens(pieces[:5])
    tok.save(os.path.join(folder, "tokenizer.json"))


CORPUS = ["the company said quarterly profit rose 8.5 pct to 1.2 mln dlrs", "don't stop; it's 3:30 pm and we'll wait -- they've left",
          "wheat and corn exports fell sharply", "Łódź café naïve résumé Ångström über", "日本語 текст ελληνικά العربية", "a  b   c\n\nd\te"] * 20


def bytelevel(folder, vocab):
    from tokenizers import trainers

    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    names = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    tok.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=vocab, special_tokens=names, show_progress=False,
                                                        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tok.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    tok.save(os.path.join(folder, "tokenizer.json"))


def unigram(folder, vocab):
    """A SentencePiece model, and T5's tokenizer.json made of it."""
    import sentencepiece

    text = os.path.join(folder, "corpus.txt")
    with open(text, "w") as f:
        f.write("\n".join(CORPUS))
    model = os.path.join(folder, "spiece")
    sentencepiece.SentencePieceTrainer.train(input=text, model_prefix=model, vocab_size=vocab, pad_id=0, eos_id=1, unk_id=2, bos_id=-1,
                                             hard_vocab_limit=False, minloglevel=2)
    spm = sentencepiece.SentencePieceProcessor(model_file=model + ".model")
    from tokenizers import decoders

    from sentencepiece import sentencepiece_model_pb2

    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(open(model + ".model", "rb").read())
    tok = Tokenizer(models.Unigram([(p.piece, p.score) for p in proto.pieces], unk_id=2))
    tok.normalizer = normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap)
    tok.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    tok.add_special_tokens(["<pad>", "</s>", "<unk>"])
    tok.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    tok.save(os.path.join(folder, "tokenizer.json"))
    return spm, model + ".model"


def of_roberta(folder, vocab, camembert=False):
    """A tokenizer as XLM-R and CamemBERT have it: SentencePiece's pieces behind the special tokens, made into tokenizer.json by transformers."""
    unigram(folder, vocab - 8)
    made = json.load(open(os.path.join(folder, "tokenizer.json")))
    pieces = [tuple(p) for p in made["model"]["vocab"] if p[0] not in ("<pad>", "</s>", "<unk>")]
    from transformers import CamembertTokenizer, XLMRobertaTokenizer

    cls = CamembertTokenizer if camembert else XLMRobertaTokenizer
    front = ["<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED", "<s>", "</s>"] if camembert else ["<s>", "<pad>", "</s>", "<unk>"]
    tok = cls(vocab=[(p, -100.0 if p == "<unk>NOTUSED" else 0.0) for p in front] + pieces + [("<mask>", 0.0)],
              _spm_precompiled_charsmap=base64.b64decode(made["normalizer"]["precompiled_charsmap"]))
    tok.save_pretrained(folder)


def tokenizer_for(folder, config):
    if config.model_type in ("xlm-roberta", "camembert"):
        of_roberta(folder, config.vocab_size, config.model_type == "camembert")
    else:
        (bytelevel if config.model_type == "roberta" else wordpiece)(folder, config.vocab_size)


def noise(n, seed=1):
    """Random texts: words of the corpus, odd spaces, accents, scripts, control characters."""
    import random

    rng = random.Random(seed)
    words = " ".join(CORPUS[:6]).split() + ["...", "--", "'", "'s", "½", "①", "ﬁ", "Ａ", "e\u0301", "\u200b", "\u00ad", "🙂", "٣", "Ⅷ", "ǅ", "İ", "ß", "한국어"]
    spaces = [" ", "  ", "\t", "\n", "\u00a0", "\u3000", ""]
    return ["".join(rng.choice(words) + rng.choice(spaces) for _ in range(rng.randrange(12))) for _ in range(n)]


def check_tokenizers(s, work):
    texts = noise(1500) + CORPUS[:6]

    def compare(case, folder, want):
        got = s.ask(op="ids", base=os.path.join(folder, "tokenizer.json") if os.path.isdir(folder) else folder, texts=texts)
        wrong = [t for t, g, w in zip(texts, got, want) if g != w]
        report("tokenizers", f"{case}: texts of {len(texts)} whose ids differ{': ' + repr(wrong[0]) if wrong else ''}", len(wrong), 0)

    for case, cased in (("WordPiece, uncased", False), ("WordPiece, cased", True)):
        folder = os.path.join(work, "wp" + str(cased))
        os.makedirs(folder)
        from tokenizers import trainers

        tok = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        tok.normalizer = normalizers.BertNormalizer(lowercase=not cased)
        tok.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tok.train_from_iterator(CORPUS, trainers.WordPieceTrainer(vocab_size=300, show_progress=False,
                                                                  special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
        tok.save(os.path.join(folder, "tokenizer.json"))
        compare(case, folder, [tok.encode(t, add_special_tokens=False).ids for t in texts])
    folder = os.path.join(work, "bpe")
    os.makedirs(folder)
    bytelevel(folder, 420)
    tok = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    compare("byte-level BPE", folder, [tok.encode(t, add_special_tokens=False).ids for t in texts])
    folder = os.path.join(work, "unigram")
    os.makedirs(folder)
    spm, path = unigram(folder, 220)
    compare("SentencePiece unigram", path, [spm.encode(t) for t in texts])
    tok = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    compare("Unigram in tokenizer.json", folder, [tok.encode(t, add_special_tokens=False).ids for t in texts])


def configs():
    from transformers import BertConfig, DistilBertConfig, RobertaConfig

    base = dict(vocab_size=120, num_labels=3)
    for i, (h, l, n, f, p, act) in enumerate([(32, 2, 2, 64, 24, "gelu"), (48, 3, 4, 100, 20, "gelu_new"), (64, 1, 1, 256, 40, "relu")]):
        shape = dict(hidden_size=h, num_hidden_layers=l, num_attention_heads=n, intermediate_size=f)
        yield f"bert-{i}", BertConfig(**base, **shape, max_position_embeddings=p, hidden_act=act, type_vocab_size=1 + i)
        yield f"roberta-{i}", RobertaConfig(**{**base, "vocab_size": 400}, **shape, max_position_embeddings=p + 2, hidden_act=act, type_vocab_size=1, pad_token_id=1,
                                            layer_norm_eps=1e-5)
        yield f"distilbert-{i}", DistilBertConfig(**base, dim=h, n_layers=l, n_heads=n, hidden_dim=f, max_position_embeddings=p,
                                                  activation=act if act != "gelu_new" else "gelu")


def families():
    """RoBERTa's encoder under other names."""
    from transformers import CamembertConfig, XLMRobertaConfig

    shape = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, max_position_embeddings=26, type_vocab_size=1, layer_norm_eps=1e-5)
    for kind in ("", "tag-", "span-"):
        yield kind + "xlm-roberta", XLMRobertaConfig(vocab_size=260, num_labels=2 if kind == "span-" else 3, **shape)
        yield kind + "camembert", CamembertConfig(vocab_size=260, num_labels=2 if kind == "span-" else 3, bos_token_id=5, eos_token_id=6, **shape)


def odd_configs():
    """Shapes and activations that few checkpoints have: widths that are no multiple of 16, one layer, one head."""
    from transformers import BertConfig, DistilBertConfig, RobertaConfig, ViTConfig

    base = dict(vocab_size=120, num_labels=3)
    for i, (h, l, n, f, p, act, dact) in enumerate([(20, 1, 1, 33, 17, "silu", "swish"), (18, 2, 3, 7, 19, "quick_gelu", "gelu_fast"),
                                                    (15, 3, 5, 50, 16, "gelu_fast", "quick_gelu")], 3):
        shape = dict(hidden_size=h, num_hidden_layers=l, num_attention_heads=n, intermediate_size=f, hidden_act=act)
        yield f"bert-{i}", BertConfig(**base, **shape, max_position_embeddings=p)
        yield f"roberta-{i}", RobertaConfig(**{**base, "vocab_size": 401}, **shape, max_position_embeddings=p + 2, type_vocab_size=1, pad_token_id=1)
        yield f"distilbert-{i}", DistilBertConfig(**base, dim=h, n_layers=l, n_heads=n, hidden_dim=f, max_position_embeddings=p, activation=dact)
    for i, (h, l, n, f, size, patch, act) in enumerate([(20, 1, 1, 33, 9, 3, "silu"), (18, 2, 3, 7, 8, 8, "quick_gelu"), (15, 2, 5, 50, 10, 1, "gelu_fast"),
                                                       (16, 2, 2, 24, (12, 6), (4, 3), "gelu"), (16, 1, 2, 24, (4, 10), 2, "relu"), (16, 1, 1, 24, 6, [2, 6], "gelu")], 3):
        yield f"vit-{i}", ViTConfig(num_labels=3, hidden_size=h, num_hidden_layers=l, num_attention_heads=n, intermediate_size=f, image_size=size,
                                    patch_size=patch, num_channels=1, hidden_act=act)


def image_configs():
    from transformers import ViTConfig

    for i, (h, l, n, f, size, patch, channels, act, bias) in enumerate([(32, 2, 2, 64, 8, 2, 1, "gelu", True), (48, 3, 4, 100, 12, 4, 3, "gelu_new", False),
                                                                       (64, 1, 1, 256, 16, 8, 3, "relu", True)]):
        yield f"vit-{i}", ViTConfig(num_labels=3, hidden_size=h, num_hidden_layers=l, num_attention_heads=n, intermediate_size=f, image_size=size,
                                    patch_size=patch, num_channels=channels, hidden_act=act, qkv_bias=bias)


# transformers 5 calls a vit's modules otherwise in memory than in its files.
VIT = [("layers.", "encoder.layer."), ("attention.q_proj", "attention.attention.query"), ("attention.k_proj", "attention.attention.key"),
       ("attention.v_proj", "attention.attention.value"), ("attention.o_proj", "attention.output.dense"), ("mlp.fc1", "intermediate.dense"),
       ("mlp.fc2", "output.dense")]


def ours(config, name):
    """A parameter's name as Starling has it."""
    name = name.removeprefix("roberta." if config.model_type in ("xlm-roberta", "camembert") else config.model_type + ".")
    for there, here in VIT if config.model_type == "vit" else []:
        name = name.replace(there, here)
    return name


def auto(name, config):
    if name.startswith("tag"):
        return AutoModelForTokenClassification
    if name.startswith("span"):
        return AutoModelForQuestionAnswering
    return AutoModelForImageClassification if config.model_type == "vit" else AutoModelForSequenceClassification


def tag_configs():
    """A label for each token, of every encoder of texts, and where an answer stands in one."""
    for kind in ("tag-", "span-", "multilabel-"):
        for name, config in configs():
            if kind == "span-":
                config.num_labels = 2
            if kind == "multilabel-":
                config.problem_type = "multi_label_classification"
            yield kind + name, config


def loss_of(model, inputs):
    if inputs.spans:
        return model(**inputs.model, start_positions=inputs.labels[:, 0], end_positions=inputs.labels[:, 1]).loss
    if inputs.several:
        return model(**inputs.model, labels=inputs.labels).loss
    logits = model(**inputs.model).logits
    return torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), inputs.labels.flatten())


def worst_of(got, want, inputs):
    """Of a label for each token: those of the texts, as nobody reads padding's."""
    if want.dim() < 3:
        return relative(got, want)
    lengths = inputs.model["attention_mask"].sum(1) * want.shape[-1]
    return max(relative(torch.tensor(g)[:n], w.flatten()[:n]) for g, w, n in zip(got, want, lengths))


class Inputs:
    """A batch as transformers and as the probe read it."""

    spans = several = False

    def __init__(self, config, kind=""):
        if config.model_type == "vit":
            g = torch.Generator().manual_seed(0)
            height, width = (config.image_size, config.image_size) if isinstance(config.image_size, int) else config.image_size
            pixels = torch.rand((4, config.num_channels, height, width), generator=g)
            self.labels, self.seq = torch.arange(4) % 3, "1"
            self.model, self.probe = {"pixel_values": (pixels - 0.5) / 0.5}, {"pixels": pixels.flatten(1).tolist()}
            return
        tokens, self.labels = batch(config)
        self.take(tokens, config.pad_token_id)
        if kind == "tag":
            self.labels = torch.where(tokens.ne(config.pad_token_id), torch.arange(tokens.numel()).reshape(tokens.shape) % 3, -100)
        if kind == "multilabel":
            self.several, self.labels = True, torch.tensor([[1.0, 0, 1], [0, 0, 0], [1, 1, 1], [0, 1, 0]])
        if kind == "span":  # whole rows: transformers lets padding begin an answer
            self.take(batch(config, pads=0)[0], config.pad_token_id)
            self.spans, self.labels = True, torch.tensor([[0, 0], [3, 5], [6, 6], [2, 4]])
            if getattr(config, "type_vocab_size", 0) > 1:
                self.segments(torch.arange(tokens.shape[1]).ge(4).long().expand(tokens.shape).contiguous())

    def segments(self, types):
        self.model["token_type_ids"], self.probe["types"] = types, types.tolist()

    def take(self, tokens, pad):
        self.seq = str(tokens.shape[1])
        self.model, self.probe = {"input_ids": tokens, "attention_mask": tokens.ne(pad).long()}, {"tokens": tokens.tolist()}
        return self


def batch(config, rows=4, seq=16, seed=0, pads=3):
    g = torch.Generator().manual_seed(seed)
    tokens = torch.randint(5, config.vocab_size, (rows, seq), generator=g)
    for r in range(rows):
        tokens[r, seq - pads * r:] = config.pad_token_id
    return tokens, torch.arange(rows) % 3


def logits_of(model, inputs):
    model.eval()
    with torch.no_grad():
        out = model(**inputs.model)
        return torch.stack([out.start_logits, out.end_logits], -1) if inputs.spans else out.logits


def randomize(model, seed):
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn(p.shape, generator=g) * (0.15 if p.dim() > 1 else 0.1))


def check_random(s, work, name, config):
    """One configuration: import, logits, gradients, export at ranks, import of the export."""
    torch.manual_seed(1)
    model = auto(name, config).from_config(config)
    randomize(model, 2)
    folder = os.path.join(work, name)
    model.save_pretrained(folder, max_shard_size="60KB" if name.endswith("1") else "5GB")
    if config.model_type != "vit":
        tokenizer_for(folder, config)
    kind = name.split("-")[0] if name.startswith(("tag-", "span-", "multilabel-")) else ""
    inputs, flags = Inputs(config, kind), ["--task", kind] if kind else []
    if kind != "span":
        flags += ["--labels", "a,b,c"]
    labels, seq = inputs.labels, inputs.seq

    own = os.path.join(work, name + "-own")
    s.run("import", "--base", folder, "--sequence", seq, "--out", own, *flags)
    got = s.ask(op="logits", checkpoint=own, rank=0, **inputs.probe)
    report(name, "logits of the checkpoint", worst_of(got, logits_of(model, inputs), inputs))
    model.eval()
    model.zero_grad()
    loss_of(model, inputs).backward()
    for method in ("full", "bitfit"):
        grads = s.ask(op="gradient", checkpoint=own, rank=0, method=method, **inputs.probe, labels=labels.flatten().int().tolist())
        grads.pop("loss")
        worst, all = 0.0, max(p.grad.abs().max() for p in model.parameters())
        for n, p in model.named_parameters():
            key = ours(config, n)
            for k in (key, key + ".delta"):
                if k in grads:
                    g = torch.tensor(grads.pop(k))
                    # A key's bias changes no softmax: its gradient is rounding in both; nor do a
                    # span's last biases.
                    if kind == "span" and p.grad.abs().max() < 1e-5 * all:
                        continue
                    worst = max(worst, float((g - p.grad.flatten()).abs().max() / p.grad.abs().max().clamp_min(1e-3 * all)))
        report(name, f"{method}: tensors without a gradient in autograd", len(grads), 0)
        report(name, f"gradients of {method} fine-tuning", worst)
    model.zero_grad()

    query, value = {"distilbert": ("q_lin", "v_lin"), "vit": ("q_proj", "v_proj")}.get(config.model_type, ("query", "value"))
    heads = ["pre_classifier", "classifier"] if config.model_type == "distilbert" and kind in ("", "multilabel") else ["classifier"]
    if kind == "span":
        heads = ["qa_outputs"]
    targets = [query, value]
    if name.endswith("2"):  # every linear map of the layers
        targets = {"distilbert": ["q_lin", "k_lin", "v_lin", "out_lin", "lin1", "lin2"],
                   "vit": ["q_proj", "k_proj", "v_proj", "o_proj", "fc1", "fc2"]}.get(config.model_type, [
            "query", "key", "value", "attention.output.dense", "intermediate.dense", "output.dense"])
    lora = get_peft_model(model, LoraConfig(task_type={"tag": "TOKEN_CLS", "span": None}.get(kind, None if config.model_type == "vit" else "SEQ_CLS"), r=4, lora_alpha=6, target_modules=targets, modules_to_save=heads))
    g = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for n, p in lora.named_parameters():
            if "lora_" in n or "modules_to_save" in n:
                p.copy_(torch.randn(p.shape, generator=g) * 0.2)
    adapter = os.path.join(work, name + "-peft")
    lora.save_pretrained(adapter)
    taken = os.path.join(work, name + "-taken")
    s.run("import", "--base", folder, "--adapter", adapter, "--sequence", seq, "--out", taken, *flags)
    want = logits_of(lora, inputs)
    report(name, "logits of a PEFT adapter", worst_of(s.ask(op="logits", checkpoint=taken, rank=4, **inputs.probe), want, inputs))

    lora.eval()
    lora.zero_grad()
    loss_of(lora, inputs).backward()
    grads = s.ask(op="gradient", checkpoint=taken, rank=4, **inputs.probe, labels=labels.flatten().int().tolist())
    worst, all = 0.0, max(p.grad.abs().max() for p in lora.parameters() if p.grad is not None)
    for n, p in lora.named_parameters():
        if p.grad is None or kind == "span" and p.grad.abs().max() < 1e-5 * all:  # the head's bias changes no softmax
            grads.pop(ours(config, n.removeprefix("base_model.model.").replace(".default", "").replace(".modules_to_save", "")), None)
            continue
        key = n.removeprefix("base_model.model.").replace(".default", "").replace(".modules_to_save", "")
        worst = max(worst, relative(grads.pop(ours(config, key)), p.grad.flatten()))
    grads.pop("loss")
    report(name, "tensors without a gradient in autograd", len(grads), 0)
    report(name, "gradients of LoRA and head", worst)
    check_export(s, work, name, taken, inputs, [1, 3, 4], auto(name, config))


def check_export(s, work, name, checkpoint, inputs, ranks, cls=AutoModelForSequenceClassification):
    worst = {"peft": 0.0, "merged": 0.0}
    for rank in ranks:
        want = s.ask(op="logits", checkpoint=checkpoint, rank=rank, **inputs.probe)
        for form in worst:
            out = os.path.join(work, f"{name}-{form}-{rank}")
            s.run("export", "--checkpoint", checkpoint, "--rank", str(rank), "--format", form, "--out", out)
            where = os.path.join(out, "base") if form == "peft" else out
            model = cls.from_pretrained(where, trust_remote_code=True)
            if form == "peft":
                model = PeftModel.from_pretrained(model, out)
            worst[form] = max(worst[form], worst_of(want, logits_of(model, inputs), inputs))
    report(name, f"exported for PEFT at ranks {ranks}", worst["peft"])
    report(name, f"exported merged at ranks {ranks}", worst["merged"])


def check_boxes(s, work):
    """Spans with the places of words: merged, they are a LayoutLM."""
    from safetensors.torch import load_file, save_file

    name, config = next((n, c) for n, c in configs() if c.model_type == "bert")
    config.num_labels = 2
    torch.manual_seed(1)
    model = AutoModelForQuestionAnswering.from_config(config)
    randomize(model, 2)
    folder, own = os.path.join(work, "boxes"), os.path.join(work, "boxes-own")
    model.save_pretrained(folder)
    wordpiece(folder, config.vocab_size)
    inputs = Inputs(config, "span")
    s.run("import", "--base", folder, "--task", "span", "--sequence", inputs.seq, "--out", own)
    # An imported model has none: give it some.
    path, info = os.path.join(own, "adapter_model.safetensors"), os.path.join(own, "starling.json")
    g = torch.Generator().manual_seed(7)
    t = load_file(path)
    t["base_model.model.bert.box_embeddings.weight"] = torch.randn((config.hidden_size, 4), generator=g) * 0.5
    for k in t:
        if "lora_B" in k:
            t[k] = torch.randn(t[k].shape, generator=g) * 0.2
    save_file(t, path, metadata={"format": "pt"})
    doc = json.load(open(info))
    doc["lora"]["also"] = "box_embeddings"
    json.dump(doc, open(info, "w"))
    a, b = (torch.randint(0, 1001, (4, 16, 2), generator=g) for _ in range(2))
    boxes = torch.cat([torch.minimum(a, b), torch.maximum(a, b)], -1)
    inputs.model["bbox"], inputs.probe["boxes"] = boxes, boxes.tolist()
    want = s.ask(op="logits", checkpoint=own, rank=1, **inputs.probe)
    out = os.path.join(work, "boxes-merged")
    s.run("export", "--checkpoint", own, "--rank", "1", "--format", "merged", "--out", out)
    there = AutoModelForDocumentQuestionAnswering.from_pretrained(out)
    report("span-boxes", "layers of another class than LayoutLM's", int(type(there).__name__ != "LayoutLMForQuestionAnswering"), 0)
    report("span-boxes", "exported merged, as a LayoutLM", worst_of(want, logits_of(there, inputs), inputs))
    blank = torch.zeros_like(boxes)
    inputs.model["bbox"] = blank
    report("span-boxes", "logits that boxes do not change", int(worst_of(want, logits_of(there, inputs), inputs) < 1e-3), 0)


def check_refused(s, work, name, export):
    """What no class of transformers computes must not load without its own module, nor its adapter elsewhere."""
    silent = 0
    try:
        AutoModelForSequenceClassification.from_pretrained(os.path.join(export, "base"), trust_remote_code=False)
        silent += 1
    except Exception:
        pass
    from transformers import BertConfig

    other = AutoModelForSequenceClassification.from_config(BertConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=2,
                                                                      intermediate_size=256, vocab_size=4096, num_labels=3))
    try:
        PeftModel.from_pretrained(other, export)
        silent += 1
    except Exception:
        pass
    report(name, "loaded silently by a class that computes something else", silent, 0)


def check_own(s, work):
    """The default base's kind: mean pooling, affine map, 4-bit matrices."""
    name, out = "starling", os.path.join(work, "pretrained")
    corpus = os.path.join(work, "corpus.txt")
    with open(corpus, "w") as f:
        for i in range(400):
            f.write(f"the {['red', 'green', 'blue'][i % 3]} house number {i} stands on the {['hill', 'shore'][i % 2]} of the town\n")
    s.run("pretrain", "--corpus", corpus, "--out", out, "--hidden", "32", "--layers", "2", "--vocab", "90", "--seq", "16", "--steps", "20", "--batch", "8")
    base = os.path.join(work, "starling-own")
    s.run("import", "--base", out, "--labels", "a,b,c", "--sequence", "16", "--out", base)
    config = transformers.AutoConfig.from_pretrained(out, trust_remote_code=True)
    model = AutoModelForSequenceClassification.from_pretrained(os.path.join(base, "base"), trust_remote_code=True)
    lora = get_peft_model(model, LoraConfig(task_type="SEQ_CLS", r=3, lora_alpha=5, target_modules=["query", "value"], modules_to_save=["classifier"]))
    g = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for n, p in lora.named_parameters():
            if "lora_" in n or "modules_to_save" in n:
                p.copy_(torch.randn(p.shape, generator=g) * 0.3)
    adapter = os.path.join(work, "starling-peft")
    lora.save_pretrained(adapter)
    taken = os.path.join(work, "starling-taken")
    s.run("import", "--base", out, "--adapter", adapter, "--labels", "a,b,c", "--sequence", "16", "--out", taken)
    g = torch.Generator().manual_seed(0)
    tokens = torch.randint(5, config.vocab_size, (4, 16), generator=g)
    for r in range(4):
        tokens[r, 16 - 3 * r:] = 0
    inputs = Inputs.__new__(Inputs).take(tokens, 0)
    want = logits_of(lora, inputs)
    report(name, "logits of a PEFT adapter", relative(s.ask(op="logits", checkpoint=taken, rank=3, **inputs.probe), want))
    check_export(s, work, name, taken, inputs, [1, 2, 3])
    check_refused(s, work, name, os.path.join(work, "starling-peft-3"))
    # The lines of the model card, run as they stand.
    card = open(os.path.join(work, "starling-peft-3", "README.md")).read()
    code = card.split("```python\n")[1].split("```")[0]
    p = subprocess.run([sys.executable, "-c", code], cwd=os.path.join(work, "starling-peft-3"), capture_output=True, text=True)
    report(name, f"model card's lines fail{': ' + p.stderr[-300:] if p.returncode else ''}", p.returncode, 0)


TEXTS = ["The quarterly profit rose 8.5 pct to 1.2 mln dlrs, company said", "", "Łódź café — naïve résumé", "don't stop; it's 3:30!",
         "wheat and corn exports fell sharply in the second half of the year " * 4, "日本語 текст ελληνικά", "a\tb\nc\u00a0d\u200be"]


def check_real(s, work, folder):
    """MiniLM as sentence-transformers ships it: mean pooling, token types."""
    name = "minilm"
    tok = AutoTokenizer.from_pretrained(folder)
    plain = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    plain.no_padding(), plain.no_truncation()
    got = s.ask(op="ids", base=os.path.join(folder, "tokenizer.json"), texts=TEXTS)
    report(name, "texts whose ids differ", sum(plain.encode(t, add_special_tokens=False).ids != g for t, g in zip(TEXTS, got)), 0)
    own = os.path.join(work, "minilm")
    s.run("import", "--base", folder, "--labels", "a,b,c", "--sequence", "64", "--out", own)
    enc = tok(TEXTS, padding="max_length", truncation=True, max_length=64, return_tensors="pt")
    tokens = enc.input_ids
    model = AutoModel.from_pretrained(folder).eval()
    with torch.no_grad():
        x = model(**enc).last_hidden_state
    m = enc.attention_mask.unsqueeze(-1)
    mean = (x * m).sum(1) / m.sum(1)
    # The head is zero in a fresh checkpoint: give it one that shows the whole state.
    from safetensors.torch import load_file, save_file

    path = os.path.join(own, "adapter_model.safetensors")
    t = load_file(path)
    g = torch.Generator().manual_seed(7)
    for k in t:
        t[k] = torch.randn(t[k].shape, generator=g) * 0.1
    save_file(t, path, metadata={"format": "pt"})
    w, b = t["base_model.model.classifier.weight"], t["base_model.model.classifier.bias"]
    report(name, "logits of the untouched encoder's mean state",
           relative(s.ask(op="logits", checkpoint=own, rank=0, tokens=tokens.tolist()), mean @ w.T + b))
    check_export(s, work, name, own, Inputs.__new__(Inputs).take(tokens, 0), [1])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--starling", required=True)
    p.add_argument("--probe", required=True)
    p.add_argument("--minilm", help="folder of all-MiniLM-L6-v2")
    p.add_argument("--csv", help="write the checks to this file as well, for summary.py")
    p.add_argument("--only", default="", help="run only the cases whose names begin so (several, by commas)")
    a = p.parse_args()
    a.only = tuple(a.only.split(","))
    torch.set_num_threads(1)
    s = Starling(a.starling, a.probe)
    with tempfile.TemporaryDirectory() as work:
        os.environ["HF_HOME"] = work  # where transformers keeps the modules that it runs
        if "tokenizers".startswith(a.only):
            check_tokenizers(s, work)
        for name, config in [*configs(), *families(), *odd_configs(), *image_configs(), *tag_configs()]:
            if name.startswith(a.only):
                check_random(s, work, name, config)
        if "span-boxes".startswith(a.only):
            check_boxes(s, work)
        import masked
        import normal
        import older
        import pictures
        import pieces
        import strange
        import t5
        import targets

        masked.check_all(s, work, a.only)
        normal.check_all(s, work, a.only)
        older.check_all(s, work, a.only)
        pictures.check_all(s, work, a.only)
        pieces.check_all(s, work, a.only)
        strange.check_all(s, work, a.only)
        targets.check_all(s, work, a.only)
        t5.check(s, work, a.only)
        if "starling".startswith(a.only):
            check_own(s, work)
        if a.minilm and "minilm".startswith(a.only):
            check_real(s, work, a.minilm)
    print(f"transformers {transformers.__version__}, torch {torch.__version__}\n")
    print("| case | what | worst | |\n| --- | --- | --- | --- |")
    for r in rows:
        print("| " + " | ".join(r) + " |")
    if a.csv:
        with open(a.csv, "w", newline="") as f:
            csv.writer(f, lineterminator="\n").writerows([["case", "what", "worst", "verdict"], *rows])
    print(f"\n{len(rows) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    sys.modules["check"] = sys.modules["__main__"]
    main()
