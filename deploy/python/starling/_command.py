"""Runs the command ``starling`` and turns its errors into exceptions."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import threading
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Union

Progress = Union[bool, Callable[[str], None]]


class StarlingError(RuntimeError):
    """The command failed; the text is its reason and the next step."""


class InputError(StarlingError, ValueError):
    """An argument, a column or a setting is wrong; the text names it and its limit."""


def executable() -> str:
    """The path of the command: $STARLING, that of this package's wheel, or that on the path."""
    if named := os.environ.get("STARLING"):
        return named
    name = "starling.exe" if sys.platform == "win32" else "starling"
    user = sysconfig.get_preferred_scheme("user") if hasattr(sysconfig, "get_preferred_scheme") else f"{os.name}_user"
    folders = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", scheme=user)]
    folders.append(str(Path(__file__).resolve().parents[1] / "bin"))  # pip install --target
    for folder in folders:
        if folder and (found := Path(folder) / name).is_file():
            return str(found)
    if on_path := shutil.which("starling"):
        return on_path
    raise StarlingError("the command starling is not there: install the wheel for this platform, or set STARLING to its path")


def run(arguments: Sequence[str], *, progress: Progress = False) -> list[Any]:
    """Runs a command with ``--json`` and returns the values that it prints.

    What it says meanwhile goes to standard error (``progress=True``) or, line by line, to a function.
    Interrupting ends the command, too; a simulation goes on when the same call is made again.
    """
    tell = progress if callable(progress) else (lambda line: print(line, file=sys.stderr)) if progress else (lambda line: None)
    last: deque[str] = deque(maxlen=20)
    process = subprocess.Popen(
        [executable(), *arguments, "--json"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8", errors="replace",
    )
    printed: list[str] = []
    reader = threading.Thread(target=lambda: printed.append(process.stdout.read()), daemon=True)
    reader.start()
    try:
        for line in process.stderr:
            last.append(line.rstrip("\n"))
            tell(last[-1])
        status = process.wait()
        reader.join()
    except BaseException:
        process.terminate()  # it saves its state first
        process.wait()
        raise
    finally:
        process.stderr.close()
        process.stdout.close()
    values = _values("".join(printed))
    if status != 0:
        told = next((v for v in values if isinstance(v, dict) and "error" in v), None)
        if told is None:
            raise StarlingError("\n".join(last) or f"starling ended with status {status}")
        raise (InputError if told.get("exit_code") == 2 else StarlingError)(told["error"])
    return values


def _values(text: str) -> list[Any]:
    """The JSON values of a text, one after another; what follows the last is no JSON and left out."""
    decoder, values, at = json.JSONDecoder(), [], 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        try:
            value, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError:
            break
        values.append(value)
    return values
