"""A run on a terminal or in a pipe: the summary, its parts, and the listeners that show progress."""
