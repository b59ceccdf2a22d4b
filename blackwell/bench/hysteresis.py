"""How far and for how long the load must fall before a server drafts more again, by the noise that was seen."""

import math
from collections.abc import Sequence
from itertools import pairwise

from .tiers import Tier

MARGIN, MARGIN_SHARE = 2, 4
DWELL, DWELL_MOST = 16, 128
"""Decode rounds: a request's prefill takes a few, so that 16 outlast the gap it leaves; 128 are a few seconds."""


def margin_and_dwell(tiers: Sequence[Tier]) -> tuple[int, int]:
    """Margin in requests and dwell in decode rounds, for two tiers or more.

    The margin that is wanted is the largest of

    - 2 requests, SGLang's own: one that ends and one that begins are no change of the load;
    - at each bound, how far the batch was apart at constant load, as a share, times the bound: what a load that does
      not change shows must not switch tiers;
    - half of the batches beyond each bound whose winner is not certain: as little as the points know where the bound
      is, as little is lost where more steps come back late.

    It is at most a quarter of the narrowest tier, 1 at least if the tier has room for it: below the margin a tier must
    stay within reach, or after one burst its steps would never come back.

    The dwell is 16 rounds, SGLang's own, times what was wanted over what the tiers have room for, up to 128: what a
    margin cannot hold apart has to stay apart for longer.
    """
    bounded = [tier for tier in tiers if tier.max_batch is not None]
    wanted = max(
        MARGIN,
        *(math.ceil(tier.spread * tier.max_batch) for tier in bounded),
        *(math.ceil(tier.doubt / 2) for tier in bounded),
    )
    narrowest = min(high - low for low, high in pairwise([0, *(tier.max_batch for tier in bounded)]))
    margin = min(wanted, max(1, narrowest // MARGIN_SHARE), narrowest - 1)
    return margin, min(DWELL_MOST, math.ceil(DWELL * wanted / max(1, margin)))
