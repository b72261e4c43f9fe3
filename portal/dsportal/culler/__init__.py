"""The hub's service that ends sessions which nobody uses.

``python -I -m dsportal.culler``, started by the hub: jupyterhub-idle-culler, which looks at all
servers every so often, with a hook (`decision`) that goes by what the sessions themselves say.
"""
