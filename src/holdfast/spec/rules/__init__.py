"""The faults and rules of a file: their entries, the scenarios they make, and which faults can reach the agent."""
