"""Tool results on their way to the model: whose call each answers, and which faults it meets."""
