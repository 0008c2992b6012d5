"""What a program that ended badly seems to have missed, by its own words: a terminal, a GPU, a browser. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

_READ = 4_000
"""Characters of the end of what it printed."""
_TERMINAL = re.compile(
    r"not a (?:tty|terminal)|/dev/tty|requires? (?:a|an interactive) (?:tty|terminal)|stdin is not"
    r"|raw mode is not supported|EOF when reading a line|inappropriate ioctl",
    re.IGNORECASE,
)
_GPU = re.compile(
    r"no CUDA|CUDA (?:is not|driver|error|unknown)|libcuda\.so|nvidia-smi|/dev/(?:nvidia|dri|kfd)"
    r"|\bno (?:usable )?GPUs?\b|\bGPU (?:is )?(?:not|required)",
    re.IGNORECASE,
)
_BROWSER = re.compile(
    r"(?:open|launch|find|start)\w*\b[^\n]{0,20}\bbrowser|playwright install|xdg-open: |Executable doesn't exist at"
    r"|cannot open display|Missing X server|\$DISPLAY",
    re.IGNORECASE,
)
_IN_SANDBOX = (
    (
        _GPU,
        "it seems to want a GPU: a sandbox shows no device of this machine, `--backend process` runs it without one",
    ),
    (
        _BROWSER,
        "it seems to want a browser: a sandbox has no display, and of programs those below /usr and /opt and what"
        " agent.dir shows; a browser of a package's own (playwright) lies in a home that is not the agent's",
    ),
)


def missed_means(printed: str, *, sandboxed: bool) -> Iterator[str]:
    """A note for each; most programs miss none."""
    end = printed[-_READ:]
    if _TERMINAL.search(end):
        yield "it seems to want a terminal or more input: agent.dialogue gives it one, and answers its questions"
    for words, note in _IN_SANDBOX if sandboxed else ():
        if words.search(end):
            yield note
