"""The Celery app: `celery -A workers.app worker` and `celery -A workers.app beat`.

A message only says "look again": a lost one costs a moment, one delivered twice costs a look.
"""

from __future__ import annotations

import os

import django
from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
django.setup()

from django.conf import settings  # noqa: E402  settings come with django.setup()

from .delivery import outlive_redis  # noqa: E402

SWEEP = "workers.sweep"
SWEEP_SECONDS = 5.0

outlive_redis()
app = Celery("shardboard", broker=settings.REDIS_URL, include=["workers.tasks"])
app.conf.update(
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    task_ignore_result=True,
    worker_prefetch_multiplier=1,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    broker_transport_options={"visibility_timeout": 3600, "socket_connect_timeout": 5, "socket_keepalive": True},
    worker_hijack_root_logger=False,
    worker_redirect_stdouts=False,
    beat_schedule={SWEEP: {"task": SWEEP, "schedule": SWEEP_SECONDS, "options": {"expires": SWEEP_SECONDS}}},
)
