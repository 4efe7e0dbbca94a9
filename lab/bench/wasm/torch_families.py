"""Forward passes of the benchmark's ViT, T5 and Llama in PyTorch, from the tensors of a program's manifest."""

import math

import torch
import torch.nn.functional as F


def attention(q, k, v, bias, scale, sdpa):
    """q, k, v [b, heads, n, d]; bias broadcasts over the scores, or is None."""
    if sdpa:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=scale)
    scores = (q @ k.transpose(-1, -2)) * scale
    return (scores if bias is None else scores + bias).softmax(-1) @ v


def split(x, b, heads):
    return x.view(b, -1, heads, x.shape[-1] // heads).transpose(1, 2)


def join(x):
    b, heads, n, d = x.shape
    return x.transpose(1, 2).reshape(b, n, heads * d)


class Layers:
    """Linear maps by name, with the low-rank update of those that have one."""

    def __init__(self, m):
        self.t, self.cfg, self.sdpa = m.t, m.spec["Config"], m.sdpa
        self.scale = m.spec["Method"]["alpha"] / m.spec["Rank"]
        self.heads = self.cfg["num_attention_heads"]

    def linear(self, x, name):
        y = F.linear(x, self.t[name + ".weight"], self.t.get(name + ".bias"))
        if name + ".lora_A.weight" in self.t:
            y = y + self.scale * F.linear(F.linear(x, self.t[name + ".lora_A.weight"]), self.t[name + ".lora_B.weight"])
        return y


def llama(m):
    """The loss of LlamaForCausalLM, of the places whose next token is told."""
    e, t, cfg, dec = Layers(m), m.t, m.spec["Config"], m.spec["Config"]["decoder"]
    tokens, (d, groups) = t["tokens"].long(), (dec["head_dim"], dec["num_key_value_heads"])
    b, s = tokens.shape
    eps = cfg["layer_norm_eps"]
    norm = lambda x, name: F.rms_norm(x, x.shape[-1:], t[name + ".weight"], eps)
    angle = torch.arange(s)[:, None] * dec["rope"]["rope_theta"] ** (-torch.arange(0, d, 2) / d)
    cos, sin = angle.cos(), angle.sin()

    def turned(x):  # [b, heads, s, d]
        first, second = x[..., : d // 2], x[..., d // 2 :]
        return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)

    later = torch.full((s, s), float("-inf")).triu(1)
    x = F.embedding(tokens, t["embed_tokens.weight"])
    for i in range(cfg["num_hidden_layers"]):
        p = f"layers.{i}."
        y = norm(x, p + "input_layernorm")
        q, k = turned(split(e.linear(y, p + "self_attn.q_proj"), b, e.heads)), turned(split(e.linear(y, p + "self_attn.k_proj"), b, groups))
        v = split(e.linear(y, p + "self_attn.v_proj"), b, groups)
        if e.sdpa:
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        else:
            wide = lambda u: u.repeat_interleave(e.heads // groups, 1)
            a = attention(q, wide(k), wide(v), later, d**-0.5, False)
        x = x + e.linear(join(a), p + "self_attn.o_proj")
        y = norm(x, p + "post_attention_layernorm")
        x = x + e.linear(F.silu(e.linear(y, p + "mlp.gate_proj")) * e.linear(y, p + "mlp.up_proj"), p + "mlp.down_proj")
    x = norm(x, "norm").gather(1, t["places"].long()[..., None].expand(-1, -1, x.shape[-1]))
    ce = F.cross_entropy(F.linear(x, t["embed_tokens.weight"]).flatten(0, 1), t["labels"].long().flatten(), reduction="none")
    w = t["weights"].flatten()
    return (ce * w).sum() / (w.sum() + 1e-9)


def vit(m):
    """The loss of ViTForImageClassification."""
    e, t, cfg = Layers(m), m.t, m.spec["Config"]
    h, b = cfg["hidden_size"], t["patches"].shape[0]
    norm = lambda x, name: F.layer_norm(x, (h,), t[name + ".weight"], t[name + ".bias"], cfg["layer_norm_eps"])
    kernel = t["embeddings.patch_embeddings.projection.weight"].view(h, -1)
    x = F.linear(t["patches"], kernel, t["embeddings.patch_embeddings.projection.bias"])
    x = torch.cat([t["embeddings.cls_token"].expand(b, 1, h), x], 1) + t["embeddings.position_embeddings"]
    for i in range(cfg["num_hidden_layers"]):
        p = f"encoder.layer.{i}."
        y = norm(x, p + "layernorm_before")
        q, k, v = (split(e.linear(y, p + "attention.attention." + n), b, e.heads) for n in ("query", "key", "value"))
        a = join(attention(q, k, v, None, (h // e.heads) ** -0.5, e.sdpa))
        x = x + e.linear(a, p + "attention.output.dense")
        f = F.gelu(e.linear(norm(x, p + "layernorm_after"), p + "intermediate.dense"))
        x = x + e.linear(f, p + "output.dense")
    logits = e.linear(norm(x[:, 0], "layernorm"), "classifier")
    ce = F.cross_entropy(logits, t["labels"].long(), reduction="none")
    return (ce * t["weights"]).sum() / (t["weights"].sum() + 1e-9)


def buckets(rows, columns, bidirectional, count, most):
    """T5Attention._relative_position_bucket of j - i."""
    at = torch.arange(columns)[None, :] - torch.arange(rows)[:, None]
    out = torch.zeros_like(at)
    if bidirectional:
        count //= 2
        out += (at > 0).long() * count
        at = at.abs()
    else:
        at = -torch.minimum(at, torch.zeros_like(at))
    exact = count // 2
    far = exact + (torch.log(at.float() / exact) / math.log(most / exact) * (count - exact)).long()
    return out + torch.where(at < exact, at, torch.minimum(far, torch.full_like(far, count - 1)))


def t5(m):
    """The loss of T5ForConditionalGeneration on answers."""
    e, t, cfg = Layers(m), m.t, m.spec["Config"]
    own = cfg["t5"]

    def norm(x, name):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + cfg["layer_norm_eps"]) * t[name]

    def attend(x, memory, name, bias):
        b = x.shape[0]
        q, k, v = split(e.linear(x, name + ".q"), b, e.heads), split(e.linear(memory, name + ".k"), b, e.heads), split(e.linear(memory, name + ".v"), b, e.heads)
        return e.linear(join(attention(q, k, v, bias, 1.0, e.sdpa)), name + ".o")

    def feed(x, p):
        y = norm(x, p + "layer_norm.weight") if p + "layer_norm.weight" in t else x
        return x + e.linear(F.relu(e.linear(y, p + "DenseReluDense.wi")), p + "DenseReluDense.wo")

    def near(side, rows, bidirectional):
        table = t[f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"]
        at = buckets(rows, rows, bidirectional, own["relative_attention_num_buckets"], own["relative_attention_max_distance"])
        return table[at].permute(2, 0, 1)[None]

    tokens, answer = t["tokens"].long(), t["decoder_tokens"].long()
    x, bias = F.embedding(tokens, t["shared.weight"]), near("encoder", tokens.shape[1], True)
    for i in range(cfg["num_hidden_layers"]):
        p = f"encoder.block.{i}.layer."
        y = norm(x, p + "0.layer_norm.weight")
        x = feed(x + attend(y, y, p + "0.SelfAttention", bias), p + "1.")
    memory = norm(x, "encoder.final_layer_norm.weight")
    n = answer.shape[1]
    x = F.embedding(answer, t["shared.weight"])
    bias = near("decoder", n, False) + torch.full((n, n), -1e9).triu(1)
    for i in range(own["num_decoder_layers"]):
        p = f"decoder.block.{i}.layer."
        y = norm(x, p + "0.layer_norm.weight")
        x = x + attend(y, y, p + "0.SelfAttention", bias)
        x = x + attend(norm(x, p + "1.layer_norm.weight"), memory, p + "1.EncDecAttention", None)
        x = feed(x, p + "2.")
    x = norm(x, "decoder.final_layer_norm.weight")
    if own["scale_decoder_outputs"]:
        x = x * cfg["hidden_size"] ** -0.5
    logits = F.linear(x, t["shared.weight"])
    ce = F.cross_entropy(logits.flatten(0, 1), t["labels"].long().flatten(), reduction="none")
    w = t["weights"].flatten()
    return (ce * w).sum() / (w.sum() + 1e-9)
