"""The LLM plane: a gateway that speaks the providers' own formats."""
