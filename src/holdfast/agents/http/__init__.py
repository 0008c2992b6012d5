"""HTTP agents: servers that run, or that Holdfast starts."""
