"""bitsandbytes on the vectors that quant's tests use, and how fast it is.

    nf4.py golden      print testdata/bitsandbytes.json: codes, scales and nested
                       scales of a fixed vector, as bitsandbytes makes them
    nf4.py time        GB/s of float32, one thread
"""

import hashlib
import json
import struct
import sys
import time

import bitsandbytes
import bitsandbytes.functional as F
import torch

torch.set_num_threads(1)


def vector(n):
    """n values, exact in float32: uniform, in blocks whose scales differ."""
    x, s = [], 12345
    for i in range(n):
        s = (s * 1664525 + 1013904223) % 2**32
        x.append(((s >> 8) / 2**24 - 0.5) * 2.0 ** ((i // 64) * 7 % 11 - 8) * (1 + (i // 64) % 5 / 8))
    return torch.tensor(x, dtype=torch.float32)


def sha(t):
    return hashlib.sha256(t.contiguous().numpy().tobytes()).hexdigest()


def bits(t):
    return [struct.unpack("<I", struct.pack("<f", v))[0] for v in t.reshape(-1).tolist()]


def golden():
    cases = []
    for n in (64, 1000, 64 * 256, 64 * 300 + 16):
        x = vector(n)
        q, s = F.quantize_4bit(x, blocksize=64, quant_type="nf4")
        qn, sn = F.quantize_4bit(x, blocksize=64, quant_type="nf4", compress_statistics=True)
        assert torch.equal(q, qn)
        cases.append({
            "n": n, "input_sha256": sha(x), "codes_sha256": sha(q), "absmax_sha256": sha(s.absmax),
            "values_sha256": sha(F.dequantize_4bit(q, s)),
            "nested_codes_sha256": sha(sn.absmax), "nested_absmax_bits": bits(sn.state2.absmax), "offset_bits": bits(sn.offset)[0],
            "nested_values_bits": bits(F.dequantize_4bit(qn, sn).reshape(-1)[::97]),
        })
    print(json.dumps({"source": f"bitsandbytes {bitsandbytes.__version__}, torch {torch.__version__}, CPU; vector(n) of lab/bench/quant/nf4.py",
                      "cases": cases}, indent=1))


def rate(name, x, f):
    f()
    start, n = time.process_time(), 0
    while time.process_time() - start < 1:
        f()
        n += 1
    print(f"{name}\t{x.numel() * 4 * n / (time.process_time() - start) / 1e9:.3f}")


def timing():
    x = torch.randn(1 << 18)
    q, s = F.quantize_4bit(x, blocksize=64, quant_type="nf4")
    rate("encode", x, lambda: F.quantize_4bit(x, blocksize=64, quant_type="nf4"))
    rate("decode", x, lambda: F.dequantize_4bit(q, s))
    rate("encode-dq", x, lambda: F.quantize_4bit(x, blocksize=64, quant_type="nf4", compress_statistics=True))


{"golden": golden, "time": timing}[sys.argv[1]]()
