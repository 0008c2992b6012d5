"""The world a file asks for."""
