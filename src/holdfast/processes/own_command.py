"""The mark of commands that Holdfast itself runs beside an agent. Standard library only."""

OWN_COMMAND = "HOLDFAST_OWN_COMMAND"
"""A variable in their environment: what such a command touches, the agent did not touch."""
