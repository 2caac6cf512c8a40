"""One settings file for every deployment; what differs comes from the environment (see docs/operate.md)."""

from __future__ import annotations

from pathlib import Path

import dj_database_url

from . import environment as env
from . import mailing

BASE_DIR = Path(__file__).resolve().parent.parent
STATE_DIR = Path(env.text("SHARDBOARD_STATE", str(BASE_DIR / ".state"))).resolve()

# Where nodes that are given an interpreter fetch its packages from: see webapp/fleet/provisioning.py
PIP_INDEX_URL = env.secret("SHARDBOARD_PIP_INDEX_URL")
PIP_EXTRA_INDEX_URL = env.secret("SHARDBOARD_PIP_EXTRA_INDEX_URL")
PIP_WHEELS = env.text("SHARDBOARD_PIP_WHEELS")
PIP_NO_INDEX = env.flag("SHARDBOARD_PIP_NO_INDEX")

SSH_AGENT = env.text("SHARDBOARD_SSH_AGENT", env.text("SSH_AUTH_SOCK"))  # asked for an identity that it holds alone
SAMPLES_DAYS = env.text("SHARDBOARD_SAMPLES_DAYS", "0")  # kept after a run's end; 0: for ever. See runs/retention.py
RANK_ENV = env.text("SHARDBOARD_RANK_ENV")  # a file, read at each launch: see runs/rank_env.py

DEBUG = env.flag("SHARDBOARD_DEBUG")
SECRET_KEY = env.secret("SHARDBOARD_SECRET_KEY") or env.kept_secret(STATE_DIR / "secret_key")
ALLOWED_HOSTS = env.words("SHARDBOARD_HOSTS", "localhost,127.0.0.1,[::1]")
CSRF_TRUSTED_ORIGINS = env.words("SHARDBOARD_ORIGINS")

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "channels",
    "ninja",  # brings the pages that show the API's schema, no CDN
    "webapp.accounts",
    "webapp.fleet",
    "webapp.datasets",
    "webapp.runs",
    "webapp.trials",
    "webapp.deliveries",
    "webapp.preflights",
    "webapp.leftovers",
    "webapp.notices",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "webapp.security.ContentSecurityPolicy",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "webapp.urls"
ASGI_APPLICATION = "webapp.asgi.application"
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "runs:list"
LOGOUT_REDIRECT_URL = "login"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "webapp" / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
            "builtins": ["webapp.show"],
        },
    }
]

# IMMEDIATE takes SQLite's write lock at BEGIN: two writers queue instead of failing half-way.
SQLITE_OPTIONS = {
    "timeout": 30,
    "transaction_mode": "IMMEDIATE",
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA busy_timeout=30000;",
}
POOL = {"min_size": 2, "max_size": 50, "timeout": 10.0}
DATABASES = {
    "default": dj_database_url.parse(
        env.secret("SHARDBOARD_DATABASE_URL") or f"sqlite:///{STATE_DIR / 'shardboard.sqlite3'}", conn_max_age=0
    )
}
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["OPTIONS"] = SQLITE_OPTIONS
    # A file, as in use: a database in memory knows no WAL, and its writers fail instead of queueing.
    DATABASES["default"]["TEST"] = {"NAME": str(STATE_DIR / "test.sqlite3")}
elif env.flag("SHARDBOARD_DATABASE_POOL"):  # set by webapp.asgi; PostgreSQL itself takes 100 connections
    DATABASES["default"]["CONN_HEALTH_CHECKS"] = True
    DATABASES["default"].setdefault("OPTIONS", {})["pool"] = POOL  # beside what the address asks for, as sslmode
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = env.secret("SHARDBOARD_REDIS_URL") or "redis://127.0.0.1:6379/0"
CHANNEL_LAYERS = {
    "default": {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer", "CONFIG": {"hosts": [REDIS_URL]}}
}

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True

NODE_MODULES = BASE_DIR / "webapp" / "frontend" / "node_modules"
STATIC_URL = "static/"
STATIC_ROOT = STATE_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "webapp" / "static"] + [
    (name, folder)
    for name, folder in (
        ("tabler", NODE_MODULES / "@tabler" / "core" / "dist"),
        ("htmx", NODE_MODULES / "htmx.org" / "dist"),
        ("uplot", NODE_MODULES / "uplot" / "dist"),
    )
    if folder.is_dir()
]
WHITENOISE_USE_FINDERS = True  # see statics.py
WHITENOISE_MAX_AGE = 0  # asked for anew by each page: after an upgrade an old module may lack what a new one imports

CURRENCY = env.text("SHARDBOARD_CURRENCY", "$")  # of the price of a GPU hour

# Data sets, by content hash; the workers read what the site wrote, so both see this folder.
DATASETS_DIR = STATE_DIR / "datasets"
DATA_UPLOAD_MAX_MEMORY_SIZE = 20 * 2**20
DATASET_MAX_BYTES = 2 * 2**30

# Notices by e-mail, and where webhooks may go: see webapp/notices
EMAIL_URL = env.secret("SHARDBOARD_EMAIL_URL")
_mail = mailing.parse(EMAIL_URL)
EMAIL_HOST, EMAIL_PORT, EMAIL_TIMEOUT = _mail.host, _mail.port, 10
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = _mail.user, _mail.password
EMAIL_USE_TLS, EMAIL_USE_SSL = _mail.tls, _mail.ssl
DEFAULT_FROM_EMAIL = env.text("SHARDBOARD_EMAIL_FROM")
WEBHOOK_PRIVATE = env.flag("SHARDBOARD_WEBHOOK_PRIVATE")

SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = env.flag("SHARDBOARD_HTTPS")
if (
    SESSION_COOKIE_SECURE
):  # the proxy in front says so; else the API's addresses, which clients send tokens to, are http
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_CONTENT_TYPE_NOSNIFF = True
X_FRAME_OPTIONS = "DENY"

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": env.text("SHARDBOARD_LOG_LEVEL", "INFO")},
    "loggers": {"asyncssh": {"level": "WARNING"}},
}
