"""The line to a process that holds programs for us, and those programs as we see them."""
