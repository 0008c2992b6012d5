"""What is likely to be a mistake in a file, and the files that it names."""
