#!/usr/bin/env bash
# Debian packages that tests need: installed where that is allowed, else named.
set -euo pipefail

needed=(chromium curl fonts-dejavu-core openssh-server iproute2 iptables jq postgresql)
command -v dpkg-query >/dev/null || { echo "not a Debian: the tests need ${needed[*]}"; exit 0; }

missing=()
for package in "${needed[@]}"; do
  [ "$(dpkg-query -Wf '${Status}' "$package" 2>/dev/null)" = "install ok installed" ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" != 0 ]; then
  echo "the tests need Debian packages that are missing: sudo apt-get install ${missing[*]}"
  exit 0
fi
echo "==> Debian packages: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# Debian would start a PostgreSQL of its own here; the tests start theirs.
mkdir -p /etc/postgresql-common
[ -e /etc/postgresql-common/createcluster.conf ] || echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
