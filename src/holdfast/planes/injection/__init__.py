"""Was a fault met: when an injection fires, what it does to a call, and what of it the agent felt."""
