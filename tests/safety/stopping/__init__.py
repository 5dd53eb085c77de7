"""Stop analysis: brakes, stick and slip."""
