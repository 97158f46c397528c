"""References: none is lost and none is left, however often a call fails."""

import pytest

from campaign.laws import entries, references

CALLS = {name: (call, met) for name, call, met in entries()}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_leaves_references_as_they_were(name):
    change = references(*CALLS[name], times=300)
    assert max(map(abs, change)) < 100, change


@pytest.mark.long
@pytest.mark.parametrize("name", CALLS)
def test_a_hundred_thousand_calls_leave_references_as_they_were(name):
    """Of traces, which take longer, a thousand."""
    times = 1000 if "trace" in name else 100_000
    change = references(*CALLS[name], times=times)
    assert max(map(abs, change)) < times // 10, change
