"""Joins the modules of `frontend/` to the one script and the one style that report.html and the viewer have.

`python tools/page_build.py [FOLDER]`. A browser refuses modules of a page that is opened from disk.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUNDLE = ROOT / "src/holdfast/report/page/bundle"
ESBUILD = Path(sys.prefix) / "node/node_modules/.bin/esbuild"
OPTIONS = ["--bundle", "--format=iife", "--target=es2022", "--minify", "--charset=utf8", "--legal-comments=none"]


def build(folder: Path) -> None:
    """Writes page.js and page.css into the folder."""
    source, script = ROOT / "frontend/main.js", folder / "page.js"
    subprocess.run([ESBUILD, source, *OPTIONS, "--log-level=warning", f"--outfile={script}"], check=True)  # noqa: S603  # a program of our own choice


if __name__ == "__main__":
    build(Path(sys.argv[1]) if len(sys.argv) > 1 else BUNDLE)
