"""The world around one trial: sandbox, services, fixtures, secrets, network, clock, audit."""
