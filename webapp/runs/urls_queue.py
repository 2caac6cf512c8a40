"""The queue, at /queue/."""

from django.urls import path

from .views import queue

app_name = "queue"
urlpatterns = [
    path("", queue.queue, name="queue"),
    path("board", queue.board, name="board"),
    path("pause", queue.pause, name="pause"),
    path("go-on", queue.unpause, name="unpause"),
]
