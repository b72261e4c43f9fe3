"""SSH into a session: from a terminal of one's own, VS Code, scp or rsync."""
