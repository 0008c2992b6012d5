"""Checks on what the agent answered and how the answer came."""
