"""What nodes of all kinds need: parameters, topics, services, start and end."""
