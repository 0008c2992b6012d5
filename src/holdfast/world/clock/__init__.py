"""The agent's clock: a library that shifts what its programs read as the time of day, and the file that steers it."""
