"""Where programs work, as they see it."""

WORKSPACE = "/workspace"
HOME = "/home/agent"
"""What programs keep for themselves: no part of their work."""
