"""HTTP agents: running servers, or servers that Holdfast starts."""
