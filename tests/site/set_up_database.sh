#!/bin/sh
# Set up a small site's PostgreSQL as its administrators might. It knows nothing of a portal.
#
#     set_up_database.sh ADDRESS NETWORK < PASSWORD
set -eu
read -r password
cluster=$(echo /etc/postgresql/*/main)
echo "listen_addresses = '$1'" > "$cluster/conf.d/site.conf"
echo "host portal portal $2 scram-sha-256" >> "$cluster/pg_hba.conf"
systemctl enable --now postgresql
runuser -u postgres -- psql -q --set=ON_ERROR_STOP=1 --set=password="$password" <<EOF
CREATE ROLE portal LOGIN PASSWORD :'password';
CREATE DATABASE portal OWNER portal;
EOF
