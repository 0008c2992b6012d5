"""Sandbox backends: where an agent runs, what it sees there, and its resource limits."""
