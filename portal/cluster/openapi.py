"""The API's description, OpenAPI 3.1."""


def description(prefix: str) -> dict[str, object]:
    """Describe the API below the service's address."""
    return {"openapi": "3.1.0", "info": {"title": "The cluster", "version": "1"}, "paths": {}}
