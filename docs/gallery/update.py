"""Run the examples of the gallery, and store their output and figures beside the pages.

    python docs/gallery/update.py              # all pages
    python docs/gallery/update.py sleep cement

A page `NAME.md` shows `examples/NAME.py`, its output `NAME.txt` (long sentences folded) and its
figure `NAME.png`. The pages are not executed when the documentation is built.
"""

import argparse
import shutil
import subprocess
import sys
import textwrap

from pathlib import Path

GALLERY = Path(__file__).resolve().parent
EXAMPLES = GALLERY.parent.parent / "examples"
WIDTH = 88
NAMES = sorted(page.stem for page in GALLERY.glob("*.md") if page.stem != "index")


def output_of(name: str) -> str:
    """Run an example and return what it prints."""
    command = [sys.executable, "-W", "ignore", str(EXAMPLES / f"{name}.py")]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.lstrip()


def folded(text: str) -> str:
    """Fold the sentences of an output; rows of tables, with runs of spaces, stay as they are."""
    lines = [
        line if "  " in line else textwrap.fill(line, WIDTH, subsequent_indent="    ")
        for line in text.splitlines()
    ]
    return "\n".join(lines) + "\n"


def update(name: str) -> None:
    """Run an example and store its output and its figure."""
    (GALLERY / f"{name}.txt").write_text(folded(output_of(name)), encoding="utf-8")
    shutil.copyfile(EXAMPLES / "output" / f"{name}.png", GALLERY / f"{name}.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="pages, default: all")
    for name in parser.parse_args().names or NAMES:
        print(name, flush=True)
        update(name)


if __name__ == "__main__":
    main()
