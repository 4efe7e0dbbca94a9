"""Unpacks the Free Spoken Digit Dataset and writes a fold for each speaker: what the others say, which of it a client
holds, and what the one left out says. One recording in twelve of those that train is nobody's, to validate on.

    python3 folds.py ARCHIVE OUT
"""

import json, pathlib, re, sys, tarfile

archive, out = sys.argv[1], pathlib.Path(sys.argv[2])
out.mkdir(parents=True, exist_ok=True)
recordings = []
with tarfile.open(archive) as tar:
    for member in tar:
        name = pathlib.PurePosixPath(member.name).name
        m = re.fullmatch(r"([0-9])_([a-z]+)_([0-9]+)\.wav", name)
        if not member.isfile() or not m:
            continue
        to = out / "recordings" / name
        to.parent.mkdir(exist_ok=True)
        if not to.exists():
            to.write_bytes(tar.extractfile(member).read())
        recordings.append((m[2], m[1], int(m[3]), "recordings/" + name))
recordings.sort()
speakers = sorted({r[0] for r in recordings})
for left_out in speakers:
    train = [r for r in recordings if r[0] != left_out]
    test = [r for r in recordings if r[0] == left_out]
    for kind, of in (("train", train), ("test", test)):
        with open(out / f"{kind}-{left_out}.jsonl", "w") as f:
            for speaker, digit, _, path in of:
                f.write(json.dumps({"audio": path, "label": digit, "user": speaker}) + "\n")
    held = lambda r: r[2] == 11
    clients = {s: [i for i, r in enumerate(train) if r[0] == s and not held(r)] for s in speakers if s != left_out}
    json.dump(clients, open(out / f"clients-{left_out}.json", "w"))
    json.dump({"all": sorted(sum(clients.values(), []))}, open(out / f"central-{left_out}.json", "w"))
print(" ".join(speakers))
