"""How much storage GPUs need to be fed: the papers' rule, with their figures or one's own."""
