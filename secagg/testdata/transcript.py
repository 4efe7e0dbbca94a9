#!/usr/bin/env python3
"""Recomputes whole rounds of Starling's secure aggregation from fixed randomness.

Independent of the Go code: written from docs/PROTOCOL.md with Python's standard
library and the `cryptography` package only; group arithmetic is plain integers.

    python3 transcript.py            writes transcript.json
    python3 transcript.py --check    compares with transcript.json

Besides every message it derives the server's view the long way: it rebuilds the
secrets from the revealed shares by interpolation, expands the masks they stand
for, takes them off the sum of the masked vectors and compares with the plain sum.
"""
import hashlib, json, math, os, struct, sys
from fractions import Fraction

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

# --- edwards25519 (RFC 8032 section 5.1) -------------------------------------
P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
BY = 4 * pow(5, P - 2, P) % P
def recover_x(y, sign):
    x2 = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(x2, (P + 3) // 8, P)
    if (x * x - x2) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    return P - x if x & 1 != sign else x
B = (recover_x(BY, 0), BY)
def add(p, q):
    """Extended coordinates (X, Y, Z, T), RFC 8032 section 5.1.4; complete, so it doubles too."""
    (x1, y1, z1, t1), (x2, y2, z2, t2) = p, q
    a, b, c, d = (y1 - x1) * (y2 - x2), (y1 + x1) * (y2 + x2), 2 * D * t1 * t2, 2 * z1 * z2
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P
def mul(k, p):
    p, r = (p[0], p[1], 1, p[0] * p[1] % P), (0, 1, 1, 0)
    while k:
        if k & 1:
            r = add(r, p)
        p = add(p, p)
        k >>= 1
    z = pow(r[2], P - 2, P)
    return r[0] * z % P, r[1] * z % P
def encode_point(p):
    return (p[1] | (p[0] & 1) << 255).to_bytes(32, "little")
def le32(x):
    return x.to_bytes(32, "little")

# --- primitives ----------------------------------------------------------------
def sha256(b): return hashlib.sha256(b).digest()
class DRBG:
    """AES-128-CTR under the hash of a seed."""
    def __init__(self, seed):
        k = sha256(seed.encode())
        self.e = Cipher(algorithms.AES(k[:16]), modes.CTR(k[16:])).encryptor()
    def read(self, n): return self.e.update(bytes(n))
    def scalar(self): return int.from_bytes(self.read(64), "little") % L
    def u64(self): return struct.unpack("<Q", self.read(8))[0]
def hkdf(secret, label, bind, extra=b"", n=16):
    return HKDF(hashes.SHA256(), n, b"starling/secagg/1", label + bind + extra).derive(secret)
def pair(a, b): return struct.pack(">HH", a, b)
def x_pub(k): return k.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
def agree(k, pub): return k.exchange(X25519PublicKey.from_public_bytes(pub))
def ed_pub(k): return k.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)

# --- CBOR, deterministic --------------------------------------------------------
def head(major, n):
    for size, info in ((0, None), (1, 24), (2, 25), (4, 26), (8, 27)):
        if size == 0 and n < 24: return bytes([major << 5 | n])
        if size and n < 1 << 8 * size: return bytes([major << 5 | info]) + n.to_bytes(size, "big")
def cbor(v):
    if isinstance(v, int): return head(0, v)
    if isinstance(v, bytes): return head(2, len(v)) + v
    return head(4, len(v)) + b"".join(cbor(x) for x in v)

# --- protocol --------------------------------------------------------------------
def threshold(n, cfg):
    p, bound = Fraction(cfg["corrupt_ppm"], 10**6), Fraction(1, 2 ** cfg["breach_bits"])
    t = max(2, -(-n // 3)) if cfg["semi_honest"] else n // 2 + 1
    while True:
        c = t if cfg["semi_honest"] else 2 * t - n
        if sum(math.comb(n, i) * p**i * (1 - p)**(n - i) for i in range(c, n + 1)) <= bound: return t
        t += 1
def bitmap(n, members):
    b = bytearray((n + 7) // 8)
    for i in members: b[i // 8] |= 1 << i % 8
    return bytes(b)
def mask(key, dim, width):
    """AES-128-CTR, zero counter, little-endian lanes of 16 or 32 bits."""
    size = 2 if width <= 16 else 4
    ks = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor().update(bytes(dim * size))
    return [int.from_bytes(ks[i * size:(i + 1) * size], "little") % 2**width for i in range(dim)]
def pack(v, width):
    x = sum(a << i * width for i, a in enumerate(v))
    return x.to_bytes((len(v) * width + 7) // 8, "little")
def unpack(b, dim, width):
    x = int.from_bytes(b, "little")
    return [x >> i * width & 2**width - 1 for i in range(dim)]
def interpolate(points):
    """f(0) from {x: f(x)}."""
    total = 0
    for x, y in points.items():
        num = den = 1
        for z in points:
            if z != x: num, den = num * z % L, den * (z - x) % L
        total += y * num * pow(den, L - 2, L)
    return total % L

class Device:
    pass

def run(case):
    cfg, seed = dict(case["config"]), case["seed"]
    dim, width = cfg["dim"], cfg["width"]
    authority = None if cfg["identified"] else Ed25519PrivateKey.from_private_bytes(sha256(f"authority {seed}".encode()))
    config = cbor([dim, width, cfg["max_symbol"], cfg["shard_max"], cfg["shard_min"], cfg["corrupt_ppm"], cfg["breach_bits"],
                   cfg["semi_honest"] | cfg["identified"] << 1 | cfg.get("logged", False) << 2 | cfg.get("dealt", False) << 3, 1, ed_pub(authority) if authority else bytes(32)])
    def field(b): return struct.pack(">Q", len(b)) + b
    plan = sha256(b"starling/secagg/1 plan" + field(b"test task") + struct.pack(">Q", 7) + field(config) + field(seed.encode()))
    out = {"seed": seed, "config": cfg, "last_turn": case["last_turn"], "config_encoding": config.hex(), "plan": plan.hex(), "devices": [], "shards": []}

    devices = []
    for i in range(len(case["last_turn"])):
        d = Device()
        d.number, d.last = i, case["last_turn"][i]
        d.identity = Ed25519PrivateKey.from_private_bytes(sha256(f"identity {seed} {i}".encode()))
        rnd = d.rnd = DRBG(f"device {seed} {i}")
        d.signer = d.identity if cfg["identified"] else Ed25519PrivateKey.from_private_bytes(rnd.read(32))
        d.mask_a, d.self_a = rnd.scalar(), rnd.scalar()
        d.seal = X25519PrivateKey.from_private_bytes(rnd.read(32))
        d.mask = X25519PrivateKey.from_private_bytes(hkdf(le32(d.mask_a), b"mask key", plan, n=32))
        keys = [ed_pub(d.signer), x_pub(d.mask), x_pub(d.seal)]
        statement = plan + b"".join(map(cbor, keys))
        sign = d.signer.sign(b"starling/secagg/1 keys" + statement)
        vouch = bytes(64) if cfg["identified"] else d.identity.sign(b"starling/secagg/1 vouch" + statement)
        lot = [DRBG(f"lot {seed} {i}").read(80)] if cfg.get("dealt") else []  # any bytes: what they prove is read elsewhere
        d.advertise = cbor([1, plan] + keys + [sign, ed_pub(d.identity), vouch] + lot)
        certificate = authority.sign(b"starling/secagg/1 certificate" + statement) if authority else bytes(64)
        d.verify_key, d.entry = keys[0], keys + [sign, certificate]
        if cfg.get("logged") and authority: d.entry += [ed_pub(d.identity), vouch]
        d.entry += lot
        sym = DRBG(f"symbols {seed} {i}")
        d.symbols = [sym.u64() % (2 * cfg["max_symbol"] + 1) - cfg["max_symbol"] for _ in range(dim)]
        out["devices"].append({"advertise": d.advertise.hex(), "symbols": d.symbols, "mask_scalar": le32(d.mask_a).hex(), "self_scalar": le32(d.self_a).hex()})
        devices.append(d)

    n, rnd = len(devices), DRBG(f"server {seed}")
    order = list(range(n))
    for i in range(n - 1, 0, -1):
        while True:
            v = rnd.u64()
            if v >= 2**64 % (i + 1): break
        j = v % (i + 1)
        order[i], order[j] = order[j], order[i]
    count = -(-n // cfg["shard_max"])
    for number in range(count):
        size = n // count + (number < n % count)
        members = sorted((devices[i] for i in order[:size]), key=lambda d: d.verify_key)
        order = order[size:]
        out["shards"].append(shard(cfg, plan, number, members))
    return out

def shard(cfg, plan, number, members):
    n, dim, width = len(members), cfg["dim"], cfg["width"]
    t = threshold(n, cfg)
    enrolments = [b"enrolments of shard %d" % number] if cfg.get("logged") else []
    roster = cbor([2, plan, number, [d.entry for d in members]] + enrolments)
    R = sha256(b"starling/secagg/1 roster" + roster)
    out = {"members": [d.number for d in members], "threshold": t, "roster": roster.hex(), "roster_hash": R.hex(),
           "shares": {}, "delivery": {}, "masked": {}, "confirmation": {}, "reveal": {}}
    taking = lambda turn: [i for i, d in enumerate(members) if d.last >= turn]

    u2 = taking(2)
    for i in u2:
        d = members[i]
        d.poly = [[a] + [d.rnd.scalar() for _ in range(t - 1)] for a in (d.mask_a, d.self_a)]
        commit = b"".join(encode_point(mul(c, B)) for f in d.poly for c in f)
        # holder -> (mask key share, self-mask share)
        d.share = {j: [sum(c * pow(j + 1, k, L) for k, c in enumerate(f)) % L for f in d.poly] for j in range(n)}
        d.sealed = {}
        for j, peer in enumerate(members):
            if j == i: continue
            key = hkdf(agree(d.seal, x_pub(peer.seal)), b"share", R, pair(i, j))
            d.sealed[j] = AESGCM(key).encrypt(bytes(12), le32(d.share[j][0]) + le32(d.share[j][1]), b"share" + R + pair(i, j))
        out["shares"][i] = cbor([3, R, commit, b"".join(d.sealed[j] for j in range(n) if j != i)]).hex()

    u3 = taking(3)
    total = [0] * dim
    for i in u3:
        d = members[i]
        out["delivery"][i] = cbor([4, R, bitmap(n, u2), b"".join(members[j].sealed[i] for j in u2 if j != i)]).hex()
        y = [a + b for a, b in zip(d.symbols, mask(hkdf(le32(d.self_a), b"self mask", R), dim, width))]
        for j in u2:
            if j == i: continue
            lo, hi = min(i, j), max(i, j)
            m = mask(hkdf(agree(d.mask, x_pub(members[j].mask)), b"pair mask", R, pair(lo, hi)), dim, width)
            y = [a + b if i < j else a - b for a, b in zip(y, m)]
        y = [a % 2**width for a in y]
        out["masked"][i] = cbor([5, R, pack(y, width)]).hex()
        total = [a + b for a, b in zip(total, unpack(pack(y, width), dim, width))]
    sets = bitmap(n, u2) + bitmap(n, u3)
    out["survivors"] = cbor([6, R, bitmap(n, u2), bitmap(n, u3)]).hex()

    u4, signs = taking(4), {}
    for i in u4:
        signs[i] = members[i].signer.sign(b"starling/secagg/1 sets" + R + sets)
        out["confirmation"][i] = cbor([7, R, signs[i]]).hex()
        Ed25519PublicKey.from_public_bytes(members[i].verify_key).verify(signs[i], b"starling/secagg/1 sets" + R + sets)
    out["confirmations"] = cbor([8, R, bitmap(n, u4), b"".join(signs[i] for i in u4)]).hex()

    u5 = taking(5)
    revealed = {}
    for i in u5:
        revealed[i] = {j: members[j].share[i][1 if j in u3 else 0] for j in u2}
        out["reveal"][i] = cbor([9, R, bitmap(n, u2), b"".join(le32(revealed[i][j]) for j in u2)]).hex()

    # The server's side, from revealed shares only.
    assert len(u5) >= t
    for j in u2:
        secret = interpolate({i + 1: revealed[i][j] for i in u5[-t:]})
        assert secret == (members[j].self_a if j in u3 else members[j].mask_a)
        if j in u3:
            total = [a - b for a, b in zip(total, mask(hkdf(le32(secret), b"self mask", R), dim, width))]
            continue
        key = X25519PrivateKey.from_private_bytes(hkdf(le32(secret), b"mask key", plan, n=32))
        assert x_pub(key) == members[j].entry[1]
        for i in u3:
            m = mask(hkdf(agree(key, members[i].entry[1]), b"pair mask", R, pair(min(i, j), max(i, j))), dim, width)
            total = [a - b if i < j else a + b for a, b in zip(total, m)]
    total = [(a + 2**(width - 1)) % 2**width - 2**(width - 1) for a in total]
    assert total == [sum(members[i].symbols[k] for i in u3) for k in range(dim)], "unmasked sum differs from the plain sum"
    out["sum"] = total
    return out

CASES = [
    # Two shards of 4 and 3. last_turn: the last turn a device takes part in.
    {"seed": "transcript 1", "last_turn": [5, 5, 2, 5, 5, 3, 5],
     "config": dict(dim=23, width=11, max_symbol=12, shard_max=4, shard_min=2, corrupt_ppm=0, breach_bits=0, semi_honest=False, identified=False)},
    # 32-bit lanes, identities in the roster, a threshold that corruption raises.
    {"seed": "transcript 2", "last_turn": [5, 2, 4, 5, 1, 5, 5, 5, 5, 5, 5, 3, 5],
     "config": dict(dim=17, width=20, max_symbol=60000, shard_max=8, shard_min=6, corrupt_ppm=10000, breach_bits=4, semi_honest=False, identified=True)},
    {"seed": "transcript 3", "last_turn": [5, 3, 5, 2, 5, 2],
     "config": dict(dim=9, width=16, max_symbol=5000, shard_max=6, shard_min=6, corrupt_ppm=0, breach_bits=0, semi_honest=True, identified=False)},
    # Rosters that say who is in them.
    {"seed": "transcript 4", "last_turn": [5, 4, 5, 2, 5],
     "config": dict(dim=5, width=11, max_symbol=12, shard_max=5, shard_min=3, corrupt_ppm=0, breach_bits=0, semi_honest=False, identified=False, logged=True)},
    {"seed": "transcript 5", "last_turn": [5, 5, 5],
     "config": dict(dim=3, width=11, max_symbol=12, shard_max=5, shard_min=3, corrupt_ppm=0, breach_bits=0, semi_honest=False, identified=True, logged=True)},
    # Rosters that say what each of them drew.
    {"seed": "transcript 6", "last_turn": [5, 5, 4, 5],
     "config": dict(dim=4, width=11, max_symbol=12, shard_max=5, shard_min=3, corrupt_ppm=0, breach_bits=0, semi_honest=False, identified=False, logged=True, dealt=True)},
    {"seed": "transcript 7", "last_turn": [5, 5, 5],
     "config": dict(dim=3, width=11, max_symbol=12, shard_max=5, shard_min=3, corrupt_ppm=0, breach_bits=0, semi_honest=False, identified=True, logged=True, dealt=True)},
]

if __name__ == "__main__":
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "transcript.json")
    text = json.dumps([run(c) for c in CASES], indent=1) + "\n"
    if "--check" in sys.argv:
        sys.exit(0 if open(path).read() == text else "transcript.json differs")
    open(path, "w").write(text)
