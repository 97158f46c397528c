"""Handlers of XLA's foreign function interface, called as XLA calls them, and kernels of a card."""

import ctypes

import numpy as np
import pytest

import hinge
from hinge.emit.llvm.xla import Word, handler_text
from hinge.runtime.engine import helper_library

WORD = ctypes.c_int64
DOUBLE, EXECUTE = 12, 3
CALLED = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


def table(*words):
    """Words one after the other in memory."""
    return (WORD * max(len(words), 1))(*words)


def at(block):
    return ctypes.addressof(block)


class Xla:
    """XLA as far as a handler sees it: frames, errors, the stream."""

    def __init__(self):
        self.said, self.kept = [], []
        self.error, self.stream = CALLED(self._error), CALLED(self._stream)
        pointers = [ctypes.cast(f, ctypes.c_void_p).value for f in (self.error, self.stream)]
        # the first function is at 48, that of streams at 80
        self.api = table(*[0] * 6, pointers[0], 0, 0, 0, pointers[1])

    def _error(self, given):
        message = ctypes.c_void_p.from_address(given + 16).value
        self.said.append(ctypes.string_at(message).decode())
        return 77

    def _stream(self, given):
        assert WORD.from_address(given).value == 32
        WORD.from_address(given + 24).value = 4242
        return None

    def keep(self, *words):
        self.kept.append(table(*words))
        return at(self.kept[-1])

    def buffer(self, array):
        """An XLA_FFI_Buffer; an array of NumPy, or (address, shape)."""
        address, shape = (array.ctypes.data, array.shape) if hasattr(array, "shape") else array
        kind = DOUBLE if getattr(array, "dtype", None) != np.float32 else 11
        return self.keep(48, 0, kind, address, len(shape), self.keep(*shape))

    def frame(self, arguments, results, attributes=()):
        """An XLA_FFI_CallFrame."""
        args, rets = (self.keep(*map(self.buffer, x)) for x in (arguments, results))
        scalars = [self.keep(0, self.keep(x)) for x in attributes]
        words = [168, 0, at(self.api), 1234, EXECUTE]
        words += [40, 0, len(arguments), 0, args, 40, 0, len(results), 0, rets]
        words += [48, 0, len(scalars), 0, 0, self.keep(*scalars), 0]
        return self.keep(*words)


def handler(words, shapes, loop=False, card=False):
    """A handler as a function of a frame."""
    sizes = [table(*shape, 0) for shape in shapes]
    arrays = [(len(s), 8 * int(np.prod(s)), at(x)) for s, x in zip(shapes, sizes, strict=True)]
    own = table(*words, *(n for array in arrays for n in array))
    library = helper_library(handler_text(loop, card), {"hinge_own": at(own)})
    call = CALLED(library.address("handler"))
    call.kept = own, sizes, library
    return call


def test_it_says_which_version_it_speaks():
    call, xla = handler(Word(0, 3, DOUBLE, 0, 0, 0), []), Xla()
    metadata = table(48, 24, 0, -1, 0, 0)
    extension = table(32, 1, 0, at(metadata))
    frame = xla.frame([], [])
    WORD.from_address(frame + 8).value = at(extension)
    assert not call(frame)
    assert metadata[3] == 3 << 32 and metadata[4] == 1


class Card:
    """A card that writes down what it is asked to do."""

    KIND = ctypes.CFUNCTYPE(
        ctypes.c_int, WORD, *[ctypes.c_uint] * 7, WORD, ctypes.POINTER(WORD), ctypes.c_void_p
    )
    ENTER = ctypes.CFUNCTYPE(ctypes.c_int, WORD)

    def __init__(self, count, result=0):
        self.count, self.result, self.launches, self.places = count, result, [], []
        self.functions = Card.KIND(self._launch), Card.ENTER(self._enter), Card.ENTER(self._leave)

    def _launch(self, function, *rest):
        *shape, stream, values, _ = rest
        read = [WORD.from_address(values[i]).value for i in range(self.count)]
        self.launches.append((function, tuple(shape), stream, read))
        return self.result

    def _enter(self, context):
        self.places.append(context)
        return 0

    def _leave(self, _):
        self.places.append("back")
        return 0

    @property
    def words(self):
        ways = [ctypes.cast(f, ctypes.c_void_p).value for f in self.functions]
        known = {"function": 99, "threads": 64, "shared": 512, "share": 32, "context": 5}
        return known | dict(zip(("launch", "enter", "leave"), ways, strict=True))


@pytest.mark.parametrize("scratch", [False, True])
def test_a_batch_is_one_launch(scratch):
    """Pointers and strides of the arguments, pointers of the results, samples, scratch memory."""
    card, xla = Card(2 * 2 + 1 + 2), Xla()
    words = Word(0, 3, DOUBLE, 2, 1, 1 + scratch)._replace(**card.words, blocks=2)
    call = handler(words, [(3,), (2, 2), (3,)], card=True)
    x, y, z, room = np.zeros((100, 3)), np.zeros((2, 2)), np.zeros((100, 3)), np.zeros(7)
    given = [x, y], [z, *([room] if scratch else [])]
    assert not call(xla.frame(*given)) and not xla.said
    ((function, shape, stream, read),) = card.launches
    assert (function, stream, card.places) == (99, 4242, [5, "back"])
    assert shape == (2, 1, 1, 64, 1, 1, 512)
    last = room.ctypes.data if scratch else 0
    assert read == [x.ctypes.data, 24, y.ctypes.data, 0, z.ctypes.data, 100, last]


def test_a_batch_without_samples_is_no_launch():
    card, xla = Card(5), Xla()
    words = Word(0, 3, DOUBLE, 1, 1, 1)._replace(**card.words)
    call = handler(words, [(3,), (3,)], card=True)
    assert not call(xla.frame([np.zeros((0, 3))], [np.zeros((0, 3))])) and not card.launches
    assert not call(xla.frame([np.zeros((70, 3))], [np.zeros((70, 3))]))
    assert card.launches[0][1][0] == 3


def test_a_card_that_refuses_is_an_error():
    card, xla = Card(4, result=700), Xla()
    words = Word(0, 3, DOUBLE, 1, 1, 1)._replace(**card.words)
    call = handler(words, [(3,), (3,)], card=True)
    assert call(xla.frame([np.zeros(3)], [np.zeros(3)])) == 77 and "refused" in xla.said[0]


def test_a_time_loop_is_one_launch():
    """States are where the last results are; strides and jumps of all; steps, every, first."""
    card, xla = Card(3 * 4 + 5), Xla()
    words = Word(0, 3, DOUBLE, 3, 2, 2, states=1, timed=1)._replace(**card.words)
    call = handler(words, [(2,), (3,), (), (2,), (2,)], loop=True, card=True)
    s, u, p = np.zeros((40, 2)), np.zeros((6, 3)), np.zeros(40)
    y, end = np.zeros((3, 40, 2)), np.zeros((40, 2))
    assert not call(xla.frame([s, u, p], [y, end], (2, 6))) and not xla.said
    ((_, shape, _, read),) = card.launches
    assert shape[0] == 2
    assert read[:12] == [
        *(end.ctypes.data, 16, 0),
        *(u.ctypes.data, 0, 24),
        *(p.ctypes.data, 8, 0),
        *(y.ctypes.data, 16, 640),
    ]
    assert read[12:] == [6, 2, 2, 40, 0]


WRONG = {
    "samples": ([np.zeros((4, 3))], [np.zeros((5, 3))]),
    "size": ([np.zeros((4, 2))], [np.zeros((4, 3))]),
    "dimensions": ([np.zeros(())], [np.zeros((4, 3))]),
    "dtype": ([np.zeros((4, 3), np.float32)], [np.zeros((4, 3))]),
    "count": ([], [np.zeros((4, 3))]),
    "results": ([np.zeros((4, 3))], [np.zeros((4, 3)), np.zeros(3)]),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_buffers_that_do_not_fit_are_refused(wrong):
    card, xla = Card(4), Xla()
    words = Word(0, 3, DOUBLE, 1, 1, 1)._replace(**card.words)
    call = handler(words, [(3,), (3,)], card=True)
    assert call(xla.frame(*WRONG[wrong])) == 77
    assert "another dtype or shape" in xla.said[0] and not card.launches


def cpu_words(kernel, *counts):
    """What a handler knows of a kernel of this machine, without helpers."""
    python, machine = ctypes.pythonapi, kernel._loaded.machine
    ways = {"allocate": python.PyMem_RawMalloc, "free": python.PyMem_RawFree}
    places = {n: ctypes.cast(f, ctypes.c_void_p).value for n, f in ways.items()}
    nobody = table(0)
    words = Word(0, 3, DOUBLE, *counts)._replace(**machine._asdict() | places, team=at(nobody))
    return words, nobody


@pytest.mark.parametrize("samples", [1, 2, 100])
def test_a_kernel_of_this_machine(samples):
    """One sample by its own code, more by that for batches; one argument for all."""
    kernel = hinge.compile(lambda x, y: (x * y, x + y), x=(3,), y=(3,))
    words, nobody = cpu_words(kernel, 2, 2, 2)
    call, xla = handler(words, [(3,)] * 4), Xla()
    rng = np.random.default_rng(1)
    x, y, a, b = rng.normal(size=(samples, 3)), rng.normal(size=3), *np.zeros((2, samples, 3))
    for _ in range(2):
        assert not call(xla.frame([x, y], [a, b])) and nobody[0] == 0
        np.testing.assert_array_equal(a, x * y)
        np.testing.assert_array_equal(b, x + y)
        a[:], b[:] = 0, 0
