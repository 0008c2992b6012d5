"""Stage 6: renders a Run for people and programs. Pure, except the two listeners and `files`."""
