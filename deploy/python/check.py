"""Holds the installed package to what README.md says: python check.py (needs nothing but the package)."""

import json
import os
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import starling

HERE = Path(__file__).resolve().parent
ROWS = [{"text": f"{what} of week {i}", "label": kind} for i in range(40) for kind, what in (("energy", "kilowatt hours"), ("travel", "a flight"))]
SMALL = {"rounds": 1, "cohort": 25, "epsilon": 8, "progress": False}


class Package(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)

    def test_notebook(self):
        cells = json.loads((HERE / "example.ipynb").read_text(encoding="utf-8"))["cells"]
        names = {}
        for cell in cells:
            if cell["cell_type"] == "code":
                exec(compile("".join(cell["source"]), cell["id"], "exec"), names)
        result = names["result"]
        self.assertGreater(result.accuracy, 0.9)
        self.assertEqual([p.label for p in result.predict(["a flight", "lunch for four"])], ["travel", "food"])
        self.assertIn("<svg", Path("figure.svg").read_text(encoding="utf-8"))
        self.assertTrue(Path("adapter/adapter_model.safetensors").is_file())
        self.assertLessEqual(result.epsilon, 8)
        self.assertEqual(len(result.rounds), 2)

    def test_tells(self):
        told = []
        first = starling.simulate(ROWS, **{**SMALL, "progress": told.append})
        self.assertTrue(any("1/1" in line for line in told), told)
        file = Path("rows.jsonl")
        file.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
        self.assertEqual(starling.simulate(file, **SMALL).accuracy, first.accuracy)

    def test_errors(self):
        for wrong, says in (
            ({"data": ROWS, "rounds": 0}, "rounds is 0, must be in 1..1000000"),
            ({"data": ROWS, "text": "a,b"}, "text: a column's name"),
            ({"data": ROWS, "settings": {"adaptr.rank_max": 1}}, "did you mean adapter"),
            ({"data": [1]}, r"data\[0\]: want a dict, not a int"),
            ({"data": {"train": ROWS}}, r"data\['train'\]"),
            ({"data": 7}, "data: cannot read a int"),
            ({"text": "question"}, "no data are given"),
            ({"data": "nothing.csv"}, "nothing.csv"),
        ):
            with self.subTest(says), self.assertRaisesRegex(starling.InputError, says):
                starling.simulate(**{"progress": False, **wrong})
        self.assertEqual(starling.simulate(ROWS, **SMALL).predict([]), [])

    @unittest.skipIf(sys.platform == "win32", "a script stands in for the command")
    def test_command_that_breaks(self):
        def stands_in(script):
            Path("broken").write_text("#!/bin/sh\n" + script, encoding="utf-8")
            Path("broken").chmod(stat.S_IRWXU)
            os.environ["STARLING"] = str(Path("broken").resolve())
            self.addCleanup(os.environ.pop, "STARLING", None)

        before = os.environ.get("STARLING")
        if before:
            self.addCleanup(os.environ.__setitem__, "STARLING", before)
        stands_in("echo out of memory >&2; exit 3")
        with self.assertRaisesRegex(starling.StarlingError, "out of memory"):
            starling.simulate(progress=False)
        stands_in("kill -9 $$")
        with self.assertRaisesRegex(starling.StarlingError, "status -9"):
            starling.simulate(progress=False)
        stands_in("exit 0")
        with self.assertRaisesRegex(starling.StarlingError, "reported nothing"):
            starling.simulate(progress=False)

    def test_interruption_ends_the_command(self):
        def interrupted(line):
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            starling.simulate(ROWS, **{**SMALL, "progress": interrupted})

    def test_command(self):
        version = subprocess.run([starling.executable(), "version"], check=True, capture_output=True, text=True).stdout
        self.assertIn("starling", version)


if __name__ == "__main__":
    unittest.main()
