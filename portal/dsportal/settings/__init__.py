"""The portal's settings: each key with its type, unit, default and one sentence.

``portal.toml`` is the product's surface: a room for each of its tables here, all of them together
in ``whole``. ``docs/reference/settings.md`` is made from these.
"""
