"""A card that is not there: NVIDIA's driver in host memory, its kernels run by the interpreter.

The library of the driver is what is faked, so that all of hinge's own code runs: memory is the
host's, and every access is looked at.  Kernels that copy are run from their own LLVM text.
"""

import ctypes
import gc
import pickle
import re
import sys
import threading
import time
import weakref
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from types import ModuleType, SimpleNamespace

import llvmlite.binding as llvm
import numpy as np

from hinge.emit.ptx.launch import Launch
from hinge.emit.ptx.path_scan import path_scan_module
from hinge.emit.ptx.plan import TILE
from hinge.graph.interpret import interpret
from hinge.graph.path_scan import PathScan
from hinge.graph.scan import Scan
from hinge.graph.systems import Systems
from hinge.runtime import array_kinds, driver, gather
from hinge.runtime.cuda import Cuda
from hinge.runtime.launcher import packed

OUT_OF_MEMORY, INVALID_CONTEXT = 2, 201
_POINTER, _UNSIGNED = ctypes.c_void_p, ctypes.c_uint
_LAUNCH = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, *[_UNSIGNED] * 7, _POINTER, _POINTER, _POINTER)


class Library:
    """What `libcuda` has, as ctypes would call it; fails: codes of functions that are to fail."""

    def __init__(self, cards=2, version=12990, capability=(9, 0), total=1 << 33, units=2):
        self.cards, self.version, self.capability, self.total = cards, version, capability, total
        self.units = units
        self.fails, self.memory, self.launches, self.waits = {}, {}, [], []
        self.current, self.images, self.graphs = [], {}, {}
        # streams and graphs that somebody has to let go
        self.held = []
        self.functions = {
            name: self._function(name) for name in driver._FUNCTIONS if hasattr(self, f"_{name}")
        }
        # machine code calls it too
        self.functions["cuLaunchKernel"] = _LAUNCH(self.functions["cuLaunchKernel"])

    def _function(self, name):
        def call(*arguments):
            if (failing := self.fails.get(name)) is not None:
                return failing
            return getattr(self, f"_{name}")(*arguments) or 0

        return call

    def __getattr__(self, name):
        try:
            return self.__dict__["functions"][name]
        except KeyError:
            raise AttributeError(name) from None

    # cards

    def _cuInit(self, flags):
        return 0 if self.cards else 100

    def _cuDriverGetVersion(self, found):
        found._obj.value = self.version

    def _cuGetErrorString(self, code, found):
        found._obj.value = b"it is said to fail"

    def _cuDeviceGetCount(self, found):
        found._obj.value = self.cards

    def _cuDeviceGet(self, found, number):
        found._obj.value = number
        return 0 if number < self.cards else 101

    def _cuDeviceGetName(self, name, size, device):
        name.value = b"Fake Card"

    def _cuDeviceGetAttribute(self, found, which, device):
        major, minor = self.capability
        found._obj.value = {75: major, 76: minor, 16: self.units, 97: 1 << 17}[which]

    def _cuDeviceTotalMem_v2(self, found, device):
        found._obj.value = self.total

    def _cuDevicePrimaryCtxRetain(self, found, device):
        found._obj.value = 1000 + device

    def _cuCtxPushCurrent_v2(self, context):
        self.current.append(context)

    def _cuCtxPopCurrent_v2(self, found):
        found._obj.value = self.current.pop()

    def _cuPointerGetAttribute(self, found, which, address):
        found._obj.value = 0

    # memory

    def _cuMemPoolCreate(self, found, props):
        found._obj.value = 2000 + props._obj[3]

    def _cuMemPoolSetAttribute(self, pool, which, value):
        assert value._obj.value > 1 << 60

    def _cuMemAllocFromPoolAsync(self, found, size, pool, stream):
        assert self.current
        block = ctypes.create_string_buffer(b"\xff" * size, size)
        found._obj.value = ctypes.addressof(block)
        self.memory[found._obj.value] = block

    def _cuMemFreeAsync(self, address, stream):
        del self.memory[address]

    def room(self, address, size):
        """The memory there is ours, to the last byte."""
        blocks = [(a, len(b)) for a, b in self.memory.items()]
        blocks += [(x.ctypes.data, x.nbytes) for x in (t.array for t in Tensor.known)]
        assert not size or any(a <= address and address + size <= a + n for a, n in blocks)

    def _cuMemsetD8Async(self, address, value, size, stream):
        self.room(address, size)
        if stream == self.recording:
            self.recorded.append(partial(self._cuMemsetD8Async, address, value, size))
            return
        ctypes.memset(address, value, size)

    def _cuMemcpyHtoDAsync_v2(self, address, host, size, stream):
        self.room(address, size)
        ctypes.memmove(address, host, size)

    def _cuMemcpyDtoHAsync_v2(self, host, address, size, stream):
        self.room(address, size)
        ctypes.memmove(host, address, size)

    def _cuStreamSynchronize(self, stream):
        self.waits.append(stream)

    # what is launched on this stream is recorded
    recording = 55

    def _cuStreamCreate(self, found, flags):
        found._obj.value = self.recording
        self.held.append(self.recording)

    def _cuStreamDestroy_v2(self, stream):
        self.held.remove(stream)

    def _cuStreamBeginCapture_v2(self, stream, mode):
        self.recorded = []

    def _cuStreamEndCapture(self, stream, graph):
        graph._obj.value = 66
        self.held.append(66)

    def _cuGraphInstantiateWithFlags(self, found, graph, flags):
        found._obj.value = 1000 + len(self.graphs)
        self.graphs[found._obj.value] = self.recorded

    def _cuGraphDestroy(self, graph):
        self.held.remove(graph)

    def _cuGraphExecDestroy(self, graph):
        del self.graphs[graph]

    def _cuGraphLaunch(self, graph, stream):
        for run in self.graphs[graph]:
            run(stream)

    def _cuEventCreate(self, found, flags):
        found._obj.value = 77

    def _cuEventRecord(self, event, stream):
        self.launches.append(("event", stream))

    def _cuStreamWaitEvent(self, stream, event, flags):
        self.launches.append(("wait", stream))

    def _cuEventDestroy_v2(self, event):
        assert event == 77

    # code

    def _cuModuleLoadDataEx(self, found, image, count, options, values):
        assert (count, options[0]) == (1, 7)
        found._obj.value = 1 + len(self.images)
        self.images[found._obj.value] = image

    def _cuModuleGetFunction(self, found, module, name):
        found._obj.value = module
        if name == b"gather":
            make = Gather
        else:
            make = interpreted
        if isinstance(self.images[module], bytes):
            self.images[module] = make(self.images[module].removesuffix(b"\0").decode())

    def _cuFuncSetAttribute(self, function, which, value):
        assert which == 8 and value in (1 << 16, self.images[function].launch.shared)

    def _cuFuncGetAttribute(self, found, which, function):
        found._obj.value = {4: 72, 3: 0}[which]

    def _cuOccupancyMaxActiveBlocksPerMultiprocessor(self, found, function, threads, shared):
        found._obj.value = 3

    def _cuLaunchKernel(self, function, x, y, z, tx, ty, tz, shared, stream, pointers, extra):
        code = self.images[function]
        at = getattr(pointers, "value", pointers)
        at = ctypes.addressof(at) if isinstance(at, ctypes.Array) else at
        places = (ctypes.c_void_p * code.count).from_address(at)
        values = [ctypes.c_int64.from_address(p).value for p in places]
        if stream == self.recording:
            self.recorded.append(partial(self.run, code, values, x, tx))
        else:
            self.run(code, values, x, tx, stream)

    def run(self, code, values, blocks, threads, stream):
        """A launch."""
        self.launches.append((type(code).__name__, stream or 0, blocks))
        code(self, values, blocks, threads)

    def _cuLaunchCooperativeKernel(self, function, x, y, z, tx, ty, tz, shared, stream, pointers):
        code = self.images[function]
        assert code.launch.cooperative and x <= self.units and shared == code.launch.shared
        self._cuLaunchKernel(function, x, y, z, tx, ty, tz, shared, stream, pointers, None)


class Gather:
    """The kernel that copies, as machine code of the host."""

    count = 15

    def __init__(self, text):
        for name in ("tid", "ctaid"):
            text = re.sub(rf"declare i32 @llvm.nvvm.read.ptx.sreg.{name}.x\(\)", "", text)
            text = text.replace(f"@llvm.nvvm.read.ptx.sreg.{name}.x()", f"@{name}()")
            text += f"@{name}_now = global i32 0\ndefine i32 @{name}() {{\n"
            text += f"  %x = load i32, ptr @{name}_now\n  ret i32 %x\n}}\n"
        text = re.sub("target .*\n", "", text).replace("define ptx_kernel", "define")
        self.engine = on_host(text)
        kind = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * self.count)
        self.run = kind(self.engine.get_function_address("gather"))
        self.at = [
            ctypes.c_int32.from_address(self.engine.get_global_value_address(f"{name}_now"))
            for name in ("ctaid", "tid")
        ]

    def __call__(self, library, values, blocks, threads):
        for self.at[0].value in range(blocks):
            for self.at[1].value in range(threads):
                self.run(*values)


def interpreted(text):
    """The program that a text is."""
    program, *settings = pickle.loads(bytes.fromhex(text))
    if isinstance(program, PathScan):
        return OnThreads(program, settings[0])
    return Interpreted(program, *settings)


class OnThreads:
    """A scan along paths from its own LLVM text, a thread of the host for each of the card."""

    # what a thread of a card asks for, and what it gives
    asked = {
        "tid": (ctypes.c_int32, ()),
        "ctaid": (ctypes.c_int32, ()),
        "shared": (ctypes.c_void_p, ()),
        "barrier": (None, ()),
        "acquire": (ctypes.c_int32, (ctypes.c_void_p,)),
    }

    def __init__(self, program, scalar):
        text, self.launch = path_scan_module(program, scalar)
        self.count = 2 * len(program.found) + 7
        self.own = threading.local()
        self.kept = []
        for name, (result, given) in self.asked.items():
            function = ctypes.CFUNCTYPE(result, *given)(getattr(self, name))
            self.kept.append(function)
            llvm.add_symbol(f"card_{name}", ctypes.cast(function, _POINTER).value)
        self.engine = on_host(_for_threads(text), effort=0)
        kind = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * self.count)
        self.run = kind(self.engine.get_function_address("run"))

    def tid(self):
        return self.own.tid

    def ctaid(self):
        return self.own.block

    def shared(self):
        return ctypes.addressof(self.own.room)

    def barrier(self):
        self.own.together.wait(60)

    def acquire(self, address):
        time.sleep(1e-4)
        return ctypes.c_int32.from_address(address).value

    def __call__(self, library, values, blocks, threads):
        if not self.launch.cooperative:
            for block in range(blocks):
                for tid in range(threads):
                    self.thread(values, block, tid)
            return
        rooms = [ctypes.create_string_buffer(b"\xff" * self.launch.shared) for _ in range(blocks)]
        together = [threading.Barrier(threads) for _ in range(blocks)]
        workers = [
            threading.Thread(target=self.thread, args=(values, block, tid, rooms[block], meet))
            for block, meet in enumerate(together)
            for tid in range(threads)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    def thread(self, values, block, tid, room=None, together=None):
        self.own.block, self.own.tid, self.own.room, self.own.together = block, tid, room, together
        self.run(*values)


def _for_threads(text):
    """What a card has of its own, by functions of the host."""
    text = re.sub(r"target .*\n|declare i32 @llvm.nvvm.read.*\n|@shared = .*\n", "", text)
    text = re.sub(r"@llvm.nvvm.read.ptx.sreg.(\w+).x\(\)", r"@card_\1()", text)
    text = re.sub(r"getelementptr i8, ptr addrspace\(3\) @shared, i32 0", "@card_shared()", text)
    text = text.replace("= @card_shared", "= call ptr addrspace(3) @card_shared")
    text = re.sub(r"declare void @llvm.nvvm.barrier0\(\) #2\n", "", text)
    text = text.replace("@llvm.nvvm.barrier0()", "@card_barrier()")
    text = re.sub(r"asm sideeffect \"ld.acquire[^(]*\(", "@card_acquire(", text)
    release = r"call void asm sideeffect \"st.release[^(]*\((ptr addrspace\(1\) %\w+), i32 1\)"
    text = re.sub(release, r"store atomic i32 1, \1 release, align 4", text)
    near = r"declare (float|double) @(llvm.nvvm.rcp.approx.ftz.[fd])\(\w+\)\n"
    text = re.sub(near, r"define \1 @\2(\1 %x) {\n  %r = fdiv \1 1.0, %x\n  ret \1 %r\n}\n", text)
    text = text.replace("llvm.nvvm.rcp", "near").replace("define ptx_kernel", "define")
    return (
        text
        + """declare i32 @card_tid()
declare i32 @card_ctaid()
declare ptr addrspace(3) @card_shared()
declare void @card_barrier()
declare i32 @card_acquire(ptr addrspace(1))
"""
    )


def on_host(text, effort=2):
    """A module, compiled for the host."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=effort
    )
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
    engine.finalize_object()
    return engine


class Interpreted:
    """A program, run on memory as its kernel would."""

    def __init__(self, program, scalar, strict, layout, launch, tiled=0):
        self.program, self.strict, self.layout, self.launch = program, strict, layout, launch
        self.tiled = tiled
        self.dtype = np.dtype(np.float64 if scalar == "double" else np.float32)
        inputs, outputs = len(program.inputs), len(program.outputs)
        self.count = 2 * inputs + (2 if layout == "columns" and not tiled else 1) * outputs + 2
        if isinstance(program, Scan):
            self.count = 3 * (inputs + outputs) + 5
        if isinstance(program, Systems):
            self.count = (2 if layout == "columns" else 1) * outputs + bool(program.right) + 2

    def __call__(self, library, values, blocks, threads):
        if isinstance(self.program, Scan):
            return self.over_time(values)
        if isinstance(self.program, Systems):
            return self.solved(values)
        program, samples = self.program, values[-2]
        assert threads == self.launch.threads and blocks > 0
        if self.launch.scratch:
            library.room(values[-1], self.launch.scratch * blocks)
        given, k = [], 0
        for shape in program.inputs:
            given.append(self.seen(values[k], values[k + 1], samples, shape))
            k += 2
        found = interpret(program, [x.astype(self.dtype) for x in given])
        if self.tiled:
            return self.in_tiles(values[k], found[0])
        sound = np.all([np.isfinite(x.reshape(samples, -1)).all(1) for x in found], axis=0)
        for x, shape in zip(found, program.outputs, strict=True):
            apart = self.dtype.itemsize * int(np.prod(shape))
            if self.layout == "columns":
                k, apart = k + 1, values[k + 1]
            ones = (1,) * len(shape)
            whole = np.where(sound.reshape(-1, *ones), x, np.nan) if self.strict else x
            self.seen(values[k if self.layout == "rows" else k - 1], apart, samples, shape)[...] = (
                whole
            )
            k += 1
        assert k == len(values) - 2

    def in_tiles(self, address, numbers):
        """Numbers to where the kernel that solves systems finds them."""
        spoilt = ~np.isfinite(numbers).all(axis=1)
        for i, row in enumerate(numbers):
            start = address + i // TILE * TILE * self.tiled * self.dtype.itemsize
            tile = np.ndarray((len(row), TILE), self.dtype, self.memory(start, len(row) * TILE))
            tile[:, i % TILE] = np.nan if self.strict and spoilt[i] else row

    def memory(self, address, count):
        return (ctypes.c_char * (count * self.dtype.itemsize)).from_address(address)

    def solved(self, values):
        """Linear systems, from numbers in tiles: dense algebra."""
        systems, samples, n = self.program, values[-1], self.program.rows
        sizes = [systems.factor.program.output_sizes[0]]
        if systems.right:
            sizes.append(sum(stage.program.output_sizes[0] for stage in systems.sides))
        tiles, many = [], -(-samples // TILE)
        for size, address in zip(sizes, values, strict=False):
            memory = self.memory(address, many * size * TILE)
            whole = np.ndarray((many, size, TILE), self.dtype, memory)
            tiles.append(whole.swapaxes(1, 2).reshape(-1, size)[:samples].astype(float))
        m, place = np.zeros((samples, n, n)), 0
        for i, rows in enumerate(systems.above):
            for j in rows:
                m[:, j, n - 1 - i] = tiles[0][:, place]
                place += 1
        m[:, range(n), range(n)] = 1 / tiles[0][:, place:][:, ::-1]
        spoilt = ~np.isfinite(m).all(axis=(1, 2))
        m[spoilt] = np.eye(n)
        inverse = np.linalg.inv(m @ m.swapaxes(1, 2))
        padded = [np.hstack([x, np.zeros((samples, 1))]) for x in tiles[1:]]
        found = [-inverse @ padded[0][:, table] for table in systems.right]
        for x in found:
            spoilt |= ~np.isfinite(x).all(axis=(1, 2))
        k, columns = len(sizes), self.layout == "columns"
        for x in (*found, inverse):
            x[spoilt] = np.nan
            apart = values[k + 1] if columns else self.dtype.itemsize * n * n
            self.seen(values[k], apart, samples, (n, n))[...] = x
            k += 2 if columns else 1
        assert k == len(values) - 1

    def over_time(self, values):
        """A time loop: pointer, stride and jump of each array, then how many steps and samples."""
        scan = self.program
        steps, every, first, samples, _ = values[-5:]
        assert first == every
        places = [values[i : i + 3] for i in range(0, len(values) - 5, 3)]
        given = []
        for i, shape in enumerate(scan.inputs):
            timed = scan.states <= i < scan.states + scan.inputs_per_step
            rows = [
                self.seen(places[i][0] + t * places[i][2], places[i][1], samples, shape)
                for t in range(steps if timed else 1)
            ]
            given.append(np.array(rows) if timed else rows[0])
        assert steps % every == 0 < steps
        states = tuple(range(scan.states))
        whole = replace(scan, recorded=(*states, *scan.recorded), until=None)
        found = interpret(whole, [x.astype(self.dtype) for x in given], steps, every)
        for i in states:
            self.seen(*places[i][:2], samples, scan.inputs[i])[...] = found[i][-1]
        for (address, stride, jump), x, shape in zip(
            places[len(scan.inputs) :], found[scan.states :], scan.outputs, strict=True
        ):
            for t, row in enumerate(x):
                self.seen(address + t * jump, stride, samples, shape)[...] = row

    def seen(self, address, stride, samples, shape):
        """The memory of an argument or a result: (samples, *shape)."""
        item, n = self.dtype.itemsize, int(np.prod(shape))
        steps = (stride, item) if self.layout == "rows" else (item, stride)
        size = (samples - 1) * steps[0] + (n - 1) * steps[1] + item
        room = (ctypes.c_char * size).from_address(address)
        flat = np.ndarray((samples, n), self.dtype, room, 0, steps)
        inner = [steps[1] * int(np.prod(shape[i + 1 :])) for i in range(len(shape))]
        return np.ndarray((samples, *shape), self.dtype, flat.base, 0, (steps[0], *inner))


LAUNCH = Launch(threads=32, samples=32)
# as it is where there is a card
COMPILE = Cuda.compile


@contextmanager
def card_left_empty(monkeypatch, **settings):
    """`fake_card`, and in the end nobody has memory of it or its context."""
    # nothing older has any: rubbish is looked for among what comes
    gc.freeze()
    try:
        with fake_card(monkeypatch, **settings) as library:
            yield library
            gc.collect()
            assert not library.memory and not library.current
            assert not library.held and not library.graphs
    finally:
        gc.unfreeze()


@contextmanager
def fake_card(monkeypatch, launch=LAUNCH, **settings):
    """A card, as long as it lasts; gives its library."""
    library = Library(**settings)

    def compiled(backend, program, settings):
        def one(program, tiled=0):
            whole = program, settings.scalar, settings.strict, backend.layout, launch, tiled
            is_scan = isinstance(program, PathScan)
            own = path_scan_module(program, settings.scalar)[1] if is_scan else launch
            return packed(own, pickle.dumps(whole).hex())

        several = isinstance(program, Systems)
        return backend._packed(program, settings, one) if several else one(program)

    with monkeypatch.context() as m:
        m.setattr(driver, "_library", lambda: library)
        m.setattr(Cuda, "compile", compiled)
        m.setattr(gather, "ptx_of", lambda text, capability: text)
        forget()
        yield library
    forget()


def forget():
    """What was known of cards and packages."""
    for kept in (driver.driver, gather._gather, array_kinds.kind_of):
        kept.cache_clear()
    array_kinds._torch.cache_clear()


# tensors as PyTorch has them on a card


class Tensor:
    """An array of the host that says it is on a card."""

    __module__ = "torch"
    is_cuda = True
    known = weakref.WeakSet()

    def __init__(self, array, requires_grad=False):
        self.array, self.requires_grad = array, requires_grad
        self.known.add(self)

    ndim = property(lambda self: self.array.ndim)
    shape = property(lambda self: self.array.shape)
    dtype = property(lambda self: TORCH[self.array.dtype.name])

    def stride(self):
        return tuple(s // self.array.itemsize for s in self.array.strides)

    def get_device(self):
        return 0

    def data_ptr(self):
        return self.array.ctypes.data

    def __getitem__(self, at):
        return Tensor(self.array[at])

    def permute(self, *axes):
        return Tensor(self.array.transpose(axes))

    def record_stream(self, stream):
        self.recorded = stream


NAMES = ["float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool"]
NAMES += ["bfloat16"]


class Dtype:
    """A dtype of PyTorch."""

    def __init__(self, name):
        self.name = name


TORCH = {name: Dtype(name) for name in NAMES}


class Exchange:
    """The functions by which machine code looks into such tensors and makes them (DLPack 1.3)."""

    def __init__(self, torch):
        self.torch, self.kept, self.made = torch, [], {}
        kind = ctypes.CFUNCTYPE(ctypes.c_int, *[_POINTER] * 4)
        two = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, _POINTER)
        streams = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int, _POINTER)
        functions = kind(self.new), two(self.look), two(self.to_python), two(self.look)
        functions = *functions, streams(self.stream)
        pointers = [ctypes.cast(f, _POINTER).value for f in functions]
        self.table = (ctypes.c_int64 * 7)(1 | 3 << 32, 0, *pointers)
        self.kept += [functions]

    def capsule(self):
        """As the type of tensors has it."""
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [_POINTER, ctypes.c_char_p, _POINTER]
        return new(ctypes.addressof(self.table), b"dlpack_exchange_api", None)

    def look(self, tensor, out):
        x = ctypes.cast(tensor, ctypes.py_object).value.array
        if x.dtype.kind != "f":
            return -1
        sizes = (ctypes.c_int64 * (2 * x.ndim))(*x.shape, *(s // x.itemsize for s in x.strides))
        self.kept.append(sizes)
        place, kind = ctypes.addressof(sizes), 2 | 8 * x.itemsize << 8 | 1 << 16
        words = x.ctypes.data, 2, x.ndim | kind << 32, place, place + 8 * x.ndim, 0
        (ctypes.c_int64 * 6).from_address(out)[:] = words
        return 0

    def new(self, wanted, out, context, fail):
        _, place, kind, sizes, strides, _ = (ctypes.c_int64 * 6).from_address(wanted)
        assert place == 2 and not strides
        shape = (ctypes.c_int64 * (kind & 0xFFFFFFFF)).from_address(sizes)[:]
        dtype = np.dtype(f"f{(kind >> 40 & 0xFF) // 8}")
        if self.torch.full:
            return -1
        made = self.torch.empty(tuple(shape), TORCH[dtype.name], None)
        managed = (ctypes.c_int64 * 10)(1, 0, 0, 0, made.array.ctypes.data)
        self.made[ctypes.addressof(managed)] = made, managed
        ctypes.c_int64.from_address(out).value = ctypes.addressof(managed)
        return 0

    def to_python(self, managed, out):
        made, _ = self.made.pop(managed)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(made))
        ctypes.c_int64.from_address(out).value = id(made)
        return 0

    def stream(self, kind, device, out):
        ctypes.c_int64.from_address(out).value = self.torch.now
        return 0


@contextmanager
def fake_torch(monkeypatch, stream=0):
    """A package with such tensors; its current stream may be set."""
    torch = ModuleType("torch")
    torch.__dict__.update(TORCH, Tensor=Tensor, now=stream, made=[], full=False)
    torch.is_grad_enabled = lambda: True
    torch.device = lambda kind, number: (kind, number)
    torch._C = SimpleNamespace(_cuda_getCurrentRawStream=lambda device: torch.now)
    torch.cuda = SimpleNamespace(ExternalStream=lambda handle, device: handle)

    def empty(shape, dtype, device):
        torch.made.append(shape)
        return Tensor(np.full(shape, 7, np.dtype(dtype.name)))

    torch.empty, exchange = empty, Exchange(torch)
    with monkeypatch.context() as m:
        m.setattr(Tensor, "__dlpack_c_exchange_api__", exchange.capsule(), raising=False)
        m.setitem(sys.modules, "torch", torch)
        forget()
        yield torch
    forget()
