"""What tests do in the processes of workers."""

import os
import signal


def count_compilations():
    """Count programs that are compiled there from now on."""
    from hinge.runtime.cpu import Cpu

    if not hasattr(Cpu, "counted"):
        Cpu.counted, plain = 0, Cpu.compile

        def compiled(self, program, settings):
            Cpu.counted += 1
            return plain(self, program, settings)

        Cpu.compile = compiled
    Cpu.counted = 0


def compilations():
    from hinge.runtime.cpu import Cpu

    return Cpu.counted


def become_another_cpu():
    """One with short vectors, that cannot multiply and add at once."""
    from hinge.runtime import target

    target._told_by_linux = lambda: ("another", ["sse2"])
    target.host.cache_clear()


def become_itself():
    from hinge.runtime import target

    target._told_by_linux = lambda: None
    target.host.cache_clear()


def get_a_card():
    """A fake one, whose launches are counted."""
    from pytest import MonkeyPatch

    import fake_card

    fake_card.held = fake_card.fake_card(MonkeyPatch())
    fake_card.library = fake_card.held.__enter__()


def launches():
    import sys

    card = sys.modules.get("fake_card")
    return len(card.library.launches) if card else 0


def lose_the_card():
    import sys

    sys.modules.pop("fake_card").held.__exit__(None, None, None)


def last(q, qd, worst):
    """The largest angle of all times."""
    return worst[-1]


def die_once(flag):
    """End this process, unless it was done before."""
    try:
        os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)
