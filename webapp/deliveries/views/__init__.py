"""Pages of destinations and deliveries."""
