#!/usr/bin/env python3
"""Times Flower's own SecAgg+ functions on our sizes: d=135,176, 64 neighbours.

Only flwr's functions are called (key agreement, Shamir, Fernet, mask expansion,
array sums), in the order its client mod and server workflow call them; no
network; the masked vector is put into bytes as its client mod does. Prints one line "name<TAB>milliseconds" a figure.
"""
import os
import time

import numpy as np
from flwr.common import ndarray_to_bytes
from flwr.common.secure_aggregation.crypto.shamir import combine_shares, create_shares
from flwr.common.secure_aggregation.crypto.symmetric_encryption import decrypt, encrypt, generate_shared_key
from flwr.common.secure_aggregation.ndarrays_arithmetic import parameters_addition, parameters_mod, parameters_subtraction
from flwr.common.secure_aggregation.secaggplus_utils import pseudo_rand_gen, share_keys_plaintext_concat
from flwr.supercore.primitives.asymmetric import generate_key_pairs, private_key_to_bytes, bytes_to_private_key

D, N, T, MOD, DROPPED = 135176, 64, 44, 1 << 32, 6


def cpu(f):
    a = time.process_time()
    out = f()
    return out, (time.process_time() - a) * 1000


def report(name, ms):
    print(f"{name}\t{ms:.1f}", flush=True)


keys = [(generate_key_pairs(), generate_key_pairs()) for _ in range(N)]
vector = [np.random.randint(0, 25, D, dtype=np.int64)]


def share():
    seed = os.urandom(32)
    sk = private_key_to_bytes(keys[0][0][0])
    b_shares, k_shares = create_shares(seed, T, N), create_shares(sk, T, N)
    sealed = []
    for i in range(1, N):
        key = generate_shared_key(keys[0][1][0], keys[i][1][1])
        sealed.append((key, encrypt(key, share_keys_plaintext_concat(0, i, b_shares[i], k_shares[i]))))
    return seed, b_shares, k_shares, sealed


def mask(seed):
    out = parameters_addition(vector, pseudo_rand_gen(seed, MOD, [(D,)]))
    for i in range(1, N):
        m = pseudo_rand_gen(generate_shared_key(keys[0][0][0], keys[i][0][1]), MOD, [(D,)])
        out = parameters_addition(out, m) if i % 2 else parameters_subtraction(out, m)
    return parameters_mod(out, MOD)


(seed, b_shares, k_shares, sealed), ms = cpu(share)
total = ms
report("client share", ms)
_, ms = cpu(lambda: [decrypt(k, c) for k, c in sealed])
total += ms
report("client open shares", ms)
masked, ms = cpu(lambda: mask(seed))
total += ms
report("client mask", ms)
report("client total", total)


def unmask():
    """One shard: N-1 = 63 devices, of which DROPPED dropped after sharing."""
    out = masked
    for _ in range(N - 1 - DROPPED):
        out = parameters_subtraction(out, pseudo_rand_gen(combine_shares(b_shares[:T]), MOD, [(D,)]))
    for _ in range(DROPPED):
        sk = bytes_to_private_key(combine_shares(k_shares[:T]))
        for i in range(N - 1 - DROPPED):
            m = pseudo_rand_gen(generate_shared_key(sk, keys[i][0][1]), MOD, [(D,)])
            out = parameters_subtraction(out, m) if i % 2 else parameters_addition(out, m)
    return parameters_mod(out, MOD)


_, ms = cpu(unmask)
report("server unmask one shard", ms)
report("server unmask 16 shards", ms * 16)
print(f"upload vector bytes\t{sum(len(ndarray_to_bytes(a)) for a in masked)}")
