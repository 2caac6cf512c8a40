from __future__ import annotations

import pytest
import torch

from training.cpu_fsdp import shard_on_cpu
from training.spec.lint import Refused


def test_it_refuses_where_an_accelerator_is_present(monkeypatch: pytest.MonkeyPatch) -> None:
    from accelerate.state import AcceleratorState

    before = AcceleratorState.__init__
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    with pytest.raises(Refused, match="has an accelerator"):
        shard_on_cpu()
    assert AcceleratorState.__init__ is before
