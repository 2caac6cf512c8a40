"""What happens beside a step: the story told in events, what it costs, and what ends training early."""
