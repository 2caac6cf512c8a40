"""What happens to messages that a worker holds when its connection to Redis goes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kombu import Connection
from kombu.transport import redis

import workers.app  # noqa: F401  importing it is what makes channels hand out these messages
from workers.delivery import Message


@pytest.fixture
def connection(redis_url: str) -> Iterator[Connection]:
    with Connection(redis_url) as connection:
        yield connection


@pytest.fixture
def message(connection: Connection) -> Message:
    queue = connection.SimpleQueue("looks")
    queue.put("look")
    found: Message = queue.get(timeout=20)
    return found


def test_a_message_is_acknowledged(message: Message) -> None:
    message.ack()
    assert message.acknowledged
    assert message.channel.client.hlen(message.channel.unacked_key) == 0


def test_one_that_outlived_its_connection_is_let_go(connection: Connection, message: Message) -> None:
    connection.collect()
    message.ack()
    message.reject()
    assert not message.acknowledged


def test_closing_gives_nothing_back(connection: Connection, message: Message) -> None:
    """Giving back needs the Redis that may just have gone; the message comes again when its time is over."""
    channel = message.channel
    connection.close()
    with Connection(connection.as_uri(include_password=True)) as other:
        client = other.default_channel.client
        assert client.hlen(channel.unacked_key) >= 1
        client.delete(channel.unacked_key, channel.unacked_index_key)


def test_every_channel_of_the_worker_hands_them_out() -> None:
    assert redis.Channel.Message is Message
