"""An identity's key is replaced only once every node has let the new one in."""

from __future__ import annotations

import pytest

from tests.workers.world import World
from training.spec.lint import Refused
from webapp.fleet import identities
from webapp.fleet.models import Identity, NextKey, NodeChange
from webapp.fleet.ssh import fingerprint
from workers.next_key import try_key
from workers.preflight.node import check_node


def test_the_old_key_goes_when_the_new_one_is_let_in_everywhere(world: World) -> None:
    old = world.identity.public_key
    following = identities.begin_replacement(world.identity, "ada")
    assert identities.begin_replacement(world.identity, "eve").public_key == following.public_key, "made once"
    with pytest.raises(Refused, match="not tried"):
        identities.finish_replacement(world.identity, "ada")
    world.hosts[0].accepted = following.public_key
    identities.ask_try(following)
    try_key(world.identity.pk)
    answers = {node.name: why for node, why in NextKey.objects.get().answers()}
    assert answers["n0"] == ""
    assert "does not accept the key" in str(answers["n1"])
    assert fingerprint(following.public_key) in str(answers["n1"]), "it was the new key that was tried"
    with pytest.raises(Refused, match="n1"):
        identities.finish_replacement(world.identity, "ada")
    assert Identity.objects.get().public_key == old
    world.hosts[1].accepted = following.public_key
    identities.ask_try(NextKey.objects.get())
    try_key(world.identity.pk)
    assert not NextKey.objects.get().is_being_tried
    identities.finish_replacement(world.identity, "ada")
    assert Identity.objects.get().public_key == following.public_key
    assert not NextKey.objects.exists()
    assert NodeChange.objects.filter(actor="ada", text__contains="new key of key").count() == 2
    check_node(world.nodes[1].pk)
    world.nodes[1].refresh_from_db()
    assert world.nodes[1].problem == ""
    try_key(world.identity.pk)  # delivered once more: there is nothing to try
