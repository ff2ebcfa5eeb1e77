"""``make trial``: a new user's first days with a channel, typed as the documentation says, with live traffic."""
