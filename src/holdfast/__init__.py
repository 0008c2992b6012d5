"""Holdfast holds an AI agent to its contract while the world breaks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from holdfast.errors import InjectedError
    from holdfast.planes.registry import ToolRegistry, tool

__all__ = ["InjectedError", "ToolRegistry", "__version__", "tool"]

_HOMES = {
    "InjectedError": "holdfast.errors",
    "ToolRegistry": "holdfast.planes.registry",
    "tool": "holdfast.planes.registry",
}


def __getattr__(name: str) -> Any:
    """Public names load on first use, so that importing the package costs nothing."""
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
