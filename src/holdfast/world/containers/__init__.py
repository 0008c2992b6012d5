"""Containers of a local engine, each with a small program of ours as its first process: sandboxes and services."""
