"""A campaign: hostile input to the whole of hinge, for as long as one likes, and a page about it.

    python -m tests.campaign --minutes 10              all lines, and the page docs/campaign.md
    python -m tests.campaign --line NAME --round N     one round again, with its traceback

A line is a function of a random generator that checks something once, and says how much that was:
`lines.py` has the table.  Every round has a generator of its own, made of the seed, the name of the
line and the number of the round, so that each can be done again alone.
"""
