"""Kits for authors of plug-ins: what every backend, fault and check of a family must keep."""
