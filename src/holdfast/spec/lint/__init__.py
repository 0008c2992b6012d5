"""Likely mistakes in a file, and the files that it names."""
