"""The world that a file describes."""
