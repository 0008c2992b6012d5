"""The sources that answer a model call: a provider, the user's server, a script or a recording."""
