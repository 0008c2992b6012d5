"""Stage 6: a Run rendered for people and programs. Pure, except the two listeners and `files`."""
