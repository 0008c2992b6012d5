"""The page's template as byte code beside its source: compiling it takes longer than a short run."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from pickle import UnpicklingError

from jinja2.bccache import Bucket, BytecodeCache

_FOLDER = Path(__file__).parent / "templates" / "__pycache__"


class CompiledTemplate(BytecodeCache):
    """Kept as Python keeps its own: where the folder cannot be written, it is compiled each time.

    Jinja compares the digest of the source and the versions before it takes what is kept.
    """

    def __init__(self, folder: Path = _FOLDER) -> None:
        self._folder = folder

    def load_bytecode(self, bucket: Bucket) -> None:
        try:
            with open(self._file(bucket), "rb") as kept:
                bucket.load_bytecode(kept)
        except (OSError, EOFError, UnpicklingError):  # none there, or torn
            bucket.reset()

    def dump_bytecode(self, bucket: Bucket) -> None:
        if sys.dont_write_bytecode:
            return
        file = self._file(bucket)
        new = file.with_suffix(f".{os.getpid()}")
        try:
            self._folder.mkdir(exist_ok=True)
            new.write_bytes(bucket.bytecode_to_string())
            new.replace(file)
        except OSError:
            return

    def _file(self, bucket: Bucket) -> Path:
        return self._folder / f"{bucket.key}.{sys.implementation.cache_tag}"
