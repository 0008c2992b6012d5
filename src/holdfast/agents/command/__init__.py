"""Command agents: programs that run once per turn."""
