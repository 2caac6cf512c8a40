#!/usr/bin/env bash
# Programs that tests need, each with its Debian package: installed where that is allowed, else named.
set -euo pipefail
export PATH=$PATH:/usr/sbin:/sbin

declare -A package=(
  [chromium]=chromium [curl]=curl [sshd]=openssh-server [ssh-agent]=openssh-client [ip]=iproute2 [iptables]=iptables [jq]=jq
  [initdb]=postgresql [DejaVuSans.ttf]=fonts-dejavu-core [libatomic.so.1]=libatomic1
)
there() {
  case $1 in
    initdb) compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || command -v initdb >/dev/null;;
    DejaVuSans.ttf) [ -e /usr/share/fonts/truetype/dejavu/DejaVuSans.ttf ];;
    libatomic.so.1) compgen -G '/usr/lib/*/libatomic.so.1' >/dev/null;;  # what Playwright's own Node needs
    *) command -v "$1" >/dev/null;;
  esac
}
lacking() { for program in "${!package[@]}"; do there "$program" || echo "${package[$program]}"; done; }

mapfile -t missing < <(lacking)
[ ${#missing[@]} -gt 0 ] || exit 0
command -v apt-get >/dev/null || { echo "not a Debian: the tests need ${missing[*]}"; exit 0; }
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
log=$(mktemp)
# A package's own set-up may fail where the programs are there all the same: ssl-cert's, where /etc/ssl is read-only.
apt-get install -y -qq --no-install-recommends "${missing[@]}" >"$log" 2>&1 || grep -E '^(E:|dpkg: error)' "$log" || true
mapfile -t missing < <(lacking)
[ ${#missing[@]} -eq 0 ] || { tail -30 "$log"; echo "still missing: ${missing[*]}" >&2; exit 1; }
rm "$log"
