"""The control machine and the patched server read a policy alike: what one refuses, the other does too."""

import itertools

import pytest
import server_policy

from blackwell import load_policy

FULL, MOST = 3, 16
BOUNDS = (1, 2, 4, 8, 15, 16, 0, "4", None)
STEPS = ("full", 3, 1, 0, 4, -1, "none", True)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The server's own module."""
    return server_policy.load(tmp_path_factory.mktemp("server"))


def read(server, policy):
    """The policy as the server resolves it, or None if it refuses it."""
    try:
        made = server.from_object(policy, FULL)
        server.check_bound(made, MOST)
    except server.LoadPolicyError:
        return None
    return without_version(made)


def without_version(made):
    """A policy that the server has read, as its live state shows it."""
    return {name: value for name, value in made.as_json().items() if name != "version"}


def tier(bound, steps):
    return {"steps": steps} if bound is None else {"max_batch": bound, "steps": steps}


def policies():
    """Tables of one, two and three tiers, right and wrong ones, and what else a policy can be."""
    one = [[tier(bound, steps)] for bound in BOUNDS for steps in STEPS]
    two = [[tier(bound, steps), tier(None, last)] for bound in BOUNDS for steps in STEPS for last in (0, 1, "full")]
    bounds = itertools.product((2, 4, 8), (4, 8, 15, 16), ("full", 2), (1, 2, 0))
    three = [[tier(a, first), tier(b, then), tier(None, 0)] for a, b, first, then in bounds]
    more = ({}, {"margin": 0}, {"margin": 3, "dwell": 1}, {"margin": 4}, {"margin": -1}, {"dwell": 0}, {"dwell": 2.5})
    yield from ({"version": 1, "tiers": tiers, **extra} for tiers in one + two + three for extra in more)
    good = {"version": 1, "tiers": [tier(4, "full"), tier(None, 0)]}
    yield from (
        [],
        None,
        {},
        {**good, "version": 2},
        {**good, "version": True},
        {**good, "more": 1},
        {**good, "tiers": {}},
    )


def test_they_refuse_the_same_and_resolve_alike(server):
    taken = 0
    for policy in policies():
        resolved = read(server, policy)
        problems = load_policy.problems(policy, FULL, MOST)
        assert (resolved is None) == bool(problems), (policy, problems, resolved)
        if resolved is not None:
            taken += 1
            assert load_policy.resolved(policy, FULL) == resolved, policy
    assert taken > 50


def test_a_threshold_is_the_same_policy(server):
    for threshold in range(1, MOST):
        asked = load_policy.of_threshold(threshold)
        assert load_policy.resolved(asked, FULL) == without_version(server.from_threshold(threshold, FULL))
