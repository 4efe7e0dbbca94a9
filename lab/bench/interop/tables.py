"""Parquet and Arrow files by pyarrow, and the rows that they hold: python tables.py FOLDER [N] writes N tables (3 small ones for
data/columnar/testdata) in all the ways that are read, and FOLDER/NAME.jsonl beside each, to which TestTables holds data/columnar."""

import json
import random
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq

WORDS = ["when will my card arrive", "", "ü日本", "a,b\n\"c\"", "<b>&\u2028", "no", "transfer failed" * 9]
CLASSES = {"info": {"features": {"label": {"names": ["card", "cash", "top-up"], "_type": "ClassLabel"}, "text": {"dtype": "string", "_type": "Value"},
                                 "tags": {"feature": {"names": ["O", "PER"], "_type": "ClassLabel"}, "_type": "List"}}}}


def table(rng, n):
    def some(f, p=0.2):
        return [None if rng.random() < p else f() for _ in range(n)]

    talk = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))
    columns = {
        "text": pa.array(some(lambda: rng.choice(WORDS), 0), pa.string()),
        "label": pa.array([rng.randrange(3) for _ in range(n)], pa.int64()),
        "user": pa.array(some(lambda: rng.randrange(-2**31, 2**31)), pa.int32()),
        "byte": pa.array(some(lambda: rng.randrange(256)), pa.uint8()),
        "wide": pa.array(some(lambda: rng.randrange(2**64)), pa.uint64()),
        "score": pa.array(some(lambda: rng.choice([0.5, -1e300, float("nan"), 3.0])), pa.float64()),
        "half": pa.array(some(lambda: float(np.float32(rng.random()))), pa.float32()),
        "yes": pa.array(some(lambda: rng.random() < 0.5), pa.bool_()),
        "tags": pa.array(some(lambda: [rng.randrange(2) for _ in range(rng.randrange(4))]), pa.list_(pa.int64())),
        "messages": pa.array(some(lambda: [{"role": rng.choice(["user", None]), "content": rng.choice(WORDS)} for _ in range(rng.randrange(3))]), talk),
        "deep": pa.array(some(lambda: [[rng.choice(WORDS + [None]) for _ in range(rng.randrange(3))] for _ in range(rng.randrange(3))]), pa.list_(pa.list_(pa.string()))),
        "long": pa.array(some(lambda: rng.choice(WORDS)), pa.large_string()),
        "view": pa.array(some(lambda: rng.choice(WORDS)), pa.string_view()),
        "kind": pa.array(some(lambda: rng.choice(WORDS)), pa.string()).dictionary_encode(),
        "nothing": pa.nulls(n),
        "picture": pa.array(some(lambda: {"bytes": b"\xff\xd8", "path": "a.jpg"}), pa.struct([("bytes", pa.binary()), ("path", pa.string())])),
    }
    t = pa.table(columns)
    return t.replace_schema_metadata({"huggingface": json.dumps(CLASSES)})


def rows(t):
    label, tags = (CLASSES["info"]["features"]["label"]["names"], CLASSES["info"]["features"]["tags"]["feature"]["names"])
    for r in t.to_pylist():
        r["label"] = label[r["label"]]
        r["tags"] = r["tags"] and [tags[i] for i in r["tags"]]
        r["score"] = None if r["score"] != r["score"] else r["score"]
        r["half"] = r["half"] and float(str(np.float32(r["half"])))  # as few digits as tell it
        if r["picture"]:
            r["picture"]["bytes"] = None
        yield json.dumps(r)


def write(folder, name, t, i):
    ways = [("snappy", {}), ("gzip", {"use_dictionary": False}), ("zstd", {"data_page_version": "2.0"}), ("none", {"data_page_size": 64, "write_batch_size": 3, "row_group_size": 7}),
            ("snappy", {"use_dictionary": False, "column_encoding": {"user": "DELTA_BINARY_PACKED", "label": "DELTA_BINARY_PACKED", "text": "DELTA_LENGTH_BYTE_ARRAY", "long": "DELTA_BYTE_ARRAY"}}),
            ("zstd", {"data_page_version": "2.0", "use_dictionary": False, "version": "2.6", "column_encoding": {"wide": "DELTA_BINARY_PACKED", "text": "DELTA_BYTE_ARRAY", "yes": "RLE"}}),
            ("gzip", {"use_compliant_nested_type": False, "dictionary_pagesize_limit": 64})]
    for k, (codec, options) in enumerate(ways) if i is None else [(i, ways[i % len(ways)])]:
        pq.write_table(t, folder / f"{name}-{k}.parquet", compression=codec, **options)
    with pa.OSFile(str(folder / f"{name}.arrow"), "wb") as f, pa.ipc.new_stream(f, t.schema) as w:
        w.write_table(t, max_chunksize=5)
    with pa.OSFile(str(folder / f"{name}-z.arrow"), "wb") as f, pa.ipc.new_stream(f, t.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as w:
        w.write_table(t)
    feather.write_feather(t, str(folder / f"{name}.feather"), compression="uncompressed")


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    rng = random.Random(3)
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    for i in range(n or 3):
        t = table(rng, rng.randrange(1, 400) if n else 9)
        write(folder, f"t{i}", t, None if n else 2 * i)
        (folder / f"t{i}.jsonl").write_text("\n".join(rows(t)) + "\n")


main()
