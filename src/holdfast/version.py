"""The version, in a module that imports nothing: whoever needs it need not import the public names."""

from __future__ import annotations

__version__ = "0.1.0"
