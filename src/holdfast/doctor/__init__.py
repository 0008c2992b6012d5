"""`holdfast doctor`: checks which faults this agent can meet on this machine with this spec."""
