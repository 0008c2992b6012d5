"""Checks on the agent's answer and how it ended."""
