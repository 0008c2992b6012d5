"""The viewer: a local page over all runs of a project."""
