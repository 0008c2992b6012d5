"""Golden prompts to mutated tasks."""
