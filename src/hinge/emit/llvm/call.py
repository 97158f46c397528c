"""A function that Python can call, line by line: what it is given, and what it returns.

It is a METH_FASTCALL | METH_KEYWORDS function that looks into the ndarray structs.  `need` leaves
it for whoever knows more; nothing has been changed by then, and no reference taken.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...graph.program import Program

__all__ = ["Call"]

# offsets in PyArrayObject on 64-bit builds with a global lock: after the 16 bytes of the object
_TYPE, _DATA, _ND, _DIMENSIONS, _DESCR, _FLAGS = 8, 16, 24, 32, 56, 64
_READABLE, _WRITEABLE = 0x101, 0x501
# bytes, number among the types of NumPy, descriptor
_KINDS = {"double": (8, 12, "@hinge_descr_f64"), "float": (4, 11, "@hinge_descr_f32")}


class Call:
    """The function as far as it is the same for one sample and for many.

    lead: before the shape of a sample, nothing or the number of samples.
    """

    def __init__(self, program: Program, scalar: str, lead: Sequence[str] = ()) -> None:
        self.program, self.lead = program, lead
        self.word, self.number, self.descr = _KINDS[scalar]
        self.lines: list[str] = []
        self.fresh = 0

    def function(self, name: str, room: Sequence[str], otherwise: str) -> str:
        """The whole text; room: on the stack; otherwise: what makes `%other` where `need` left."""
        dimensions = max([len(shape) for shape in self.program.outputs] + [0])
        lines = [
            f"define ptr @{name}(ptr %self, ptr %args, i64 %nargs, ptr %names) #1 {{",
            "entry:",
            *room,
            f"  %shape = alloca [{dimensions + 1} x i64]",
            f"  %results = alloca [{max(len(self.program.outputs), 1)} x ptr]",
            *self.lines,
            "otherwise:",
            otherwise,
            "  ret ptr %other",
            "}\n",
        ]
        return "\n".join(lines)

    # writing

    def put(self, text: str) -> None:
        """One more line."""
        self.lines.append(f"  {text}")

    def let(self, text: str) -> str:
        """A value, and its name."""
        self.fresh += 1
        self.put(f"%f{self.fresh} = {text}")
        return f"%f{self.fresh}"

    def label(self, name: str) -> None:
        """What follows can be jumped to."""
        self.lines.append(f"{name}:")

    def branch(self, truth: str, yes: str, no: str) -> None:
        """Go on at one label or the other."""
        self.put(f"br i1 {truth}, label %{yes}, label %{no}")

    def need(self, truth: str) -> None:
        """Go on if it is true, else leave."""
        self.fresh += 1
        self.branch(truth, f"go{self.fresh}", "otherwise")
        self.label(f"go{self.fresh}")

    def need_equal(self, kind: str, a: str, b: str | int) -> None:
        """Go on if they are the same, else leave."""
        self.need(self.let(f"icmp eq {kind} {a}, {b}"))

    def at(self, kind: str, base: str, offset: int) -> str:
        """What lies so many bytes from a base."""
        where = self.let(f"getelementptr i8, ptr {base}, i64 {offset}")
        return self.let(f"load {kind}, ptr {where}")

    def set(self, kind: str, value: str | int, base: str, index: int) -> None:
        """Entry of a table."""
        where = self.let(f"getelementptr {kind}, ptr {base}, i64 {index}")
        self.put(f"store {kind} {value}, ptr {where}")

    def own(self, item: int) -> str:
        """An item of self."""
        return self.let(f"call ptr @hinge_item(ptr %self, i64 {item})")

    # what is given

    def given(self) -> None:
        """The right number of arguments, and nothing by name but out."""
        self.need_equal("i64", "%nargs", len(self.program.inputs))
        self.branch(self.let("icmp eq ptr %names, null"), "start", "named")
        self.label("named")
        self.need_equal("i64", self.let("call i64 @hinge_size(ptr %names)"), 1)
        self.need_equal("ptr", self.let("call ptr @hinge_item(ptr %names, i64 0)"), "@hinge_out")
        self.put("br label %start")
        self.label("start")

    def argument(self, i: int) -> str:
        """Argument i if it is what is expected, and where its numbers are."""
        array, shape = self.at("ptr", "%args", 8 * i), self.program.inputs[i]
        self.array(array, _READABLE, len(shape))
        if i == 0:
            # as many samples as the first has
            for n in self.lead:
                self.put(f"{n} = load i64, ptr {self.at('ptr', array, _DIMENSIONS)}")
        self.dimensions(array, shape)
        self.put(f"%in{i} = getelementptr i8, ptr {self.data(array)}, i64 0")
        return f"%in{i}"

    def array(self, array: str, flags: int, dimensions: int) -> None:
        """An ndarray of the right kind."""
        self.need_equal("ptr", self.at("ptr", array, _TYPE), "@hinge_ndarray")
        self.need_equal("ptr", self.at("ptr", array, _DESCR), self.descr)
        have = self.let(f"and i32 {self.at('i32', array, _FLAGS)}, {flags}")
        self.need_equal("i32", have, flags)
        self.need_equal("i32", self.at("i32", array, _ND), len(self.lead) + dimensions)

    def dimensions(self, array: str, shape: tuple[int, ...]) -> None:
        """It has the shape of a sample, or of all."""
        own = self.at("ptr", array, _DIMENSIONS)
        for k, size in enumerate([*self.lead, *shape]):
            self.need_equal("i64", self.at("i64", own, 8 * k), size)

    def data(self, array: str) -> str:
        """Where the numbers of an array are."""
        return self.at("ptr", array, _DATA)

    # results

    def results(self) -> list[str]:
        """The arrays of the results: those of out, or new ones."""
        self.branch(self.let("icmp eq ptr %names, null"), "new", "taken")
        self.label("taken")
        made = self.out()
        for array, shape in zip(made, self.program.outputs, strict=True):
            self.array(array, _WRITEABLE, len(shape))
            self.dimensions(array, shape)
        self.apart(made)
        for i, array in enumerate(made):
            self.put(f"call void @hinge_retain(ptr {array})")
            self.set("ptr", array, "%results", i)
        self.put("br label %ready")
        self.label("new")
        if self.lead:
            self.remembered()
        self.new()
        self.put("br label %ready")
        self.label("ready")
        return [self.at("ptr", "%results", 8 * i) for i in range(len(made))]

    def out(self) -> list[str]:
        """What `out` names: one array, or as many in a tuple or list as there are results."""
        given = self.at("ptr", "%args", 8 * len(self.program.inputs))
        if self.program.form is None:
            return [given]
        kind, form = self.at("ptr", given, _TYPE), self.own(1)
        listed = self.let(f"icmp eq ptr {kind}, @hinge_list")
        known = [self.let(f"icmp eq ptr {kind}, {t}") for t in ("@hinge_tuple", form)]
        self.need(self.let(f"or i1 {listed}, {self.let(f'or i1 {known[0]}, {known[1]}')}"))
        size = self.let(f"select i1 {listed}, ptr @hinge_list_size, ptr @hinge_size")
        item = self.let(f"select i1 {listed}, ptr @hinge_list_item, ptr @hinge_item")
        count = len(self.program.outputs)
        self.need_equal("i64", self.let(f"call i64 {size}(ptr {given})"), count)
        return [self.let(f"call ptr {item}(ptr {given}, i64 {i})") for i in range(count)]

    def apart(self, made: list[str]) -> None:
        """No result shares memory with another one, nor with an argument that is still to be read:

        of a batch, a later sample could be overwritten; one sample is read before any is written.
        """
        inputs = [f"%in{i}" for i in range(len(self.program.inputs))] if self.lead else []
        sizes = self.program.input_sizes[: len(inputs)]
        taken = [(data, self.end(data, size)) for data, size in zip(inputs, sizes, strict=True)]
        for array, size in zip(made, self.program.output_sizes, strict=True):
            data = self.data(array)
            stop = self.end(data, size)
            for begin, end in taken:
                before = self.let(f"icmp ule ptr {end}, {data}")
                after = self.let(f"icmp ule ptr {stop}, {begin}")
                self.need(self.let(f"or i1 {before}, {after}"))
            taken.append((data, stop))

    def end(self, data: str, size: int) -> str:
        """Where an array with so many numbers per sample ends."""
        total = self.let(f"mul i64 {self.lead[0] if self.lead else 1}, {self.word * size}")
        return self.let(f"getelementptr i8, ptr {data}, i64 {total}")

    def remembered(self) -> None:
        """Results of more bytes than item 7 of `self` says: from item 6, which knows of some."""
        size = self.let(f"mul i64 {self.lead[0]}, {self.word * sum(self.program.output_sizes)}")
        limit = self.let(f"call i64 @hinge_number(ptr {self.own(7)})")
        self.branch(self.let(f"icmp sgt i64 {size}, {limit}"), "large", "small")
        self.label("large")
        number = self.let(f"call ptr @hinge_from_number(i64 {self.lead[0]})")
        self.put(f"store ptr {number}, ptr %results")
        asked = f"ptr {self.own(6)}, ptr %results, i64 1, ptr null"
        arrays = self.let(f"call ptr @hinge_vectorcall({asked})")
        self.put(f"call void @hinge_release(ptr {number})")
        self.branch(self.let(f"icmp eq ptr {arrays}, null"), "none", "some")
        self.label("none")
        self.put("ret ptr null")
        self.label("some")
        for i in range(len(self.program.outputs)):
            array = self.let(f"call ptr @hinge_item(ptr {arrays}, i64 {i})")
            self.put(f"call void @hinge_retain(ptr {array})")
            self.set("ptr", array, "%results", i)
        self.put(f"call void @hinge_release(ptr {arrays})")
        self.put("br label %ready")
        self.label("small")

    def new(self) -> None:
        """New arrays; if one cannot be made, those before it are let go, and its error is told."""
        made = []
        if self.lead and len(self.program.outputs) > 1:
            self.keep_pages()
        for i, sizes in enumerate(self.program.outputs):
            shape = [*self.lead, *sizes]
            for k, size in enumerate(shape):
                self.set("i64", size, "%shape", k)
            call = f"ptr @hinge_ndarray, i32 {len(shape)}, ptr %shape, i32 {self.number}"
            rest = "ptr null, ptr null, i32 0, i32 0, ptr null"
            array = self.let(f"call ptr @hinge_new_array({call}, {rest})")
            self.branch(self.let(f"icmp eq ptr {array}, null"), f"fail{i}", f"made{i}")
            self.label(f"fail{i}")
            self.let_go(made)
            self.put("ret ptr null")
            self.label(f"made{i}")
            self.set("ptr", array, "%results", i)
            made.append(array)

    def keep_pages(self) -> None:
        """Take and free one block as large as all results together.

        The C library of Linux returns freed memory to the system, which hands it out again page by
        page and zeroed, once more lies free than twice the largest block freed before: several
        large results, freed together, would pay for their pages at every call.
        """
        size = self.let(f"mul i64 {self.lead[0]}, {self.word * sum(self.program.output_sizes)}")
        block = self.let(f"call ptr @hinge_allocate(i64 {size})")
        self.put(f"call void @hinge_free(ptr {block})")

    def let_go(self, made: list[str]) -> None:
        """Give references back."""
        for array in made:
            self.put(f"call void @hinge_release(ptr {array})")

    def package(self, made: list[str]) -> None:
        """Return one array as it is, several as a tuple of the type that `self` names."""
        if self.program.form is None:
            self.put(f"ret ptr {made[0]}")
            return
        whole = f"call ptr @together(ptr %results, i64 {len(made)}, ptr {self.own(1)})"
        self.put(f"ret ptr {self.let(whole)}")
