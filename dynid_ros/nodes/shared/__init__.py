"""Parts that several nodes share: parameters, topics, services, start and end of processes."""
