"""Where programs work, as they see it."""

WORKSPACE = "/workspace"
