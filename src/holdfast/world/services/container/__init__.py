"""Containers of any image as a service."""
