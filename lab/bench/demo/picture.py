"""Draw what `starling demo` printed as an SVG for the README: standard error, then the result.

    bin/starling demo > out.txt 2> err.txt
    python3 lab/bench/demo/picture.py err.txt out.txt > docs/demo.svg
"""
import sys
from xml.sax.saxutils import escape

WIDTH, LINE, SIZE = 100, 17, 13  # columns; pixels of a line and of a letter
SHOWN = 34  # lines


def lines():
    progress, result = (open(p, encoding="utf-8").read().splitlines() for p in sys.argv[1:3])
    rounds = [l for l in progress if "committed" in l]
    head = progress[: next(i for i, l in enumerate(progress) if "committed" in l)]
    keep = [l for l in result if l.strip()]
    end = next((i for i, l in enumerate(keep) if l.startswith("The budget applies")), len(keep))
    return ["$ make demo", *head, *rounds[:4], "  ...", *rounds[-2:], "", *keep[:end]][:SHOWN]


def main():
    shown = [l[:WIDTH] for l in lines()]
    width, height = int(WIDTH * SIZE * 0.602) + 24, LINE * len(shown) + 24
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">')
    print("<title>A private fine-tuning over 24 devices in a terminal</title>")
    print(f'<rect width="100%" height="100%" rx="6" fill="#16181d"/><g font-family="ui-monospace,Menlo,Consolas,monospace" font-size="{SIZE}" fill="#d6dae0" xml:space="preserve">')
    for i, l in enumerate(shown):
        colour = ' fill="#8fd694"' if "chosen" in l or l.startswith("$") else ' fill="#e8c06a"' if l.startswith(("Simulated", "Delivered")) else ""
        print(f'<text x="12" y="{24 + LINE * i}"{colour}>{escape(l).replace(" ", chr(160))}</text>')
    print("</g></svg>")


if __name__ == "__main__":
    main()
