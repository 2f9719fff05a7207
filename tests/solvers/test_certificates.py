"""What a certificate says is true: hard problems of all kinds and magnitudes against answers that are all but exact.

The problems are those of `attack.twists`; `tests/attack` shows that a wrong certificate would be found.
"""

import pytest
from attack.certificates import attempt


def _found(seeds):
    return [f"{one.seed} {one.kind}: {one.title}" for seed in seeds for one in attempt(seed)]


def test_no_bound_is_violated():
    assert not _found(range(30))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(10_000, 15_000, 250))
def test_no_bound_of_many_is_violated(first):
    assert not _found(range(first, first + 250))
