#!/bin/sh
# Set up a small site's Slurm as its administrators might, by hand, with paths of their own.
# It knows nothing of a portal.
#
#     set_up_slurm.sh head|compute|login < MUNGE-KEY
#
# Jobs and usage are hidden from others, each node's GPUs have a type, and nobody runs a job
# without an account; the accounting has QOS.
set -eu

etc=/etc/physics
state=/var/lib/physics

install -m 400 -o munge -g munge /dev/stdin /etc/munge/munge.key
systemctl enable --now munge

# People come from the directory.
cat > /etc/nslcd.conf <<EOF
uid nslcd
gid nslcd
uri ldaps://10.77.0.21 ldaps://10.77.0.22
base dc=site,dc=test
tls_cacertfile /etc/ssl/site.pem
EOF
chmod 600 /etc/nslcd.conf
sed -i -E 's/^(passwd|group|shadow):.*/\1: files ldap/' /etc/nsswitch.conf
systemctl enable nslcd
systemctl restart nslcd

mkdir -p $etc $state/spool
cat > $etc/slurm.conf <<EOF
ClusterName=physics
SlurmctldHost=head(10.77.0.10)
SlurmUser=slurm
AuthType=auth/munge
CredType=cred/munge
PrivateData=jobs,usage
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=10.77.0.10
AccountingStorageTRES=gres/gpu
AccountingStorageEnforce=associations,limits,qos
AccountingStoreFlags=job_script
StateSaveLocation=$state/slurmctld
SlurmdSpoolDir=$state/spool
SlurmctldPidFile=/run/physics-slurmctld/pid
SlurmdPidFile=/run/physics-slurmd/pid
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=2048
ProctrackType=proctrack/cgroup
TaskPlugin=task/cgroup
GresTypes=gpu
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
NodeName=compute1 NodeAddr=10.77.0.11 Sockets=2 CoresPerSocket=20 RealMemory=393216 Gres=gpu:v100:4
NodeName=compute2 NodeAddr=10.77.0.12 Sockets=2 CoresPerSocket=20 RealMemory=393216 Gres=gpu:a100:4
PartitionName=batch Nodes=compute[1-2] MaxTime=2-00:00:00 Default=YES State=UP
EOF
cat > $etc/gres.conf <<EOF
NodeName=compute1 Name=gpu Type=v100 File=/dev/gpu[0-3]
NodeName=compute2 Name=gpu Type=a100 File=/dev/gpu[0-3]
EOF
cat > $etc/cgroup.conf <<EOF
CgroupPlugin=cgroup/v1
CgroupMountpoint=/sys/fs/cgroup
ConstrainDevices=yes
ConstrainRAMSpace=yes
EOF

# Homes are there already; all hosts see them.
for name in user1 user2 user3 admin1; do
    install -d -m 700 -o $name -g "$(id -g $name)" /home/$name
done

# Daemons find the settings by this variable, as what people type does.
echo "export SLURM_CONF=$etc/slurm.conf" > /etc/profile.d/slurm.sh

[ "$1" = login ] && exit

daemon() {
    cat > "/etc/systemd/system/physics-$1.service" <<EOF
[Unit]
After=munge.service nslcd.service mariadb.service network-online.target
[Service]
Environment=SLURM_CONF=$etc/slurm.conf
User=$2
RuntimeDirectory=physics-$1
ExecStart=/usr/sbin/$1 -D
KillMode=process
Delegate=yes
Restart=on-failure
[Install]
WantedBy=multi-user.target
EOF
    systemctl daemon-reload
    systemctl enable --now "physics-$1"
}

if [ "$1" = compute ]; then
    daemon slurmd root
    exit
fi

install -d -o slurm -g slurm $state/slurmctld
systemctl enable --now mariadb
mariadb <<EOF
CREATE DATABASE slurm_acct_db;
CREATE USER 'slurm'@'localhost' IDENTIFIED VIA unix_socket;
GRANT ALL ON slurm_acct_db.* TO 'slurm'@'localhost';
EOF
cat > $etc/slurmdbd.conf <<EOF
AuthType=auth/munge
DbdHost=head
DbdAddr=10.77.0.10
SlurmUser=slurm
StorageType=accounting_storage/mysql
StorageUser=slurm
StorageLoc=slurm_acct_db
PidFile=/run/physics-slurmdbd/pid
EOF
chown slurm: $etc/slurmdbd.conf
chmod 600 $etc/slurmdbd.conf
daemon slurmdbd slurm

export SLURM_CONF=$etc/slurm.conf
daemon slurmctld slurm

# The controller tells the accounting of the cluster and its GPUs first.
tries=0
until sacctmgr -n list tres | grep -q gpu; do
    tries=$((tries + 1))
    [ $tries -lt 60 ] || { echo "the accounting knows no GPU" >&2; exit 1; }
    sleep 0.5
done
sacctmgr -i add qos interactive MaxTRESPerUser=gres/gpu=4
sacctmgr -i add account ml
for name in user1 user2 user3 admin1; do
    sacctmgr -i add user $name account=ml qos=normal,interactive defaultqos=normal
done
