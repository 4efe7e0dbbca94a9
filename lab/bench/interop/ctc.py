"""Writes model/nn/testdata/ctc: PyTorch's ctc_loss and its gradient over lengths, repeats, padding and other blanks; tiny
encoders of recordings with a head for CTC as transformers saves them, with the logits that it computes, the loss and the
gradients of LoRA (PEFT) and of the head; and what Wav2Vec2CTCTokenizer makes of texts and of frames. Go's tests hold
Starling to them where there is no PyTorch. Run by hand: python ctc.py FOLDER"""

import json, os, sys

import torch
from peft import LoraConfig, get_peft_model
from transformers import HubertConfig, HubertForCTC, Wav2Vec2Config, Wav2Vec2CTCTokenizer, Wav2Vec2FeatureExtractor, Wav2Vec2ForCTC

torch.manual_seed(1)
OUT = sys.argv[1]
rounded = lambda t, n=9: [round(v, n) for v in t.flatten().tolist()]


def losses():
    """In float64, of scores that float32 holds: frames, characters, blank and texts of each batch."""
    out = []
    for frames, characters, blank, lengths, texts, scale in [
        (12, 5, 0, [12, 9, 4], [[1, 2, 2, 3], [4], [1, 1]], 1.0),  # repeats, one character, padding
        (7, 4, 3, [7, 7, 5, 3], [[0, 0, 0, 0], [1, 2, 0, 1], [2], [0, 1, 2]], 3.0),  # as many frames as there must be; the blank is last
        (40, 12, 2, [40, 31], [[1, 1, 4, 5, 5, 6, 7, 0, 11, 11, 3], [8, 9, 8, 9, 8]], 8.0),  # scores that speak clearly, mostly against the text
        (1, 3, 0, [1, 1], [[1], [2]], 1.0),  # a single frame
        (120, 9, 0, [120, 77], [[1 + (7 * i * i + i) % 8 for i in range(40)], [5] * 30], 2.0),  # long
    ]:
        scores = (torch.randn(len(lengths), frames, characters) * scale).to(torch.float32).to(torch.float64).requires_grad_()
        log_probs = torch.log_softmax(scores, -1).transpose(0, 1)
        loss = torch.nn.functional.ctc_loss(log_probs, torch.tensor([c for t in texts for c in t]), torch.tensor(lengths),
                                            torch.tensor([len(t) for t in texts]), blank=blank, reduction="none")
        loss.sum().backward()
        out.append({"frames": frames, "characters": characters, "blank": blank, "lengths": lengths, "texts": texts,
                    "scores": rounded(scores), "losses": loss.tolist(), "gradient": rounded(scores.grad)})
    with open(os.path.join(OUT, "losses.json"), "w") as f:
        json.dump(out, f)


LETTERS = ["<pad>", "<s>", "</s>", "<unk>", "|", "E", "N", "O", "T"]


def tokenizer(folder, letters, **keys):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "vocab.json"), "w") as f:
        json.dump({c: i for i, c in enumerate(letters)}, f)
    t = Wav2Vec2CTCTokenizer(os.path.join(folder, "vocab.json"), **keys)
    t.save_pretrained(folder)
    for name in ("special_tokens_map.json", "added_tokens.json"):  # which say nothing else
        if os.path.exists(os.path.join(folder, name)):
            os.remove(os.path.join(folder, name))
    return t


def texts():
    out = {}
    for name, letters, keys in [
        ("capitals", LETTERS, {}), ("folded", LETTERS, {"do_lower_case": True}),
        ("marked", ["a", "b", "'", "_", "é", "[PAD]", "[UNK]"], {"pad_token": "[PAD]", "unk_token": "[UNK]", "word_delimiter_token": "_"}),
    ]:
        t = tokenizer(os.path.join(OUT, "tokenizers", name), letters, **keys)
        n = len(letters)
        encoded = {s: t(s).input_ids for s in ["ONE TEN", "one ten", "TOO  NOT", "a b'é", "", "ab_b", "x!"]}
        g = torch.Generator().manual_seed(3)
        frames = [torch.randint(0, n, (12,), generator=g).repeat_interleave(2).tolist() for _ in range(6)]
        out[name] = {"encoded": encoded, "frames": frames, "decoded": [t.decode(f) for f in frames],
                     "spelt": [t.decode(f, group_tokens=False) for f in frames]}
    with open(os.path.join(OUT, "texts.json"), "w") as f:
        json.dump(out, f, ensure_ascii=False)


FRAMES, RATE = 11, 8000
hubert, wav2vec2 = (HubertConfig, HubertForCTC), (Wav2Vec2Config, Wav2Vec2ForCTC)
small = dict(hidden_size=12, num_hidden_layers=2, num_attention_heads=2, intermediate_size=20, mask_time_prob=0.0, layerdrop=0.0,
             vocab_size=len(LETTERS), pad_token_id=0, final_dropout=0.0)
short = dict(conv_dim=[6, 8, 5], conv_kernel=[10, 3, 2], conv_stride=[5, 2, 2], num_conv_pos_embeddings=6, num_conv_pos_embedding_groups=3)
odd = dict(conv_dim=[5, 6], conv_kernel=[7, 2], conv_stride=[3, 3], num_conv_pos_embeddings=128, num_conv_pos_embedding_groups=4)
deep = dict(conv_dim=[4, 6, 4, 6, 4, 6, 4], conv_kernel=[10, 3, 3, 3, 3, 2, 2], conv_stride=[5, 2, 2, 2, 2, 2, 2], num_conv_pos_embeddings=17, num_conv_pos_embedding_groups=2)
cases = {
    "hubert": (hubert, dict(short, feat_proj_layer_norm=False), False),
    "hubert-deep": (hubert, dict(deep, feat_extract_norm="layer", do_stable_layer_norm=True, conv_bias=True, ctc_loss_reduction="mean"), True),
    "wav2vec2": (wav2vec2, dict(short, feat_extract_norm="layer", conv_bias=True, ctc_loss_reduction="mean"), True),
    "wav2vec2-odd": (wav2vec2, dict(odd, vocab_size=len(LETTERS) + 2), False),  # two outputs that no character has
}


def models():
    for name, ((Config, Model), keys, masked) in cases.items():
        torch.manual_seed(1)
        model = Model(Config(**(small | keys))).eval()
        g = torch.Generator().manual_seed(2)
        with torch.no_grad():
            for p in model.parameters():
                p.add_(torch.randn(p.shape, generator=g) * 0.15)
        samples = FRAMES
        for k, s in zip(reversed(keys["conv_kernel"]), reversed(keys["conv_stride"])):
            samples = (samples - 1) * s + k
        extractor = Wav2Vec2FeatureExtractor(sampling_rate=RATE, return_attention_mask=masked, do_normalize=True)
        sounds = [(torch.randn(samples - cut * samples // 5, generator=g) * 0.1 + 0.02).round(decimals=3) for cut in (0, 1, 2)]
        inputs = extractor([s.numpy() for s in sounds], sampling_rate=RATE, padding="max_length", max_length=samples, return_tensors="pt")
        folder = os.path.join(OUT, name)
        model.save_pretrained(folder)
        extractor.save_pretrained(folder)
        t = tokenizer(folder, LETTERS)
        texts = ["TEN ONE"[:6], "TOO", "E"]
        labels = torch.full((3, 6), -100)
        for i, s in enumerate(texts):
            ids = t(s).input_ids
            labels[i, :len(ids)] = torch.tensor(ids)
        with torch.no_grad():
            out = model(**inputs, labels=labels)
        lengths = [FRAMES] * 3
        if masked:
            lengths = model._get_feat_extract_output_lengths(inputs.attention_mask.sum(-1)).tolist()

        model = get_peft_model(model, LoraConfig(r=2, lora_alpha=3, target_modules=["q_proj", "v_proj"], modules_to_save=["lm_head"]))
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
        loss = model(**inputs, labels=labels).loss
        if keys.get("ctc_loss_reduction", "sum") == "sum":
            loss = loss / len(texts)  # which does not grow with the batch
        loss.backward()
        with open(os.path.join(folder, "expected.json"), "w") as f:
            json.dump({"sounds": [[round(v, 3) for v in s.tolist()] for s in sounds], "texts": texts, "lengths": lengths,
                       "logits": [rounded(l[:n], 7) for l, n in zip(out.logits, lengths)],
                       "loss": loss.item(), "values": {n: rounded(p) for n, p in trained.items()},
                       "gradients": {n: rounded(p.grad) for n, p in trained.items()}}, f)


os.makedirs(OUT, exist_ok=True)
losses()
texts()
models()
