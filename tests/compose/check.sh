#!/usr/bin/env bash
# Against a started and healthy compose stack: log in, use the API, open a socket, send a task through, and see a
# host without torch refused. Ends with status 0 when all of it holds. Run it from the project's folder.
set -euo pipefail
cd "$(dirname "$0")/../.."
site=http://127.0.0.1:${SHARDBOARD_PORT:-8000}
step() { printf -- '--- %s\n' "$*"; }
web() { docker compose exec -T "$@"; }
manage() { web web python manage.py "$@"; }
must_fail() { if "$@" >/dev/null 2>&1; then echo "this should have failed: $*" >&2; exit 1; fi; }

step "the published port answers, and all parts are well"
curl -fsS "$site/healthz"; echo

step "the service runs without rights, without torch, and with no secret in its environment"
test "$(web web id -u)" = 10001
must_fail web web python -c 'import torch'
must_fail web web touch /app/x
must_fail web web grep -qF "$(web web cat /secrets/redis_password)" /proc/1/environ
must_fail web web grep -qF "$(web web cat /secrets/postgres_password)" /proc/1/environ

step "an admin and a token"
DJANGO_SUPERUSER_PASSWORD=$(od -An -tx1 -N12 /dev/urandom | tr -d ' \n')
export DJANGO_SUPERUSER_PASSWORD
web -e DJANGO_SUPERUSER_PASSWORD web python manage.py createsuperuser --noinput --username admin --email admin@example.org
TOKEN=$(manage create_token admin)
export TOKEN

step "a host without torch joins"
AUTHORIZED_KEY=$(manage make_identity check | grep -o 'ssh-ed25519 .*')
export AUTHORIZED_KEY
docker compose --profile check up -d --build --wait bare-node
key=$(docker compose --profile check exec -T bare-node ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub | cut -d' ' -f2)
manage add_node check bare --address bare-node --user trainer --identity check --cpu \
  --python /usr/local/bin/python3 --scratch /home/trainer/scratch --fingerprint "$key"

step "a data set and a model"
printf '{"messages": [{"role": "user", "content": "two and two?"}, {"role": "assistant", "content": "%s"}]}\n' four 4 IV |
  web web sh -c 'cat >/tmp/train.jsonl && python manage.py add_dataset sums /tmp/train.jsonl && rm /tmp/train.jsonl'
manage add_model base /home/trainer/model

step "a task goes through to the worker"
manage shell -c 'from webapp import dispatch; from webapp.fleet.models import Node
dispatch.send(dispatch.CHECK_NODE, Node.objects.get(name="bare").pk)'

step "pages, API, socket; the run is refused by preflight"
web -e DJANGO_SUPERUSER_PASSWORD -e TOKEN web python - <tests/compose/probe.py

step "a restarted Redis is found again"
docker compose restart redis
docker compose up -d --no-build --wait --wait-timeout 120
# The containers may be called healthy by their last check, which was before the restart: healthz is asked itself.
curl -fsS --retry 60 --retry-delay 1 "$site/healthz"; echo
echo "compose check: all of it holds"
