"""A person's orders to a channel: stop, skip; and what a block must know of them."""
