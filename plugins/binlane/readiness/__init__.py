"""What a channel and its first copy will need: privileges, settings, room; checked before the first write."""
