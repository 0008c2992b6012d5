"""Faults of the agent's machine: its files, its clock, its processes."""
