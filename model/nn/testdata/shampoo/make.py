# Writes golden.json: FedShampoo's local updates (algorithm 1 of the competition's report, appendix D.1) in float64, with
# the roots from eigenvalues. Matrices are cut into blocks of at most 64 a side, as equal as whole numbers allow.
# python make.py; numpy 2.
import json
import math
import numpy as np

STEPS, STATISTICS, ROOTS, RATE, CLIP, RIDGE = 10, 2, 4, 0.05, 0.2, 1e-4
SHAPES = {"wide": [2, 70], "tall": [66, 2], "vector": [7], "cube": [4, 3, 2]}


def spans(n):
    side = math.ceil(n / math.ceil(n / 64))
    return [slice(a, min(a + side, n)) for a in range(0, n, side)]


def root(a):
    w, v = np.linalg.eigh(a + RIDGE * np.eye(len(a)))
    return v @ np.diag(w ** -0.25) @ v.T


rng = np.random.default_rng(7)
out = {"steps": STEPS, "statistics_every": STATISTICS, "roots_every": ROOTS, "rate": RATE, "tensors": []}
for name, shape in SHAPES.items():
    start = rng.normal(size=shape)
    # Of a low rank and of very different sizes, so that the factors are badly conditioned.
    grads = rng.normal(size=[STEPS, *shape]) * np.geomspace(3, 0.01, shape[0]).reshape([-1] + [1] * (len(shape) - 1))
    grads = grads.round(3)
    start = start.round(3)
    w = start.reshape(shape[0], -1).copy()
    blocks = {(i, j): None for i in range(len(spans(w.shape[0]))) for j in range(len(spans(w.shape[1])))}
    state = {}
    for (i, j) in blocks:
        b = w[spans(w.shape[0])[i], spans(w.shape[1])[j]].shape
        state[i, j] = [np.eye(b[0]), np.eye(b[1]), np.eye(b[0]), np.eye(b[1])]
    for t in range(1, STEPS + 1):
        g = grads[t - 1].reshape(w.shape)
        for (i, j), s in state.items():
            at = spans(w.shape[0])[i], spans(w.shape[1])[j]
            if t % STATISTICS == 0:
                s[0], s[1] = s[0] + g[at] @ g[at].T, s[1] + g[at].T @ g[at]
            if t % ROOTS == 0:
                s[2], s[3] = root(s[0]), root(s[1])
            w[at] -= RATE * np.clip(s[2] @ g[at] @ s[3], -CLIP, CLIP)
    out["tensors"].append({"name": name, "shape": shape, "start": start.ravel().tolist(), "gradients": grads.reshape(STEPS, -1).tolist(),
                           "end": w.ravel().round(7).tolist()})
with open("golden.json", "w") as f:
    json.dump(out, f, separators=(",", ":"))
    f.write("\n")
