"""Sandbox backends: where an agent runs, what it sees there, and what it may use up."""
