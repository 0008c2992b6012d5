"""Python agents: imported in separate processes on this machine or in sandboxes, or in Holdfast's own process."""
