"""Python agents: imported in processes of their own, on this machine or in sandboxes, or in ours."""
