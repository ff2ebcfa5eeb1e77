"""What a server says of itself: its catalogue, its accounts; and engines to ask it. Writes nothing."""
