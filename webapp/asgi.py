"""ASGI entry point: files, pages and API over HTTP, the live view over a websocket."""

import gc
import os
import sys

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
# A thread of each request would connect anew, and PostgreSQL begin with empty caches: a third of the list's time.
os.environ.setdefault("SHARDBOARD_DATABASE_POOL", "1")
http = get_asgi_application()
del os.environ["SHARDBOARD_DATABASE_POOL"]  # the settings have it; not for processes that this one starts

from channels.auth import AuthMiddlewareStack  # noqa: E402  models load only after the line above
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from django.urls import get_resolver  # noqa: E402

from webapp.runs.routing import websocket_urlpatterns  # noqa: E402
from webapp.security import allowed_origins_only  # noqa: E402
from webapp.statics import Statics  # noqa: E402

application = ProtocolTypeRouter(
    {
        "http": Statics(http),
        "websocket": allowed_origins_only(AuthMiddlewareStack(URLRouter(websocket_urlpatterns))),
    }
)

# A thread that makes a page gives way after this. With Python's 5 ms, what sockets read meanwhile waits so long several
# times, once for each answer of the database: hundreds of ms where twenty pages ask at once.
sys.setswitchinterval(0.0005)
_ = get_resolver().url_patterns  # loads all views, which the first page would wait for
# What is here now stays. Each full collection would look through it: 70 to 120 ms, in which no page gets anything.
gc.collect()
gc.freeze()
