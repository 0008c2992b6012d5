"""Checks of what the agent called: one file each."""
