"""Tests here fail if they leave a task, a socket or a complaint of asyncio behind."""

from __future__ import annotations

from http1_kit import pytest_pyfunc_call as pytest_pyfunc_call
