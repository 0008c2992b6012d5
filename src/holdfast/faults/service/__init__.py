"""Faults of services: delays, and database errors in transactions. Other network faults are in `network`."""
