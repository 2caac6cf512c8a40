"""A ready export sent elsewhere: destinations, and the deliveries that bring it there."""
