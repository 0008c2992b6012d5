"""What a file may contain: the schema for editors, the reference, and a page for each plug-in."""
