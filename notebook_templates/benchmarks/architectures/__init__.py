"""The papers' networks in PyTorch."""
