"""What may be written in a file: the schema for editors, the reference, and a page for each plug-in."""
