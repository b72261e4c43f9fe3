"""The Data Scientist Portal: login, pages and settings around the spawner."""
