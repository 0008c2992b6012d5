"""Finds the smallest sets of faults that break an agent."""
