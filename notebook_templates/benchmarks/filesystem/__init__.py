"""Loads on storage, and the folder and files of a user on it."""
