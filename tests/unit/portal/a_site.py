"""A site's settings, for the tests of what follows from them."""

TOKEN = {"CONFIGPROXY_AUTH_TOKEN": "secret"}
FILE = """\
[hub]
name = "portal-test"
public_url = "http://0.0.0.0:18000"
api_url = "http://127.0.0.1:18081"
proxy_api_url = "http://127.0.0.1:18001"
state_dir = "/var/lib/portal-test/hub"
[authentication]
allowed_groups = ["data-scientists"]
admin_groups = ["portal-admins"]
contact = "Ada"
[authentication.ldap]
servers = ["ldap://127.0.0.1:13890"]
user_base = "ou=people,dc=portal,dc=example"
group_base = "ou=groups,dc=portal,dc=example"
[slurm]
config_file = "/etc/slurm-portal-test/slurm.conf"
launcher = "/opt/portal/slurm-launcher"
[session]
python = "/opt/session/bin/python"
memory_mb_without_gpu = 1536
tensorboard_python = "/opt/tensorboard/bin/python"
jupyter_path = ["/opt/share/jupyter"]
[session.folders]
templates = "/opt/templates"
"""
