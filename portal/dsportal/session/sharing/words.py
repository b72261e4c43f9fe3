"""Messages to users about sharing."""

NO_AUDIENCE = "Choose whom to share with: user names, one group, or everybody who has the link."
NO_USER = "There is no user {name} on this cluster."
NO_GROUP = "You are not in a group {name}; you can share with your own groups only."
NO_ACL = (
    "This storage has no ACLs, so it cannot give individual users read access. Share with a group, "
    "or with everybody who has the link."
)
NO_FOLDER = (
    "Your folder for shared notebooks, {folder}, cannot be used: {reason}. Tell the "
    "administrators: session.shares_folder."
)
NO_NOTEBOOK = "{path} is not a notebook. Only notebooks are shared."
TOO_LARGE = (
    "{name} is larger than {limit_mib} MiB. Clear the outputs of cells (Edit, Clear Outputs of All "
    "Cells), then share it."
)
NOT_READ = "{path} cannot be read: {reason}."
NO_SHARE = "You do not share this any more."
BAD_ORDER = 'The body must be {"path": TEXT, "kind": TEXT, "names": [TEXT]}, and nothing else.'
NOT_FOR_YOU = "{owner} has not shared this with you, or no longer shares it. Ask for a new link."
NOT_SHOWN = (
    "This notebook cannot be shown: it is damaged, too large, or takes too long. "
    "A copy may open in JupyterLab."
)
