"""Checks on the agent's calls: one file each."""
