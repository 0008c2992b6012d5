"""The finance agent that ships with Holdfast: an example to run, to read and to copy."""
