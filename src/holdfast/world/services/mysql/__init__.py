"""MariaDB or MySQL as a service."""
