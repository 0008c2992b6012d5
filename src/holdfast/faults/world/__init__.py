"""Faults of the machine that an agent runs on: its files, its clock, its processes."""
