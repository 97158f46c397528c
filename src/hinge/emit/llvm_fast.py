"""Calls from Python as machine code: arrays checked and read where they lie.

`fast` is a METH_FASTCALL | METH_KEYWORDS function.  It looks into the ndarray structs; when every
argument is exactly what the program expects (an ndarray of the right dtype, C-contiguous and
aligned, of the shape of a sample or all with the same one leading dimension), it makes the result
arrays, or takes `out=`, and runs the scalar body or the batch.  In any other case, and for one
sample of a strict kernel when a result is not finite, it hands the same arguments to the Python
callable that is the first item of `self`, which knows what to do or what to say.  The other items:
the type of several results; how many samples are worth a helper; how many helpers there may be; and
an array with the address of the team that they belong to.
"""

from __future__ import annotations

from .layout import Layout
from .llvm_body import Flavor, constants
from .llvm_python import helpers
from .llvm_tiles import finite

__all__ = ["fast_call"]

# offsets in PyArrayObject on 64-bit builds with a global lock: after the 16 bytes of the object
_TYPE, _DATA, _ND, _DIMENSIONS, _DESCR, _FLAGS = 8, 16, 24, 32, 56, 64
_READABLE, _WRITEABLE = 0x101, 0x501


def fast_call(layout: Layout, f: Flavor, wide: Flavor, slots: int, strict: bool) -> str:
    """The text of `fast`; strict: numbers that are not finite are the slow way's business."""
    return helpers(f) + _Fast(layout, f, wide).text(slots, strict)


class _Fast:
    """The function line by line; `need` leaves for the slow way."""

    def __init__(self, layout: Layout, f: Flavor, wide: Flavor) -> None:
        self.layout, self.f, self.wide, self.program = layout, f, wide, layout.program
        self.lines: list[str] = []
        self.fresh = 0

    def text(self, slots: int, strict: bool) -> str:
        """The whole function."""
        program, f, newline = self.program, self.f, "\n"
        self.given()
        for i, shape in enumerate(program.inputs):
            self.argument(i, shape)
        if program.inputs:
            self.put("br i1 %batch, label %many, label %one")
            self.label("many")
            self.batch()
        else:
            self.put("br label %one")
        self.label("one")
        self.single(strict)
        arrays = len(program.inputs) + len(program.outputs)
        dimensions = 1 + max([len(shape) for shape in program.outputs] + [0])
        return f"""define ptr @fast(ptr %self, ptr %args, i64 %nargs, ptr %names) #1 {{
entry:
  %ws = alloca [{max(slots, 1)} x {f.type}], align 64
  %out = alloca [{max(self.layout.size, 1)} x {f.type}], align 64
  %shape = alloca [{dimensions} x i64]
  %arrays = alloca [{arrays} x ptr]
  %strides = alloca [{arrays + 1} x i64]
  %result = alloca ptr
  %out_arg = alloca ptr
  store ptr null, ptr %out_arg
{newline.join(self.lines)}
slow:
  %otherwise = call ptr @hinge_item(ptr %self, i64 0)
  %other = call ptr @hinge_vectorcall(ptr %otherwise, ptr %args, i64 %nargs, ptr %names)
  ret ptr %other
}}
"""

    # writing

    def put(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def let(self, text: str) -> str:
        self.fresh += 1
        self.put(f"%f{self.fresh} = {text}")
        return f"%f{self.fresh}"

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def branch(self, truth: str, yes: str, no: str) -> None:
        self.put(f"br i1 {truth}, label %{yes}, label %{no}")

    def need(self, truth: str) -> None:
        """Go on if it is true, else the slow way."""
        self.fresh += 1
        self.branch(truth, f"go{self.fresh}", "slow")
        self.label(f"go{self.fresh}")

    def need_equal(self, kind: str, a: str, b: str | int) -> None:
        self.need(self.let(f"icmp eq {kind} {a}, {b}"))

    def at(self, kind: str, base: str, offset: int | str) -> str:
        """What lies so many bytes from a base."""
        where = self.let(f"getelementptr i8, ptr {base}, i64 {offset}")
        return self.let(f"load {kind}, ptr {where}")

    def set(self, kind: str, value: str | int, base: str, index: int) -> None:
        where = self.let(f"getelementptr {kind}, ptr {base}, i64 {index}")
        self.put(f"store {kind} {value}, ptr {where}")

    # looking at what is given

    @property
    def descr(self) -> str:
        return "@hinge_descr_f64" if self.f.scalar == "double" else "@hinge_descr_f32"

    def given(self) -> None:
        """The right number of arguments, and nothing by name but out, if there is one result."""
        n = len(self.program.inputs)
        self.need_equal("i64", "%nargs", n)
        self.branch(self.let("icmp eq ptr %names, null"), "start", "named")
        self.label("named")
        if self.program.form is None:
            self.need_equal("i64", self.let("call i64 @hinge_size(ptr %names)"), 1)
            self.need_equal(
                "ptr", self.let("call ptr @hinge_item(ptr %names, i64 0)"), "@hinge_out"
            )
            array = self.at("ptr", "%args", 8 * n)
            self.array(array, _WRITEABLE)
            self.put(f"store ptr {array}, ptr %out_arg")
            self.put("br label %start")
        else:
            self.put("br label %slow")
        self.label("start")

    def array(self, array: str, flags: int) -> None:
        """An ndarray of the right kind."""
        self.need_equal("ptr", self.at("ptr", array, _TYPE), "@hinge_ndarray")
        self.need_equal("ptr", self.at("ptr", array, _DESCR), self.descr)
        have = self.let(f"and i32 {self.at('i32', array, _FLAGS)}, {flags}")
        self.need_equal("i32", have, flags)

    def argument(self, i: int, shape: tuple[int, ...]) -> None:
        """Argument i: one sample, or a batch of them if the first is one."""
        array = self.at("ptr", "%args", 8 * i)
        self.array(array, _READABLE)
        more = self.let(f"sub i32 {self.at('i32', array, _ND)}, {len(shape)}")
        if i == 0:
            self.put(f"%batch = icmp eq i32 {more}, 1")
            self.put("%lead = zext i1 %batch to i32")
            self.put("%skip = select i1 %batch, i64 8, i64 0")
        self.need_equal("i32", more, "%lead")
        self.dimensions(array, shape, "%skip")
        self.put(f"%array{i} = getelementptr i8, ptr {array}, i64 0")
        self.put(
            f"%in{i} = load ptr, ptr {self.let(f'getelementptr i8, ptr {array}, i64 {_DATA}')}"
        )

    def dimensions(self, array: str, shape: tuple[int, ...], skip: str | int) -> None:
        """The last dimensions of an array are those of a sample."""
        own = self.at("ptr", array, _DIMENSIONS)
        first = self.let(f"getelementptr i8, ptr {own}, i64 {skip}")
        for k, size in enumerate(shape):
            self.need_equal("i64", self.at("i64", first, 8 * k), size)

    # one sample

    def single(self, strict: bool) -> None:
        """The scalar body, then the results, so that a failure leaves them alone."""
        layout, program, f = self.layout, self.program, self.f
        self.lines += constants(layout, f, "const")
        arguments = [*(f"ptr %in{i}" for i in range(len(program.inputs))), "ptr %out", "ptr %ws"]
        self.put(f"call void @all_{f.name}({', '.join(arguments)})")
        if strict:
            more, truth = finite(layout, self.wide)
            self.lines += more
            self.need(truth)
        made, entry = self.results("one", None), 0
        for array, size in zip(made, program.output_sizes, strict=True):
            index = f"ptr getelementptr (i32, ptr @index, i64 {entry})"
            data = self.at("ptr", array, _DATA)
            self.put(f"call void @spread_{f.name}(ptr %out, {index}, ptr {data}, i64 {size})")
            entry += size
        self.package(made)

    # many

    def batch(self) -> None:
        """All samples by `run`, the interpreter's lock let go; with helpers if it is worth it."""
        program, word = self.program, 8 if self.f.scalar == "double" else 4
        for i in range(len(program.inputs)):
            count = self.at("i64", self.at("ptr", f"%array{i}", _DIMENSIONS), 0)
            if i == 0:
                self.put(f"%n = add i64 {count}, 0")
            self.need_equal("i64", count, "%n")
            self.set("ptr", f"%in{i}", "%arrays", i)
        self.helpers()
        made = self.results("many", "%n")
        for i, size in enumerate(program.input_sizes + program.output_sizes):
            self.set("i64", word * size, "%strides", i)
        self.set("i64", "%n", "%strides", len(program.inputs) + len(program.outputs))
        for i, array in enumerate(made, len(program.inputs)):
            self.set("ptr", self.at("ptr", array, _DATA), "%arrays", i)
        self.run(made)

    def own(self, item: int) -> str:
        """A number that is an item of self."""
        number = self.let(f"call ptr @hinge_item(ptr %self, i64 {item})")
        return self.let(f"call i64 @hinge_number(ptr {number})")

    def helpers(self) -> None:
        """How many helpers to ask for; if any, there has to be a team."""
        worth = self.let(f"sdiv i64 %n, {self.own(2)}")
        self.put(f"%helpers = call i64 @llvm.smin.i64(i64 {worth}, i64 {self.own(3)})")
        cell = self.at("ptr", self.let("call ptr @hinge_item(ptr %self, i64 4)"), _DATA)
        self.put(f"%team = load ptr, ptr {cell}")
        self.put("%alone = icmp eq i64 %helpers, 0")
        there = self.let("icmp ne ptr %team, null")
        self.need(self.let(f"or i1 %alone, {there}"))

    def run(self, made: list[str]) -> None:
        """`run` on all samples, with room to work in for everybody."""
        self.put("%bytes = call i64 @workspace()")
        areas = self.let(f"mul i64 %bytes, {self.let('add i64 %helpers, 1')}")
        self.put(f"%room = add i64 {areas}, 64")
        self.put("%scratch = call ptr @hinge_allocate(i64 %room)")
        self.branch(self.let("icmp eq ptr %scratch, null"), "no_room", "run")
        self.label("no_room")
        for array in made:
            self.put(f"call void @hinge_release(ptr {array})")
        self.put("%raised = call ptr @hinge_no_memory()")
        self.put("ret ptr null")
        self.label("run")
        number = self.let("ptrtoint ptr %scratch to i64")
        up = self.let(f"and i64 {self.let(f'sub i64 0, {number}')}, 63")
        aligned = self.let(f"getelementptr i8, ptr %scratch, i64 {up}")
        self.put("%thread = call ptr @hinge_unlock()")
        self.branch("%alone", "run_alone", "run_shared")
        self.label("run_alone")
        self.put(f"call void @run(ptr %arrays, ptr %strides, i64 0, i64 %n, ptr {aligned})")
        self.put("br label %ran")
        self.label("run_shared")
        batch = "ptr %team, ptr @run, ptr %arrays, ptr %strides, i64 %n"
        rest = f"ptr {aligned}, i64 %bytes, i64 %helpers, i64 {self.wide.lanes}"
        self.put(f"call void {self.let('load ptr, ptr %team')}({batch}, {rest})")
        self.put("br label %ran")
        self.label("ran")
        self.put("call void @hinge_lock(ptr %thread)")
        self.put("call void @hinge_free(ptr %scratch)")
        self.package(made)

    # results

    def results(self, name: str, count: str | None) -> list[str]:
        """The arrays of the results: out, or new ones; an error is already set when one fails."""
        if self.program.form is not None:
            return self.new(name, count)
        given = self.let("load ptr, ptr %out_arg")
        self.branch(self.let(f"icmp eq ptr {given}, null"), f"{name}_new", f"{name}_given")
        self.label(f"{name}_given")
        (shape,) = self.program.outputs
        lead = 0 if count is None else 1
        self.need_equal("i32", self.at("i32", given, _ND), len(shape) + lead)
        self.dimensions(given, shape, 8 * lead)
        if count is not None:
            self.need_equal("i64", self.at("i64", self.at("ptr", given, _DIMENSIONS), 0), count)
            self.apart(given, count)
        self.put(f"call void @hinge_retain(ptr {given})")
        self.put(f"store ptr {given}, ptr %result")
        self.put(f"br label %{name}_ready")
        self.label(f"{name}_new")
        (made,) = self.new(name, count)
        self.put(f"store ptr {made}, ptr %result")
        self.put(f"br label %{name}_ready")
        self.label(f"{name}_ready")
        return [self.let("load ptr, ptr %result")]

    def apart(self, out: str, count: str) -> None:
        """No argument shares memory with out: a later sample could be overwritten."""
        word = 8 if self.f.scalar == "double" else 4
        sizes = [*self.program.input_sizes, self.program.output_sizes[0]]
        total = [self.let(f"mul i64 {count}, {word * size}") for size in sizes]
        data = self.at("ptr", out, _DATA)
        end = self.let(f"getelementptr i8, ptr {data}, i64 {total.pop()}")
        for i, size in enumerate(total):
            stop = self.let(f"getelementptr i8, ptr %in{i}, i64 {size}")
            before = self.let(f"icmp ule ptr {stop}, {data}")
            after = self.let(f"icmp ule ptr {end}, %in{i}")
            self.need(self.let(f"or i1 {before}, {after}"))

    def new(self, name: str, count: str | None) -> list[str]:
        """New arrays; if one cannot be made, those before it are let go."""
        number, made = (12 if self.f.scalar == "double" else 11), []
        lead = [] if count is None else [count]
        if count is not None and len(self.program.outputs) > 1:
            self.keep_pages(count)
        for i, sizes in enumerate(self.program.outputs):
            shape = [*lead, *sizes]
            for k, size in enumerate(shape):
                self.set("i64", size, "%shape", k)
            call = f"ptr @hinge_ndarray, i32 {len(shape)}, ptr %shape, i32 {number}"
            rest = "ptr null, ptr null, i32 0, i32 0, ptr null"
            array = self.let(f"call ptr @hinge_new_array({call}, {rest})")
            null = self.let(f"icmp eq ptr {array}, null")
            self.branch(null, f"{name}_fail{i}", f"{name}_made{i}")
            self.label(f"{name}_fail{i}")
            for earlier in made:
                self.put(f"call void @hinge_release(ptr {earlier})")
            self.put("ret ptr null")
            self.label(f"{name}_made{i}")
            made.append(array)
        return made

    def keep_pages(self, count: str) -> None:
        """Take and free one block as large as all results together.

        The C library of Linux returns freed memory to the system, which hands it out again page by
        page and zeroed, once more lies free than twice the largest block freed before: several
        large results, freed together, would pay for their pages at every call.
        """
        word = 8 if self.f.scalar == "double" else 4
        size = self.let(f"mul i64 {count}, {word * sum(self.program.output_sizes)}")
        block = self.let(f"call ptr @hinge_allocate(i64 {size})")
        self.put(f"call void @hinge_free(ptr {block})")

    def package(self, made: list[str]) -> None:
        """One array as it is, several as a tuple of the type that `self` names."""
        if self.program.form is None:
            self.put(f"ret ptr {made[0]}")
            return
        for i, array in enumerate(made):
            self.set("ptr", array, "%arrays", i)
        form = self.let("call ptr @hinge_item(ptr %self, i64 1)")
        whole = f"call ptr @together(ptr %arrays, i64 {len(made)}, ptr {form})"
        self.put(f"ret ptr {self.let(whole)}")
