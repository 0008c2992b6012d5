"""What faults and rules a file asks for: their entries, the scenarios they make, and what reaches the agent."""
