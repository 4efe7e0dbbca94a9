"""Writes data/audio/testdata/scipy.json: WAV files as scipy.io.wavfile reads them, and recordings at other rates as
scipy.signal.resample_poly makes them. Needs scipy; SEED fixes every byte.

    python lab/bench/interop/sounds.py data/audio/testdata/scipy.json
"""
import base64
import io
import json
import struct
import sys

import numpy as np
import scipy
from scipy.io import wavfile
from scipy.signal import resample_poly

SEED = 28
rng = np.random.default_rng(SEED)


def file_of(kind, bits, channels, body, rate=8000):
    block = channels * bits // 8
    fmt = struct.pack("<HHIIHH", kind, channels, rate, rate * block, block, bits)
    if bits == 24:  # as the extensible format asks
        guid = struct.pack("<H", kind) + bytes.fromhex("000000001000800000aa00389b71")
        fmt = struct.pack("<HHIIHH", 0xFFFE, channels, rate, rate * block, block, bits) + struct.pack("<HHI", 22, bits, 0) + guid
    chunks = b"fmt " + struct.pack("<I", len(fmt)) + fmt + b"LIST" + struct.pack("<I", 3) + b"abc\0"
    chunks += b"data" + struct.pack("<I", len(body)) + body
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks


files = []
for kind, bits, channels in [(1, 8, 1), (1, 16, 2), (1, 24, 3), (1, 32, 1), (3, 32, 2), (3, 64, 1)]:
    if kind == 3:
        body = rng.uniform(-1, 1, 12 * channels).astype(f"<f{bits // 8}").tobytes()
    else:
        body = rng.integers(0, 256, 12 * channels * bits // 8, dtype=np.uint8).tobytes()
    data = file_of(kind, bits, channels, body)
    rate, got = wavfile.read(io.BytesIO(data))
    x = got.astype(np.float64)
    if kind == 1:
        x = (x - 128) / 128 if bits == 8 else x / (1 << 15 if bits == 16 else 1 << 31)
    if x.ndim == 2:
        x = x.mean(axis=1)
    files.append({"bits": bits, "file": base64.b64encode(data).decode(), "rate": rate, "samples": x.tolist()})

rates = []
for source, target in [(8000, 16000), (44100, 16000), (48000, 16000), (22050, 16000), (16000, 8000), (11025, 16000), (4001, 16000)]:
    x = rng.uniform(-1, 1, 60).astype(np.float32)
    g = np.gcd(source, target)
    y = resample_poly(x.astype(np.float64), target // g, source // g)
    rates.append({"from": source, "to": target, "in": x.tolist(), "out": [round(v, 8) for v in y.tolist()]})

with open(sys.argv[1], "w") as f:
    json.dump({"source": f"lab/bench/interop/sounds.py, scipy {scipy.__version__}, seed {SEED}", "files": files, "rates": rates}, f, separators=(",", ":"))
    f.write("\n")
