"""The files that `holdfast init` writes."""
