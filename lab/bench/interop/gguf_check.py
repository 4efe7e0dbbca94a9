"""Files of model/gguf against gguf-py, llama.cpp's own converters and its logits: python gguf_check.py FOLDER [LLAMA.CPP [libllama.so]],
where FOLDER is what TestWritesForOthers wrote. Needs gguf, torch, transformers and peft."""

import ctypes
import subprocess
import sys
from pathlib import Path

import numpy as np
from gguf import GGUFReader, dequantize

PROMPT = [1, 504, 2767, 28, 357, 1096, 253, 2443, 282, 260, 905, 30, 216, 33, 34, 35]


def tensors(path):
    r = GGUFReader(path)
    return r, {t.name: t for t in r.tensors}


def fields(reader):
    return {k: f.contents() for k, f in reader.fields.items() if not k.startswith("GGUF.")}


def against_converter(folder, llama, kind):
    theirs = folder / f"theirs-{kind}.gguf"
    if not theirs.exists():
        subprocess.run([sys.executable, str(llama / "convert_hf_to_gguf.py"), str(folder / "merged"), "--outtype", kind, "--outfile", str(theirs)], check=True, capture_output=True)
    (a, ours), (b, want) = tensors(folder / f"{kind}.gguf"), tensors(theirs)
    assert ours.keys() == want.keys(), ours.keys() ^ want.keys()
    differ = [n for n in ours if ours[n].tensor_type != want[n].tensor_type or list(ours[n].shape) != list(want[n].shape) or not np.array_equal(ours[n].data, want[n].data)]
    print(f"{kind}: {len(ours)} tensors, {len(differ)} differ {differ[:4]}")
    a, b = fields(a), fields(b)
    for k in sorted(a.keys() | b.keys()):
        if a.get(k) != b.get(k):
            print("  ", k, str(a.get(k))[:60], "| theirs:", str(b.get(k))[:60])


def their_logits(folder):
    import torch
    from transformers import AutoModelForCausalLM

    m = AutoModelForCausalLM.from_pretrained(folder / "merged", dtype=torch.float32)
    with torch.no_grad():
        return m(torch.tensor([PROMPT])).logits[0].numpy()


def llama_logits(library, path, adapter=None):
    sys.path.insert(0, str(library))
    import llama_cpp as c

    c.llama_backend_init()
    p = c.llama_model_default_params()
    model = c.llama_model_load_from_file(str(path).encode(), p)
    q = c.llama_context_default_params()
    q.n_ctx, q.n_batch, q.n_threads, q.n_threads_batch, q.type_k, q.type_v, q.flash_attn_type = 64, 64, 1, 1, 0, 0, 0
    context = c.llama_init_from_model(model, q)
    if adapter:
        a = c.llama_adapter_lora_init(model, str(adapter).encode())
        assert a, "the adapter is refused"
        adapters, scales = (type(a) * 1)(a), (ctypes.c_float * 1)(1.0)
        assert c.llama_set_adapters_lora(context, adapters, 1, scales) == 0
    batch = c.llama_batch_init(len(PROMPT), 0, 1)
    batch.n_tokens = len(PROMPT)
    for i, t in enumerate(PROMPT):
        batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.logits[i] = t, i, 1, 1
        batch.seq_id[i][0] = 0
    assert c.llama_decode(context, batch) == 0
    n = c.llama_vocab_n_tokens(c.llama_model_get_vocab(model))
    return np.array([np.ctypeslib.as_array(c.llama_get_logits_ith(context, i), (n,)).copy() for i in range(len(PROMPT))])


def main():
    folder = Path(sys.argv[1])
    if len(sys.argv) > 2:
        for kind in ("f16", "q8_0"):
            against_converter(folder, Path(sys.argv[2]), kind)
    reader, adapter = tensors(folder / "adapter.gguf")
    print("adapter:", len(adapter), {k: v for k, v in fields(reader).items()})
    if len(sys.argv) > 3:
        want = their_logits(folder)
        for kind, lora in (("f32", None), ("f16", None), ("q8_0", None), ("base-f16", folder / "adapter.gguf")):
            if not (folder / f"{kind}.gguf").exists():
                continue
            got = llama_logits(Path(sys.argv[3]), folder / f"{kind}.gguf", lora)
            print(f"{kind}: logits differ by {np.abs(got - want).max():.2g} of {np.abs(want).max():.3g}, the likeliest token in {(got.argmax(1) != want.argmax(1)).sum()} of {len(want)} places")


main()
