"""Holdfast holds an AI agent to its contract while the world breaks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.api.functions import build, load, rejudge, run, run_async
    from holdfast.api.loaded_spec import LoadedSpec
    from holdfast.api.run_result import RunResult
    from holdfast.api.values import check, fault
    from holdfast.errors import HoldfastError, InjectedError, SpecError
    from holdfast.planes.registry import ToolRegistry, tool
    from holdfast.version import __version__

__all__ = [
    "HoldfastError",
    "InjectedError",
    "LoadedSpec",
    "RunResult",
    "SpecError",
    "ToolRegistry",
    "__version__",
    "build",
    "check",
    "fault",
    "load",
    "rejudge",
    "run",
    "run_async",
    "tool",
]

_HOMES = {
    "HoldfastError": "holdfast.errors",
    "InjectedError": "holdfast.errors",
    "LoadedSpec": "holdfast.api.loaded_spec",
    "RunResult": "holdfast.api.run_result",
    "SpecError": "holdfast.errors",
    "ToolRegistry": "holdfast.planes.registry",
    "__version__": "holdfast.version",
    "build": "holdfast.api.functions",
    "check": "holdfast.api.values",
    "fault": "holdfast.api.values",
    "load": "holdfast.api.functions",
    "rejudge": "holdfast.api.functions",
    "run": "holdfast.api.functions",
    "run_async": "holdfast.api.functions",
    "tool": "holdfast.planes.registry",
}


def __getattr__(name: str) -> Any:
    """Load a public name on first use, so that importing the package costs nothing."""
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'holdfast' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the names that a prompt or a notebook completes."""
    return list(__all__)
