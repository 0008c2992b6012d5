"""Faults of services: late answers, and what databases do to transactions. Others of the network are in `network`."""
