"""What a program seems to have missed, by its own words."""

from __future__ import annotations

import pytest

from holdfast.agents.command.channels import find_missing_facilities


@pytest.mark.parametrize(
    ("printed", "wants"),
    [
        ("OSError: [Errno 25] Inappropriate ioctl for device", "a terminal"),
        ("RuntimeError: No CUDA GPUs are available", "a GPU"),
        ("sh: 1: nvidia-smi: not found", "a GPU"),
        ("ImportError: libcuda.so.1: cannot open shared object file", "a GPU"),
        ("BrowserType.launch: Executable doesn't exist at /root/.cache/ms-playwright/chromium/chrome", "a browser"),
        ("Error: no DISPLAY: Missing X server or $DISPLAY", "a browser"),
        ("Failed to launch the browser process!", "a browser"),
        ("ValueError: prices of a GPU are unknown", ""),
        ("Traceback: KeyError: 'browser'", ""),
    ],
)
def test_the_means_are_named(printed: str, wants: str) -> None:
    found = [*find_missing_facilities(printed, sandboxed=True)]
    assert [wants in note for note in found] == ([True] if wants else [])
    if wants != "a terminal":
        assert [*find_missing_facilities(printed, sandboxed=False)] == []
