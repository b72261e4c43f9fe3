"""Pages of the hub, and what it tells the pages of sessions."""
