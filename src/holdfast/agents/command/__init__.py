"""Command agents: programs that are run for every turn."""
