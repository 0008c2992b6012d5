"""Starts programs, reads their output, ends them, and cleans up what they leave behind."""
