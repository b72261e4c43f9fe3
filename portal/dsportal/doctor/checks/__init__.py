"""Health checks: each module asks one kind of part, and lets ``judgement`` say what it means."""
