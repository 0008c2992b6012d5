"""HTTP mocks as a service."""
