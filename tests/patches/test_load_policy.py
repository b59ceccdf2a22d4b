"""The policy and the controller by themselves: plain Python of the patched source."""

import json
import tempfile
import unittest
from pathlib import Path

from sglang.srt.speculative import load_policy
from sglang.srt.speculative.load_policy import LoadPolicyError, TierController, from_object, from_text, from_threshold

FULL = 3


def policy(*tiers: object, **more: object) -> dict:
    return {"version": 1, "tiers": list(tiers), **more}


def tier(max_batch: object = None, steps: object = 0) -> dict:
    return {"steps": steps} if max_batch is None else {"max_batch": max_batch, "steps": steps}


THREE = policy(tier(8, "full"), tier(24, 1), tier(), margin=2, dwell=4)
MALFORMED = (
    ([], "must be a JSON object"),
    ({**THREE, "version": 2}, "version must be 1, not 2"),
    ({**THREE, "version": True}, "version must be 1"),
    ({**THREE, "tears": 1}, "has 'tears', which is none of"),
    ({"version": 1}, "tiers must be a list"),
    (policy(), "at least one tier"),
    (policy(7), "tier 1 must be a JSON object"),
    (policy({"max_batch": 3, "step": 1}, tier()), "tier 1 has 'step'"),
    (policy(tier(8, 3)), "tier 1 is the last one and must have no max_batch"),
    (policy({"steps": 3}, tier()), "max_batch of tier 1 must be a whole number of requests above 0, not None"),
    (policy(tier(0, 3), tier()), "max_batch of tier 1 must be a whole number of requests above 0, not 0"),
    (policy(tier(2.5, 3), tier()), "not 2.5"),
    (policy(tier("8", 3), tier()), "not '8'"),
    (policy({"max_batch": True, "steps": 3}, tier()), "not True"),
    (policy(tier(8, 3), tier(8, 1), tier()), "max_batch of tier 2 is 8, which is not above the 8 before it"),
    (policy(tier(8, 4), tier()), 'steps of tier 1 must be "full" or a whole number from 0 to 3, not 4'),
    (policy(tier(8, -1), tier()), "not -1"),
    (policy(tier(8, "all"), tier()), "not 'all'"),
    (policy(tier(8, 1), tier(None, 1)), "tier 2 drafts 1 steps, which is not less than the 1 before it"),
    (policy(tier(8, 3), tier(), margin=8), "a margin of 8 swallows tier 1, which is 8 requests wide"),
    (policy(tier(8, 3), tier(10, 1), tier(), margin=2), "a margin of 2 swallows tier 2, which is 2 requests wide"),
    (policy(tier(8, 3), tier(), margin=-1), "margin must be a whole number of requests from 0, not -1"),
    (policy(tier(8, 3), tier(), margin="2"), "not '2'"),
    (policy(tier(8, 3), tier(), dwell=0), "dwell must be a whole number of decode rounds from 1, not 0"),
)


class Policies(unittest.TestCase):
    def test_every_malformed_one_is_refused_with_what_is_wrong(self):
        for given, reason in MALFORMED:
            with self.subTest(given=given):
                with self.assertRaises(LoadPolicyError) as caught:
                    from_object(given, FULL)
                self.assertIn(reason, str(caught.exception))

    def test_defaults_are_filled_in(self):
        self.assertEqual(
            from_object(policy(tier(8, "full"), tier()), FULL).as_json(),
            policy(tier(8, 3), tier(), margin=2, dwell=16),
        )

    def test_the_default_margin_leaves_the_narrowest_tier_reachable(self):
        self.assertEqual([from_threshold(n, FULL).margin for n in (1, 2, 3, 100)], [0, 1, 2, 2])

    def test_a_threshold_is_short_for_two_tiers(self):
        self.assertEqual(from_threshold(5, FULL), from_object(policy(tier(5, "full"), tier()), FULL))

    def test_a_threshold_of_zero_always_speculates(self):
        self.assertEqual(from_threshold(0, FULL), from_object(policy(tier(None, "full")), FULL))

    def test_a_threshold_must_be_a_whole_number(self):
        for given in (-1, 1.5, True, "4", None):
            with self.subTest(given=given), self.assertRaises(LoadPolicyError):
                from_threshold(given, FULL)

    def test_text_is_json_or_the_path_of_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "policy.json"
            path.write_text(json.dumps(THREE))
            self.assertEqual(from_text(str(path), FULL), from_text(json.dumps(THREE), FULL))
            with self.assertRaisesRegex(LoadPolicyError, "absent.json cannot be read: No such file"):
                from_text(f"{folder}/absent.json", FULL)
            path.write_text("{")
            with self.assertRaisesRegex(LoadPolicyError, "policy.json is not JSON"):
                from_text(str(path), FULL)

    def test_a_bound_that_no_batch_exceeds_is_refused(self):
        for most, allowed in ((25, True), (24, False), (8, False)):
            with self.subTest(most=most):
                if allowed:
                    load_policy.check_bound(from_object(THREE, FULL), most)
                else:
                    with self.assertRaisesRegex(LoadPolicyError, f"whose max_running_requests is {most}"):
                        load_policy.check_bound(from_object(THREE, FULL), most)

    def test_memory_is_reserved_for_each_tier_beside_the_full_one(self):
        self.assertEqual(load_policy.extra_tiers(4, None), 1)
        self.assertEqual(load_policy.extra_tiers(0, None), 0)
        self.assertEqual(load_policy.extra_tiers(0, json.dumps(THREE)), 2)
        self.assertEqual(load_policy.extra_tiers(0, "/absent"), 0)


class Decisions(unittest.TestCase):
    def controller(self, given: dict = THREE, captured: tuple[int, ...] = (3, 1, 0)) -> TierController:
        return TierController(from_object(given, FULL), captured, 64)

    def decide(self, controller: TierController, *sizes: int) -> list[int]:
        return [controller.decide(size) for size in sizes]

    def test_a_growing_batch_changes_at_once(self):
        self.assertEqual(self.decide(self.controller(), 8, 9, 24, 25, 64), [3, 1, 1, 0, 0])

    def test_a_shrinking_one_dwells_below_the_margin_first(self):
        controller = self.controller()
        self.decide(controller, 9)
        self.assertEqual(self.decide(controller, *[7] * 10), [1] * 10)  # within the margin: 7 + 2 > 8
        self.assertEqual(self.decide(controller, *[6] * 5), [1, 1, 1, 3, 3])

    def test_rounds_outside_of_the_margin_begin_the_dwell_anew(self):
        controller = self.controller()
        self.decide(controller, 9)
        self.assertEqual(self.decide(controller, 6, 6, 6, 7, 6, 6, 6, 6), [1] * 7 + [3])

    def test_it_goes_back_to_the_most_cautious_tier_that_was_seen_while_it_dwelt(self):
        controller = self.controller()
        self.decide(controller, 30)
        self.assertEqual(self.decide(controller, 20, 1, 1, 1), [0, 0, 0, 1])
        self.assertEqual(self.decide(controller, 1, 1, 1, 1), [1, 1, 1, 3])

    def test_it_skips_tiers_on_the_way_down(self):
        controller = self.controller()
        self.decide(controller, 30)
        self.assertEqual(self.decide(controller, 1, 1, 1, 1), [0, 0, 0, 3])

    def test_a_batch_that_swings_around_the_bound_switches_once(self):
        controller = self.controller()
        self.decide(controller, *[8, 9] * 200)
        self.assertEqual(controller.switches, 1)

    def test_without_margin_and_dwell_it_follows_the_batch(self):
        controller = self.controller(policy(tier(8, 3), tier(), margin=0, dwell=1), (3, 0))
        self.assertEqual(self.decide(controller, 8, 9, 8, 9), [3, 0, 3, 0])

    def test_it_counts_rounds_and_switches(self):
        controller = self.controller()
        self.decide(controller, 1, 1, 9, 30)
        state = controller.snapshot()
        self.assertEqual((state["rounds"], state["switches"], state["steps"]), ({"3": 2, "1": 1, "0": 1}, 2, 0))

    def test_two_ranks_that_see_the_same_batches_agree(self):
        ranks = [self.controller() for _ in range(2)]
        sizes = [(7 * n * n + n) % 40 + 1 for n in range(500)]
        self.assertEqual(*(self.decide(rank, *sizes) for rank in ranks))


class Changes(unittest.TestCase):
    def setUp(self):
        self.controller = TierController(from_object(THREE, FULL), (3, 1, 0), 64)

    def change(self, **changes: object):
        self.controller.apply(self.controller.plan(changes))

    def test_a_forced_tier_holds_whatever_the_batch(self):
        self.change(speculative_force_steps=0)
        self.assertEqual([self.controller.decide(n) for n in (1, 64)], [0, 0])
        self.change(speculative_force_steps="full")
        self.assertEqual([self.controller.decide(n) for n in (1, 64)], [3, 3])
        self.change(speculative_force_steps=None)
        self.assertEqual(self.controller.decide(64), 0)

    def test_a_new_policy_begins_in_its_first_tier(self):
        self.controller.decide(64)
        self.change(speculative_disable_batch_threshold=30)
        self.assertEqual([self.controller.decide(n) for n in (30, 31)], [3, 0])

    def test_a_forced_tier_outlives_a_new_policy(self):
        self.change(speculative_force_steps=1)
        self.change(speculative_disable_batch_threshold=30)
        self.assertEqual(self.controller.decide(64), 1)

    def test_the_fields_of_the_server_say_the_same(self):
        threshold = self.controller.plan({"speculative_disable_batch_threshold": 9})
        self.assertEqual(threshold.fields, {"speculative_disable_batch_threshold": 9, "speculative_load_policy": None})
        given = self.controller.plan({"speculative_load_policy": THREE}).fields
        self.assertEqual(given["speculative_disable_batch_threshold"], 0)
        self.assertEqual(from_text(given["speculative_load_policy"], FULL), from_object(THREE, FULL))

    def test_what_cannot_be_is_refused_and_changes_nothing(self):
        before = self.controller.snapshot()
        for changes, reason in (
            ({"speculative_disable_batch_threshold": 4, "speculative_load_policy": THREE}, "only one of it and"),
            (
                {"speculative_load_policy": policy(tier(8, 3), tier(9, 2), tier(), margin=0)},
                "2 draft steps were not captured",
            ),
            ({"speculative_disable_batch_threshold": 64}, "whose max_running_requests is 64"),
            ({"speculative_force_steps": 2}, 'must be one of 3, 1, 0, "full" or null, not 2'),
            ({"speculative_force_steps": True}, "not True"),
            ({"speculative_disable_batch_threshold": 9, "speculative_force_steps": 7}, "not 7"),
        ):
            with self.subTest(changes=changes):
                with self.assertRaises(LoadPolicyError) as caught:
                    self.controller.plan(changes)
                self.assertIn(reason, str(caught.exception))
                self.assertEqual(self.controller.snapshot(), before)


if __name__ == "__main__":
    unittest.main()
