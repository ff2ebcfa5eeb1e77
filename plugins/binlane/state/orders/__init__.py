"""An operator's orders to a channel: stop and skip; and how a block reads them."""
