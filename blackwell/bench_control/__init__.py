"""A sweep as the control node sees it: what was typed, how it goes on, and what comes home."""
