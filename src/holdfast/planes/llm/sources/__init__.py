"""What answers a model call: a provider, a server of the user's, a script or a recording."""
