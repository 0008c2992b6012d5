"""Decides whether a fault was met: when an injection fires, what it does to a call, and what the agent received."""
