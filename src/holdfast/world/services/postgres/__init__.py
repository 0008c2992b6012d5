"""PostgreSQL as a service."""
