"""Simulations of a deployment: its accuracy, its privacy and its bytes."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Union

from ._command import InputError, Progress, StarlingError, run

PathLike = Union[str, "os.PathLike[str]"]


@dataclass(frozen=True)
class Prediction:
    """A label and how probable the model takes it to be, from 0 to 1."""

    label: str
    probability: float


@dataclass(frozen=True)
class Result:
    """What a simulation found. ``raw`` has everything that the command reports."""

    accuracy: float  #: share of the test part that is labelled rightly, from 0 to 1
    macro_f1: float | None  #: mean over labels of F1, from 0 to 1; None where the task has no labels
    commonest: float | None  #: the accuracy of always naming the commonest label
    epsilon: float | None  #: what the deployment would spend; None without privacy
    delta: float | None
    guarantee: str  #: epsilon with its observer, adjacency, accountant and assumptions
    rank: int  #: the LoRA rank that the validation part chose
    rounds: list[dict[str, Any]]  #: one entry a round: rank, cohort, norms, bytes
    folder: Path  #: of the simulation's files
    checkpoint: Path  #: of the released adapter
    raw: dict[str, Any] = field(repr=False)
    _arguments: tuple[str, ...] = field(repr=False, default=())

    def predict(self, texts: Iterable[str]) -> list[Prediction]:
        """Labels texts with the released adapter, in their order."""
        lines = []
        for text in texts:
            if not isinstance(text, str):
                raise InputError(f"texts: {text!r} is no string")
            lines.append(json.dumps({"text": text}) + "\n")
        if not lines:
            return []
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "texts.jsonl"
            file.write_text("".join(lines), encoding="utf-8")
            said = run(["predict", "--checkpoint", str(self.checkpoint), str(file)])
        if len(said) != len(lines):
            raise StarlingError(f"starling predict answered {len(said)} of {len(lines)} texts")
        return [Prediction(s["label"], s["probability"]) for s in said]

    def export(self, folder: PathLike, format: str = "peft", rank: int | str = "best") -> Path:
        """Writes the adapter for other programs: ``peft``, ``merged``, ``gguf`` or ``safetensors``."""
        run(["export", "--checkpoint", str(self.checkpoint), "--out", os.fspath(folder), "--format", format, "--rank", str(rank)])
        return Path(folder)

    def plot(self, file: PathLike) -> Path:
        """Draws accuracy against epsilon, bytes and rank: .svg, .pdf, .png or .tex."""
        run([*self._arguments, "--plot", os.fspath(file)])  # simulated before: the command only draws
        return Path(file)


def simulate(
    data: Any = None,
    *,
    text: str | None = None,
    label: str | None = None,
    user: str | None = None,
    test: Any = None,
    base: PathLike | None = None,
    epsilon: float | None = None,
    population: int | None = None,
    sampling_rate: float | None = None,
    cohort: int | None = None,
    rounds: int | None = None,
    seed: int | None = None,
    settings: Mapping[str, Any] | None = None,
    job: PathLike | None = None,
    out: PathLike = "starling-simulate",
    progress: Progress = True,
) -> Result:
    """Simulates a deployment over a population of up to millions.

    data: a pandas or polars DataFrame, a ``datasets.Dataset``, a list of dicts, or a file or folder that
        ``starling simulate --data`` reads; None: generated invoices.
    text, label, user: the columns' names; by default "text", "label", and no column of users.
    test: data of their own for the test part, instead of a tenth of data.
    base: a model's folder in Hugging Face layout; None: the small embedded one.
    epsilon: the budget of privacy, above 0; None: the job's, or 2.
    population: registered clients (1,000,000); sampling_rate: each one's coin in a round (0.01).
    cohort: clients that are really trained in a round (100); rounds: 20; seed: 1.
    settings: keys of a job file, dotted: {"adapter.rank_max": 4}. docs/JOB.md lists them.
    job: a job file; what it does not name has its default.
    out: a folder; each set of settings gets a folder of its own in it. The same call again goes on where
        an interrupted one was, or returns what was found.
    progress: True tells on standard error, a function gets each line, False is silent.

    Raises InputError with the argument's name and its limit, StarlingError where the command fails.
    """
    arguments = ["simulate", "--out", os.fspath(out)]
    for flag, argument in (("job", job), ("base", base)):
        if argument is not None:
            arguments += [f"--{flag}", os.fspath(argument)]
    if data is not None:
        arguments += ["--data", _file(data, "data", out)]
        arguments += _columns(text, label, user)
    elif text or label or user or test is not None:
        raise InputError("text, label, user and test describe data, and no data are given")
    if test is not None:
        arguments += ["--test", _file(test, "test", out)]
    numbers = {"epsilon": epsilon, "population": population, "sampling-rate": sampling_rate, "cohort": cohort, "rounds": rounds, "seed": seed}
    for flag, number in numbers.items():
        if number is not None:
            arguments += [f"--{flag}", str(number)]
    for key, value in (settings or {}).items():
        arguments += ["--set", f"{key}={value if isinstance(value, str) else json.dumps(value)}"]
    found = run(arguments, progress=progress)
    if not found:
        raise StarlingError("starling simulate reported nothing")
    raw = found[-1]
    checkpoint = Path(raw["checkpoint"])
    return Result(
        accuracy=float(raw["accuracy"]), macro_f1=raw.get("macro_f1"), commonest=raw.get("commonest"), epsilon=raw.get("epsilon"),
        delta=raw.get("delta"), guarantee=raw.get("guarantee", ""), rank=raw["rank"], rounds=raw["rounds"],
        folder=checkpoint.parent, checkpoint=checkpoint, raw=raw, _arguments=tuple(arguments),
    )


def _columns(text: str | None, label: str | None, user: str | None) -> list[str]:
    named = {"text": text, "label": label, "user": user}
    for role, column in named.items():
        if column is not None and (not column or "," in column or "=" in column):
            raise InputError(f"{role}: a column's name must be there, without a comma and an equals sign, not {column!r}: rename it")
    told = [f"{role}={column}" for role, column in named.items() if column is not None and column != role]
    return ["--map", ",".join(told)] if told else []


def _file(data: Any, argument: str, out: PathLike) -> str:
    """The path of data; those in memory are written below out, under a name of their content."""
    if isinstance(data, (str, os.PathLike)):
        return os.fspath(data)
    kept = Path(out) / "data"
    kept.mkdir(parents=True, exist_ok=True)
    if isinstance(data, (list, tuple)):
        return _kept(kept, "jsonl", lambda file: _lines(data, argument, file))
    for method in ("to_parquet", "write_parquet"):  # pandas and datasets, polars
        write = getattr(data, method, None)
        if write is not None:
            return _kept(kept, "parquet", lambda file: _parquet(write, file, argument))
    hint = f"choose one of its parts, as {argument}[{next(iter(data))!r}]" if isinstance(data, dict) and data else \
        "want a DataFrame, a datasets.Dataset, a list of dicts or a path"
    raise InputError(f"{argument}: cannot read a {type(data).__name__}: {hint}")


def _lines(rows: Iterable[Any], argument: str, file: Path) -> None:
    with file.open("w", encoding="utf-8") as out:
        for i, row in enumerate(rows):
            if not isinstance(row, Mapping):
                raise InputError(f"{argument}[{i}]: want a dict, not a {type(row).__name__}")
            try:
                out.write(json.dumps(dict(row)) + "\n")
            except (TypeError, ValueError) as error:
                raise InputError(f"{argument}[{i}]: {error}") from None


def _parquet(write: Any, file: Path, argument: str) -> None:
    try:
        write(str(file))
    except ImportError as error:
        raise InputError(f"{argument}: {error}: pip install pyarrow, or give a list of dicts") from error


def _kept(folder: Path, suffix: str, write: Any) -> str:
    handle, name = tempfile.mkstemp(dir=folder, suffix="." + suffix)
    os.close(handle)
    made = Path(name)
    try:
        write(made)
        with made.open("rb") as content:
            digest = hashlib.sha256()
            while block := content.read(1 << 20):
                digest.update(block)
        final = folder / f"{digest.hexdigest()[:16]}.{suffix}"
        made.replace(final)
    finally:
        made.unlink(missing_ok=True)
    return str(final)
