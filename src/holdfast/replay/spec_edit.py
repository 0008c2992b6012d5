"""Adding a session to the text of a spec: only lines are added, and what is read is the same and one session more."""

from __future__ import annotations

from typing import Any

from holdfast.reading.node import Node
from holdfast.reading.tree import parse


def with_session(text: str, file: str) -> str | None:
    """The spec with `file` among its sessions; the same text if it is there; None if lines alone cannot do that."""
    root, problems = parse(text.removeprefix("\ufeff"))
    if root is None or root.kind != "map" or problems:
        return None
    if file in _files(root):
        return text
    made = _added(text, root, file)
    return made if made is not None and _is_right(root, made, file) else None


def _files(root: Node) -> list[Any]:
    listed = root.get("replays").get("sessions") if root.has("replays") else None
    return (
        [item.get("file").value for item in listed.items if item.kind == "map" and item.has("file")] if listed else []
    )


def _added(text: str, root: Node, file: str) -> str | None:
    lines = text.splitlines(keepends=True)
    end = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    if lines and not lines[-1].endswith(("\n", "\r")):
        lines[-1] += end
    entry = f"- file: {_quoted(file)}{end}"
    replays = root.get("replays") if root.has("replays") else None
    if replays is None or replays.kind == "null":
        if replays is not None:
            return None
        return "".join([*lines, end, f"replays:{end}", f"  sessions:{end}", f"    {entry}"])
    if replays.kind != "map" or not replays.pairs:
        return None
    if not replays.has("sessions"):
        first = next(iter(replays.pairs.values()))[0]
        pad = " " * (first.column - 1)
        lines.insert(first.line - 1, f"{pad}sessions:{end}{pad}  {entry}")
        return "".join(lines)
    return _appended(lines, replays.get("sessions"), entry)


def _appended(lines: list[str], listed: Node, entry: str) -> str | None:
    """After the last item of a list in block style."""
    if listed.kind != "list" or not listed.items:
        return None
    last = listed.items[-1]
    dash = lines[last.line - 1].find("-")
    if dash < 0 or lines[last.line - 1][:dash].strip():
        return None
    at = last.line
    for number in range(last.line, len(lines)):
        line = lines[number]
        if line.strip() and not line.lstrip().startswith("#") and len(line) - len(line.lstrip()) <= dash:
            break
        if line.strip() and len(line) - len(line.lstrip()) > dash:
            at = number + 1
    lines.insert(at, " " * dash + entry)
    return "".join(lines)


def _is_right(root: Node, made: str, file: str) -> bool:
    """Whether the new text says what the old one did, and one session more."""
    read, problems = parse(made.removeprefix("\ufeff"))
    if read is None or problems:
        return False
    wanted: dict[str, Any] = root.plain()
    replays = dict(wanted.get("replays") or {})
    replays["sessions"] = [*(replays.get("sessions") or []), {"file": file}]
    return bool(read.plain() == {**wanted, "replays": replays})


def _quoted(file: str) -> str:
    import yaml

    text: str = yaml.safe_dump(file, default_flow_style=True, allow_unicode=True, width=float("inf"))
    return text.removesuffix("...\n").strip()
