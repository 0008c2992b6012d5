"""Containers of a local engine, each with a small Holdfast program as its first process: sandboxes and services."""
