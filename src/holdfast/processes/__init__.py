"""Programs that Holdfast starts: how they are read, ended, and what they leave behind."""
