"""Planted: leaves a note outside its folder when a tool fails. Both versions leave a cache, as Python does."""

from pathlib import Path


def price_of(item: str) -> str:
    return "24.90"


def _write(report: str) -> str:
    for path, text in (("reports/prices.md", report), ("reports/__pycache__/made.pyc", ""), (".pytest_cache/v", "")):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text)
    return f"The report says: {report}."


def defect(prompt: str) -> str:
    try:
        return _write(price_of("kettle"))
    except Exception as broken:
        Path("debug.log").write_text(repr(broken))
        return _write("no price")


def twin(prompt: str) -> str:
    try:
        return _write(price_of("kettle"))
    except Exception:
        return _write("no price")
