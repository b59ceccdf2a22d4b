"""Points become a policy that a server takes: on made-up servers, whose best policy is known."""

import json
import math
from pathlib import Path

import pytest
from curves import node, point, points

from blackwell import load_policy
from blackwell.bench import arms, crossover, hysteresis, policy, tiers, words
from blackwell.bench import points as files
from blackwell.bench.errors import BenchError
from blackwell.bench.tiers import Tier

DATA = Path(__file__).parents[2] / "docs" / "data"


def derive(*arguments, **named):
    """The policy of made-up points, which must be one for a server of 3 steps and 256 requests."""
    derived = policy.derive(points(*arguments, **named))
    assert load_policy.problems(json.loads(json.dumps(derived.policy)), 3, 256) == []
    return derived


def tiers_of(derived):
    return [(tier.get("max_batch"), tier["steps"]) for tier in derived.policy["tiers"]]


@pytest.mark.parametrize(
    ("ratios", "expected"),
    [
        ({"full": {4: 2.0, 16: 0.5}}, [(7, "full"), (None, 0)]),
        ({"full": {1: 2.0, 250: 1.1}}, [(None, "full")]),
        ({"full": {1: 0.9, 250: 0.5}}, [(None, 0)]),
        ({"full": {1: 1.0, 250: 1.0}}, [(None, 0)]),  # a tie has no steps
        ({"full": {9: 2.0}}, [(None, "full")]),
        ({"full": {9: 0.5}}, [(None, 0)]),
        # Not monotonic: the smallest worst loss.
        ({"full": {4: 1.5, 16: 0.98, 64: 2.0, 250: 0.5}}, [(126, "full"), (None, 0)]),
        ({"full": {1: 1.5, 4: 0.5, 16: 1.05, 64: 0.5}}, [(1, "full"), (None, 0)]),
        # From full to reduced half-way from 4 to 16, to plain half-way from 16 to 64.
        (
            {"full": {4: 4.0, 16: 1.0, 64: 0.2}, "reduced1": {4: 2.0, 16: 2.0, 64: 0.5}},
            [(7, "full"), (31, 1), (None, 0)],
        ),
        # Fewer steps that win nowhere; that tie with more; that skip one.
        ({"full": {4: 2.0, 16: 0.5}, "reduced1": {4: 1.5, 16: 0.9}}, [(7, "full"), (None, 0)]),
        ({"full": {4: 2.0, 16: 0.5}, "reduced1": {4: 2.0, 16: 0.5}}, [(7, 1), (None, 0)]),
        (
            {"full": {4: 2.0, 16: 0.2}, "reduced2": {4: 1.5, 16: 0.5}, "reduced1": {4: 1.0, 16: 2.0}},
            [(5, "full"), (None, 1)],
        ),
        # One that was not measured everywhere is chosen only where it was.
        (
            {"full": {4: 4.0, 16: 1.5, 64: 0.2}, "reduced1": {16: 2.0, 64: 0.5}},
            [(4, "full"), (31, 1), (None, 0)],
        ),
    ],
)
def test_the_tiers_of_curves_without_noise(ratios, expected):
    assert tiers_of(derive(ratios)) == expected


def test_tiers_go_by_the_batch_that_the_server_counted():
    assert tiers_of(derive({"full": {4: 2.0, 16: 0.5}}, batch=lambda level: level / 2)) == [(3, "full"), (None, 0)]


def test_a_tie_within_noise_has_fewer_steps():
    noisy = {"full": {4: 1.5, 16: 1.5, 64: 1.01, 250: 0.6}}
    derived = derive(noisy, noise=0.05)
    bound = derived.policy["tiers"][0]["max_batch"]
    assert bound == derived.crossover.certain
    assert 16 <= bound < 64
    assert derived.crossover.point > bound


def test_the_tier_ends_below_the_known_crossing_in_nearly_all_draws():
    ratios = {level: 2.0 ** (1 - math.log(level) / math.log(40)) for level in (1, 2, 5, 10, 30, 70, 100, 250)}
    bounds = [derive({"full": ratios}, noise=0.03, seed=seed).policy["tiers"][0]["max_batch"] for seed in range(40)]
    assert sum(bound < 40 for bound in bounds) >= 38
    assert sorted(bounds)[20] > 20


def bounds_of(curves):
    there = list(dict.fromkeys(arm for pair in curves for arm in pair))
    return [(tier.arm, tier.max_batch) for tier in tiers.tiers(there, curves)]


def certain(ratios):
    return [node(batch, ratio, ratio, ratio) for batch, ratio in ratios.items()]


def test_what_more_steps_may_lose_counts_as_lost():
    doubt = [node(4, 1.5, 1.6, 1.7), node(16, 0.6, 0.97, 1.5), node(64, 1.2, 1.3, 1.4), node(256, 0.4, 0.5, 0.6)]
    # Taken for a loss of 3 %, 16 would not keep 64 from speculating; it may be one of 40 %.
    assert bounds_of({("full", "plain"): doubt}) == [("full", 7), ("plain", None)]


def test_the_worst_loss_decides_before_the_sum():
    curve = certain({4: 1.5, 16: 0.8, 64: 1.15, 128: 1.15, 256: 0.5})
    assert bounds_of({("full", "plain"): curve}) == [("full", 9), ("plain", None)]


def test_a_tier_that_a_third_arm_ends_reaches_up_to_the_next_node():
    # At 16, full may lose to plain; reduced1 loses least to both, and is certainly better than plain at 64.
    curves = {
        ("full", "reduced1"): certain({4: 1.1, 16: 1.1, 64: 0.5}),
        ("full", "plain"): certain({4: 2.2, 16: 0.7, 64: 0.8}),
        ("reduced1", "plain"): certain({4: 2.0, 16: 0.95, 64: 1.5}),
    }
    assert bounds_of(curves) == [("full", 15), ("reduced1", None)]


def test_arms_between_nodes_that_are_one_request_apart_get_no_empty_tier():
    curves = {
        ("full", "reduced1"): [node(4, 2.0, 2.0, 2.0), node(4.6, 0.5, 0.5, 0.5), node(5.6, 0.5, 0.5, 0.5)],
        ("full", "plain"): [node(4, 4.0, 4.0, 4.0), node(4.6, 1.0, 1.0, 1.0), node(5.6, 0.2, 0.2, 0.2)],
        ("reduced1", "plain"): [node(4, 2.0, 2.0, 2.0), node(4.6, 2.0, 2.0, 2.0), node(5.6, 0.1, 0.1, 0.1)],
    }
    assert bounds_of(curves) == [("full", 4), ("plain", None)]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([Tier("full", 40)], (2, 16)),  # nothing seen: what SGLang has by itself
        ([Tier("full", 40, spread=0.1)], (4, 16)),
        ([Tier("full", 40, spread=0.11)], (5, 16)),
        ([Tier("full", 40, doubt=11.0)], (6, 16)),
        ([Tier("full", 40, doubt=40.0)], (10, 32)),  # wanted 20, a quarter is 10
        ([Tier("full", 40, spread=0.1), Tier("reduced1", 100, spread=0.08)], (8, 16)),
        ([Tier("full", 8, spread=0.1), Tier("reduced1", 100, spread=0.08)], (2, 64)),
        ([Tier("full", 1)], (0, 32)),
        ([Tier("full", 2)], (1, 32)),
        ([Tier("full", 8, doubt=200.0)], (2, 128)),
    ],
)
def test_margin_and_dwell(found, expected):
    assert hysteresis.margin_and_dwell([*found, Tier("plain")]) == expected


def test_margin_and_dwell_come_from_what_was_seen():
    assert derive({"full": {10: 2.0, 160: 0.5}}).policy == {
        "version": 1,
        "tiers": [{"max_batch": 39, "steps": "full"}, {"steps": 0}],
        "margin": 2,
        "dwell": 16,
    }
    rows = points({"full": {10: 2.0, 160: 0.5}})
    spread = [
        row | {"running_batch": 9} if (row["c"], row["repeat"], row["arm"]) == (10, 1, "full") else row for row in rows
    ]
    assert policy.derive(spread).policy["margin"] == 4  # a tenth of 39
    apart = points({"full": {10: 2.0, 160: 0.5}}, noise=0.03)
    derived = policy.derive(apart)
    around = next(at for at in derived.crossover.unclear)
    assert derived.policy["margin"] == math.ceil((around.high - around.low) / 2) > 4


def test_the_least_margin_and_dwell_are_those_of_a_policy_without():
    assert (hysteresis.MARGIN, hysteresis.DWELL) == (load_policy.MARGIN, load_policy.DWELL)


def test_the_arms_of_a_policy_are_those_of_one_server():
    rows = [point(arm, 1, 1, 1.0) for arm in ("plain", "base", "reduced1", "dynamic", "full", "reduced10", "reduced2")]
    assert arms.of(rows) == ["full", "reduced10", "reduced2", "reduced1", "plain"]
    assert [arms.steps(arm) for arm in arms.of(rows)] == ["full", 10, 2, 1, 0]


@pytest.mark.parametrize("arm", ["dynamic", "reduced", "reduced0", "reduced1x"])
def test_other_arms_have_no_steps(arm):
    with pytest.raises(BenchError, match=f"^{arm} is no arm that a policy can choose: those are full, plain and reduc"):
        arms.steps(arm)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "full was measured at no level: a policy needs full and plain"),
        ([point("full", 1, 1, 9.0)], "plain was measured at no level: a policy needs full and plain"),
        (
            [*points({"full": {4: 2.0}}), point("reduced1", 16, 1, 9.0)],
            (
                "full and reduced1 cannot be compared: at 4 clients no point of reduced1 counts; at 16 clients no "
                "point of full counts"
            ),
        ),
    ],
)
def test_what_is_missing_is_named(rows, said):
    with pytest.raises(BenchError) as caught:
        policy.derive(rows)
    assert str(caught.value) == said


def test_marked_points_do_not_count_and_levels_without_others_are_told():
    rows = points({"full": {4: 2.0, 16: 0.5, 64: 9.0}})
    marked = [row | {"marked": "why"} if (row["arm"], row["c"]) == ("full", 64) else row for row in rows]
    derived = policy.derive(marked)
    assert tiers_of(derived) == [(7, "full"), (None, 0)]
    assert derived.left_out == ("at 64 clients no point of full counts",)
    assert words.explained(derived)[-1] == "left out: at 64 clients no point of full counts"


@pytest.mark.parametrize(
    ("ratios", "said"),
    [
        (
            {"full": {4: 2.0, 16: 0.5}},
            [
                "speculation pays up to a batch of 7 (certain up to 7, certainly not from 9 on)",
                "the policy: all draft steps up to 7, no speculation above (margin 1, dwell 32)",
            ],
        ),
        (
            {"full": {10: 1.5, 30: 1.0}},
            [
                "speculation pays up to a batch of 29 (certain up to 29, not certainly lost at any measured batch)",
                "the policy: all draft steps up to 29, no speculation above (margin 2, dwell 16)",
            ],
        ),
        (
            {"full": {1: 0.9, 250: 0.5}},
            ["speculation never pays: measured from a batch of 1 to 250", "the policy: no speculation at any load"],
        ),
        (
            {"full": {1: 2.0, 250: 1.1}, "reduced1": {1: 1.5, 250: 1.0}},
            [
                "speculation pays at every level measured: measured up to 250",
                "1 draft step is best nowhere for certain",
                "the policy: all draft steps at any load",
            ],
        ),
        (
            {"full": {4: 1.5, 16: 0.98, 64: 2.0, 250: 0.5}},
            [
                "speculation pays up to a batch of 126 (certain up to 126, certainly not from 127 on)",
                "the curve crosses more than once: speculation certainly loses at a batch of 16",
                "the policy: all draft steps up to 126, no speculation above (margin 2, dwell 16)",
            ],
        ),
        (
            {"full": {4: 0.5, 16: 1.05, 64: 0.5}},
            [
                "speculation never pays: measured from a batch of 4 to 64",
                "the curve crosses more than once: speculation certainly pays at a batch of 16, too",
                "the policy: no speculation at any load",
            ],
        ),
        (
            {"full": {9: 0.5}},
            ["speculation never pays: measured at a batch of 9", "the policy: no speculation at any load"],
        ),
    ],
)
def test_the_outcome_in_words(ratios, said):
    assert words.explained(derive(ratios)) == said


def with_nodes(*nodes):
    curves = {("full", "plain"): list(nodes)}
    found = tiers.tiers(["full", "plain"], curves)
    known = policy.crossover.find(nodes)
    made = {"version": 1, "tiers": [], "margin": 2, "dwell": 16}
    return words.explained(policy.Derived(made, tuple(found), ("full", "plain"), curves, known, ()))[:-1]


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        (
            [node(4, 2.0, 4.0, 8.0), node(16, 0.5, 1.0, 2.0), node(64, 0.125, 0.25, 0.5)],
            [
                "speculation pays up to a batch of 15 (certain up to 7, certainly not from 33 on)",
                "the points are too noisy to tell between 8 and 32: more repeats",
            ],
        ),
        (
            [node(4, 2.0, 4.0, 8.0), node(64, 0.125, 0.25, 0.5)],
            [
                "speculation pays up to a batch of 15 (certain up to 7, certainly not from 33 on)",
                "no level was measured between 8 and 32, which would tell: more levels",
            ],
        ),
        (
            [node(4, 0.5, 1.5, 4.0), node(16, 0.25, 0.5, 1.2)],
            [
                "speculation pays up to a batch of 6 (certain nowhere, not certainly lost at any measured batch)",
                "the points are too noisy to tell between 4 and 16: more repeats",
            ],
        ),
        (
            # Half-way from 3 to 48 is 12, which the logarithms make a little more.
            [node(3, 2.0, 4.0, 8.0), node(48, 0.5, 0.8, 2.0)],
            [
                "speculation pays up to a batch of 32 (certain up to 11, not certainly lost at any measured batch)",
                "the points are too noisy to tell between 12 and 48: more repeats",
            ],
        ),
        (
            [node(4, 2.0, 3.0, 4.0), node(16, 0.5, 1.5, 4.0)],
            [
                "speculation pays at every level measured: measured up to 16 (certain up to 7)",
                "the points are too noisy to tell between 8 and 16: more repeats",
            ],
        ),
        (
            [node(4, 0.5, 0.9, 2.0)],
            [
                "speculation never pays: measured at a batch of 4 (not certainly lost at any measured batch)",
                "the points are too noisy to tell at 4: more repeats",
            ],
        ),
    ],
)
def test_doubts_in_words(nodes, said):
    assert with_nodes(*nodes) == said


def test_the_points_that_were_recorded_on_an_h200():
    derived = policy.derive(files.read(DATA / "h200-0.5.9-mixed.json"))
    # 2 steps are 12 % faster than none at 30 clients in all repeats but one; all steps scatter too much to tell there.
    assert derived.policy == {
        "version": 1,
        "tiers": [{"max_batch": 1, "steps": "full"}, {"max_batch": 37, "steps": 2}, {"steps": 0}],
        "margin": 0,
        "dwell": 128,
    }
    assert load_policy.problems(derived.policy, 3, 256) == []
    assert words.explained(derived) == [
        "speculation pays up to a batch of 73 (certain up to 18, not certainly lost at any measured batch)",
        "the points are too noisy to tell between 19 and 247: more repeats",
        "the points are too noisy to tell all draft steps from 2 draft steps between 2 and 219: more repeats",
        "the points are too noisy to tell 2 draft steps from no speculation between 38 and 139: more repeats",
        "1 draft step is best nowhere for certain",
        "the policy: all draft steps up to 1, 2 draft steps up to 37, no speculation above (margin 0, dwell 128)",
    ]


# What the owners of the 8-GPU box have published of it, output tokens/s by clients: EAGLE-3 at 1 and 250, flat from 70;
# where the baseline saturates; two figures for its single stream, as the sources disagree on it and on the model. Those
# of a single stream with speculation are of that run, and of one after CUDA 13 and the allreduce fusion.
EAGLE = {70: 354.0, 250: 340.9}
BASELINE = {70: 773.0, 250: 773.0}
SINGLE_EAGLE, SINGLE_BASELINE = (77.5, 96.1), (92.6, 89.5)


def history(*singles):
    """The published points, a repeat for each pair of figures for a single stream."""
    return [
        point(arm, level, repeat, speed)
        for repeat, (fast, slow) in enumerate(singles, start=1)
        for arm, levels in (("full", {1: fast} | EAGLE), ("plain", {1: slow} | BASELINE))
        for level, speed in levels.items()
    ]


@pytest.mark.parametrize(
    ("fast", "slow", "expected"),
    [(77.5, 92.6, crossover.NEVER), (77.5, 89.5, crossover.NEVER), (96.1, 92.6, 1), (96.1, 89.5, 1)],
)
def test_the_published_history_crosses_at_one_request_or_never(fast, slow, expected):
    assert crossover.threshold(history((fast, slow))) == expected


def test_the_published_history_has_no_interval():
    with pytest.raises(BenchError) as caught:
        policy.derive(history((96.1, 92.6)))
    assert str(caught.value) == (
        "full and plain have one pair only at 1, 70, 250 clients: how far points scatter takes a second repeat"
    )


def test_what_the_published_sources_agree_on_is_found():
    derived = policy.derive(history(*zip(SINGLE_EAGLE, SINGLE_BASELINE, strict=True)))
    assert tiers_of(derived) == [(None, 0)]
    single, *many = derived.nodes
    assert single.gain.low < 0 < single.gain.high
    assert all(
        math.exp(node.gain.middle) == pytest.approx(ratio, abs=0.001)
        for node, ratio in zip(many, (0.458, 0.441), strict=True)
    )
