"""Converts recorded sessions to tasks, and failed trials to sessions."""
