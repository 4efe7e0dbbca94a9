"""T5 against transformers: logits of given answers, gradients, greedy answers, adapters."""

import json, os, subprocess, sys

import torch
from check import relative, report, randomize
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import AutoModelForSeq2SeqLM, BeitConfig, BeitModel, T5Config, T5ForConditionalGeneration

ANSWER = 32  # tokens of an answer, as an import has them


def unigram(folder, vocab):
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)] + [("\u2581" * (i % 2) + f"w{i}", -1.0 - i / 100) for i in range(vocab - 3)]
    tok = Tokenizer(models.Unigram(pieces, unk_id=2))
    tok.pre_tokenizer = pre_tokenizers.Metaspace()
    tok.decoder = decoders.Metaspace()
    tok.add_special_tokens(["<pad>", "</s>", "<unk>"])
    tok.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    tok.save(os.path.join(folder, "tokenizer.json"))


def configs():
    base = dict(vocab_size=120, pad_token_id=0, eos_token_id=1, decoder_start_token_id=0, dropout_rate=0.0)
    yield "t5-0", T5Config(**base, d_model=32, d_kv=8, d_ff=48, num_layers=3, num_decoder_layers=2, num_heads=4), "tied", torch.float32
    yield "t5-1", T5Config(**base, d_model=24, d_kv=16, d_ff=40, num_layers=3, num_heads=2, feed_forward_proj="gated-gelu",
                           tie_word_embeddings=False), "own", torch.float32
    yield "t5-2", T5Config(**base, d_model=48, d_kv=12, d_ff=64, num_layers=1, num_decoder_layers=1, num_heads=3, feed_forward_proj="gated-gelu",
                           relative_attention_num_buckets=8, relative_attention_max_distance=12), "tied", torch.bfloat16
    yield "t5-3", T5Config(**base, d_model=32, d_kv=4, d_ff=32, num_layers=2, num_heads=8, layer_norm_epsilon=1e-5), "tied", torch.float16
    yield "t5-4", T5Config(**base, d_model=20, d_kv=7, d_ff=33, num_layers=1, num_heads=1, feed_forward_proj="gated-silu",
                           tie_word_embeddings=False), "own", torch.float32
    yield "t5-5", T5Config(**base, d_model=18, d_kv=10, d_ff=27, num_layers=2, num_decoder_layers=1, num_heads=3, feed_forward_proj="quick_gelu"), "tied", torch.float32
    yield "t5-6", T5Config(**base, d_model=22, d_kv=5, d_ff=26, num_layers=2, num_decoder_layers=1, num_heads=2, feed_forward_proj="gated-gelu_python"), "tied", torch.float32


def batch(config, rows=4, seq=28):
    g = torch.Generator().manual_seed(0)
    tokens = torch.randint(3, config.vocab_size, (rows, seq), generator=g)
    targets = torch.randint(3, config.vocab_size, (rows, ANSWER), generator=g)
    for r in range(rows):
        tokens[r, seq - 6 * r:] = config.pad_token_id
        targets[r, ANSWER - 7 * r - 2:] = -100
    decoder = torch.cat([torch.full((rows, 1), config.decoder_start_token_id), targets[:, :-1].clamp_min(0)], 1)
    return tokens, decoder, targets


def forward(model, tokens, decoder, **more):
    model.eval()
    return model(input_ids=tokens, attention_mask=tokens.ne(0).long(), decoder_input_ids=decoder, **more)


def logits_of(model, tokens, decoder, **more):
    with torch.no_grad():
        return forward(model, tokens, decoder, **more).logits


def randomized(config, head):
    torch.manual_seed(1)
    model = T5ForConditionalGeneration(config)
    if head == "own":
        model.lm_head.weight = torch.nn.Parameter(torch.randn(config.vocab_size, config.d_model) * 0.3)
    # T5's own initialisation has queries so small that no bias is felt, and embeddings so large that a tied head
    # repeats its last token for ever.
    g = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for n, p in model.named_parameters():
            if n == "shared.weight":
                p.mul_(0.05)
            elif "relative" in n:
                p.add_(torch.randn(p.shape, generator=g) * 0.5)
            elif p.dim() > 1 and n != "lm_head.weight":
                p.copy_(torch.randn(p.shape, generator=g) * (0.5 if ".q." in n or ".k." in n else 1.2) / p.shape[1] ** 0.5)
            else:
                p.add_(torch.randn(p.shape, generator=g) * 0.1)
        if head == "tied":
            model.decoder.final_layer_norm.weight.mul_(4)
    return model


def greedy(model, tokens, end=1, **more):
    model.eval()
    out = model.generate(input_ids=tokens, attention_mask=tokens.ne(0).long(), max_new_tokens=ANSWER, do_sample=False, num_beams=1,
                         output_scores=True, return_dict_in_generate=True, **more)
    answers = []
    for r in range(len(tokens)):
        ids, p = [], 1.0
        for t, scores in enumerate(out.scores):
            i = int(out.sequences[r, t + 1])
            if i == end:
                break
            ids.append(i)
            p *= float(scores[r].double().softmax(-1)[i])
        answers.append((ids, p))
    return answers


def check_answers(s, name, checkpoint, rank, model, tokens, **more):
    want = greedy(model, tokens, **{k: v for k, v in more.items()})
    rows = {k: v.tolist() for k, v in more.items()}
    print(f"  {name}: {want[0]}", file=sys.stderr)
    report(name, "answers so dull that they show nothing", int(len({i for a, _ in want for i in a}) < 4), 0)
    for native in (False, True):
        got = s.ask(op="answers", checkpoint=checkpoint, rank=rank, tokens=tokens.tolist(), native=native, **rows)
        wrong = sum((g["Tokens"] or []) != w[0] for g, w in zip(got, want))
        where = "natively" if native else "by the compiled programs"
        report(name, f"greedy answers of {len(want)} that differ, {where}", wrong, 0)
        report(name, f"their confidence, {where}", max(abs(g["Probability"] - w[1]) / max(w[1], 1e-300) for g, w in zip(got, want)), 1e-3)


def check_gradients(s, name, what, grads, named, tolerance=1e-4):
    grads.pop("loss")
    whole = max(p.grad.abs().max() for _, p in named if p.grad is not None)
    worst = 0.0
    for key, p in named:
        for k in (key, key + ".delta"):
            if k in grads and p.grad is not None:
                g = torch.tensor(grads.pop(k))
                worst = max(worst, float((g - p.grad.flatten()).abs().max() / p.grad.abs().max().clamp_min(1e-3 * whole)))
    report(name, f"{what}: tensors without a gradient in autograd", len(grads), 0)
    report(name, f"gradients of {what}", worst, tolerance)


def check_one(s, work, name, config, head, dtype):
    model = randomized(config, head).to(dtype)
    folder = os.path.join(work, name)
    model.save_pretrained(folder, max_shard_size="40KB" if name.endswith("1") else "5GB")
    unigram(folder, config.vocab_size)
    model = model.float()
    tokens, decoder, targets = batch(config)
    ask = dict(tokens=tokens.tolist(), decoder=decoder.tolist())
    own = os.path.join(work, name + "-own")
    s.run("import", "--base", folder, "--sequence", str(tokens.shape[1]), "--out", own)
    want = logits_of(model, tokens, decoder)
    report(name, f"logits of the checkpoint ({head} head, {str(dtype)[6:]})", relative(s.ask(op="logits", checkpoint=own, rank=0, **ask), want.flatten(1)))
    check_answers(s, name, own, 0, model, tokens)

    model.zero_grad()
    forward(model, tokens, decoder, labels=targets).loss.backward()
    grads = s.ask(op="gradient", checkpoint=own, rank=0, method="full", targets=targets.tolist(), **ask)
    check_gradients(s, name, "full fine-tuning", grads, list(model.named_parameters()))

    targets_of = ["q", "v"] if not name.endswith("2") else ["q", "k", "v", "o", "wi_0", "wi_1", "wo"]
    lora = get_peft_model(model, LoraConfig(task_type="SEQ_2_SEQ_LM", r=4, lora_alpha=6, target_modules=targets_of))
    g = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for n, p in lora.named_parameters():
            if "lora_" in n:
                p.copy_(torch.randn(p.shape, generator=g) * 0.15)
    adapter, taken = os.path.join(work, name + "-peft"), os.path.join(work, name + "-taken")
    lora.save_pretrained(adapter)
    s.run("import", "--base", folder, "--adapter", adapter, "--sequence", str(tokens.shape[1]), "--out", taken)
    report(name, "logits of a PEFT adapter", relative(s.ask(op="logits", checkpoint=taken, rank=4, **ask), logits_of(lora, tokens, decoder).flatten(1)))
    check_answers(s, name + " with LoRA", taken, 4, lora, tokens)
    lora.zero_grad()
    forward(lora, tokens, decoder, labels=targets).loss.backward()
    grads = s.ask(op="gradient", checkpoint=taken, rank=4, targets=targets.tolist(), **ask)
    named = [(n.removeprefix("base_model.model.").replace(".default", ""), p) for n, p in lora.named_parameters() if p.grad is not None]
    check_gradients(s, name, "LoRA", grads, named)
    check_exports(s, work, name, taken, [1, 3, 4], ask, tokens, decoder)


def check_exports(s, work, name, checkpoint, ranks, ask, tokens, decoder, **more):
    worst = {"peft": 0.0, "merged": 0.0}
    for rank in ranks:
        want = s.ask(op="logits", checkpoint=checkpoint, rank=rank, **ask)
        for form in worst:
            out = os.path.join(work, f"{name}-{form}-{rank}")
            s.run("export", "--checkpoint", checkpoint, "--rank", str(rank), "--format", form, "--out", out)
            where = os.path.join(out, "base") if form == "peft" else out
            model = AutoModelForSeq2SeqLM.from_pretrained(where, trust_remote_code=True, dtype=torch.float32)
            if form == "peft":
                model = PeftModel.from_pretrained(model, out)
            worst[form] = max(worst[form], relative(logits_of(model, tokens, decoder, **more).flatten(1), want))
    report(name, f"exported for PEFT at ranks {ranks}", worst["peft"])
    report(name, f"exported merged at ranks {ranks}", worst["merged"])
    card = open(os.path.join(work, f"{name}-merged-{ranks[0]}", "README.md")).read()
    code = card.split("```python\n")[1].split("```")[0]
    p = subprocess.run([sys.executable, "-c", code], cwd=os.path.join(work, f"{name}-merged-{ranks[0]}"), capture_output=True, text=True)
    report(name, f"model card's lines fail{': ' + p.stderr[-300:] if p.returncode else ''}", p.returncode, 0)


def check_boxes(s, work, name, page=None, patched=None):
    """A T5 that reads boxes, and a page by its patches or a frozen BEiT: the module that Starling ships beside its folders is the
    reference, itself of transformers' T5 and BEiT and torch's layers."""
    _, config, _, _ = next(configs())
    seed = os.path.join(work, name + "-seed")
    inner = randomized(config, "tied")
    tensors = {n: p.detach() for n, p in inner.state_dict().items() if not n.endswith("embed_tokens.weight") and n != "lm_head.weight"}
    g = torch.Generator().manual_seed(8)
    h, rows = config.d_model, 101
    shapes = {"spatial_emb_matcher.weight": (h, 4 if patched else h), "spatial_emb_matcher.bias": (h,)}
    if not patched:
        shapes |= {"x_position_embeddings.weight": (rows, h), "y_position_embeddings.weight": (rows, h), "LayerNorm.weight": (h,), "LayerNorm.bias": (h,)}
    shapes = {"spatial_embedding." + n: shape for n, shape in shapes.items()}
    if patched:
        p = patched["patch_size"]
        shapes |= {"visual_embedding.patch_embed.proj.weight": (h, patched["num_channels"], *p), "visual_embedding.patch_embed.proj.bias": (h,)}
    if page:
        shapes |= {"visual_embedding.visual_emb_matcher.weight": (h, page.hidden_size), "visual_embedding.visual_emb_matcher.bias": (h,)}
        encoder = BeitModel(page, add_pooling_layer=False)
        with torch.no_grad():
            for p in encoder.parameters():
                p.add_(torch.randn(p.shape, generator=g) * 0.2)
        encoder.save_pretrained(os.path.join(work, name + "-page"))
        tensors |= {"visual_embedding.image_model." + n: p for n, p in load_file(os.path.join(work, name + "-page", "model.safetensors")).items()}
    for n, shape in shapes.items():
        tensors[n] = torch.randn(shape, generator=g) * 0.4
    os.makedirs(seed)
    save_file(tensors, os.path.join(seed, "model.safetensors"), metadata={"format": "pt"})
    js = {**config.to_dict(), "max_2d_position_embeddings": rows, **({"visual_config": page.to_dict()} if page else {}),
          **({"linear_boxes": True, "patch_config": patched} if patched else {})}
    json.dump(js, open(os.path.join(seed, "config.json"), "w"))
    unigram(seed, config.vocab_size)
    tokens, decoder, targets = batch(config)
    boxes = torch.randint(0, rows, (*tokens.shape, 4), generator=g)
    ask, more = {}, dict(boxes=boxes)
    if page or patched:
        look = patched or page.to_dict()
        both = lambda n: (n, n) if isinstance(n, int) else n
        more["patches"] = torch.randn(len(tokens), look["num_channels"], *both(look["image_size"]), generator=g)
        cut = torch.nn.functional.unfold(more["patches"], look["patch_size"], stride=look["patch_size"]).transpose(1, 2)
        ask["patches"] = cut.flatten(1).tolist()
    own = os.path.join(work, name + "-own")
    s.run("import", "--base", seed, "--sequence", str(tokens.shape[1]), "--out", own)
    model = AutoModelForSeq2SeqLM.from_pretrained(os.path.join(own, "base"), trust_remote_code=True)
    there = load_file(os.path.join(own, "base", "model.safetensors"))
    missing = [n for n, p in tensors.items() if not torch.equal(p, there.get("starling." + n, there.get(n, p + 1)))]
    report(name, f"tensors that the exported folder changes{': ' + missing[0] if missing else ''}", len(missing), 0)
    ask |= dict(tokens=tokens.tolist(), decoder=decoder.tolist(), boxes=boxes.tolist())
    report(name, "logits", relative(s.ask(op="logits", checkpoint=own, rank=0, **ask), logits_of(model, tokens, decoder, **more).flatten(1)))
    want = greedy(model, tokens, **more)
    got = s.ask(op="answers", checkpoint=own, rank=0, **{k: v for k, v in ask.items() if k != "decoder"})
    report(name, "greedy answers that differ", sum((g["Tokens"] or []) != w[0] for g, w in zip(got, want)), 0)
    model.zero_grad()
    forward(model, tokens, decoder, labels=targets, **more).loss.backward()
    grads = s.ask(op="gradient", checkpoint=own, rank=0, method="full", targets=targets.tolist(), **ask)
    check_gradients(s, name, "full fine-tuning", grads, [(n.removeprefix("starling."), p) for n, p in model.named_parameters()])
    check_exports(s, work, name, own, [1], ask, tokens, decoder, **more)


def check(s, work, only):
    for name, config, head, dtype in configs():
        if name.startswith(only):
            check_one(s, work, name, config, head, dtype)
    beit = BeitConfig(hidden_size=20, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24, image_size=12, patch_size=4,
                      use_absolute_position_embeddings=True, use_relative_position_bias=True, hidden_dropout_prob=0.0, drop_path_rate=0.0)
    wide = dict(image_size=[12, 15], patch_size=[3, 5], num_channels=3, overlap=False, unplaced=False, first=False)
    for name, look in {"t5-boxes": {}, "t5-page": {"page": beit}, "t5-patches": {"patched": wide},
                       "t5-overlap": {"patched": {**wide, "overlap": True, "unplaced": True, "first": True}}}.items():
        if name.startswith(only):
            check_boxes(s, work, name, **look)
