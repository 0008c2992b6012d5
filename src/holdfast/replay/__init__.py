"""Recorded sessions to tasks, and failed trials to sessions."""
