#!/bin/sh
# AUTHORIZED_KEY: the public key that may log in as trainer.
set -eu
printf '%s\n' "$AUTHORIZED_KEY" >/home/trainer/.ssh/authorized_keys
chown trainer: /home/trainer/.ssh/authorized_keys
chmod 600 /home/trainer/.ssh/authorized_keys
exec /usr/sbin/sshd -D -e -o HostKey=/etc/ssh/ssh_host_ed25519_key -o PasswordAuthentication=no
