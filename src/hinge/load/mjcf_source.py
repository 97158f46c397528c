"""An MJCF file, all it includes and all the files it names, as one text and a handful of bytes.

MuJoCo is given this text and these bytes and opens nothing itself.  Includes are put in their
place; meshes, textures and models to attach are read from the folder of the main file or from those
that the user gave, never from elsewhere; their names in the text become names of contents.  Every
element starts a line of its own, no line number is used twice, and `origins` says where each came
from: a line in a message of MuJoCo's leads back to a file and a line.

A short file can describe a huge model: MuJoCo copies (`replicate`, `attach`) and allocates (grids,
textures, samples) whatever it is told to, follows models that contain themselves for ever, and
takes a time that grows with the square of the number of elements.  What is refused here would
exhaust the machine there.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from xml.sax.saxutils import quoteattr

from .mujoco_shapes import MeshFile
from .paths import PathLike
from .xml import MAX_DEPTH, Element, parse, shortened

__all__ = ["MjcfSource", "check_copies", "check_sizes", "descendants"]

MAX_MODELS = 4
_FOLDERS = ("assetdir", "meshdir", "texturedir", "strippath")
# room that a simulation may take, and sizes that MuJoCo finds by itself
_ROOM = re.compile("memory|njmax|nconmax|nstack|nkey|nuserdata|nuser_.*")
# nothing is simulated while compiling, and no warning comes from another thread
_LAST = '<compiler usethread="false"><lengthrange mode="none"/></compiler>'


@dataclass
class _Document:
    """A text in the making: the main file or a model to attach, with its folder and settings."""

    root: Element
    folder: str | None
    meshdir: str = ""
    texturedir: str = ""
    strippath: bool = False
    parts: list[str] = field(default_factory=list)
    line: int = 1
    largest: int = 1

    def __post_init__(self) -> None:
        for compiler in self.root.all("compiler"):
            given = compiler.attributes
            assets = given.get("assetdir")
            self.meshdir = given.get("meshdir", self.meshdir if assets is None else assets)
            self.texturedir = given.get("texturedir", self.texturedir if assets is None else assets)
            self.strippath = given.get("strippath", str(self.strippath).lower()) == "true"

    def path_of(self, element: Element, written: str) -> str:
        """A file's name relative to the document's folder."""
        name = written.replace("\\", "/")
        if element.tag == "model":
            return name
        name = os.path.basename(name) if self.strippath else name
        folder = self.texturedir if element.tag == "texture" else self.meshdir
        return os.path.join(folder.replace("\\", "/"), name)


class MjcfSource:
    """The main text, `files` by the names it gives them, and where they and its lines come from.

    paths, meshes: of the files, by the same names; origins: the element on each line.
    """

    def __init__(
        self,
        text: str | bytes,
        source: str,
        folder: PathLike | None = None,
        package_dirs: Sequence[PathLike] = (),
    ) -> None:
        self._source = source
        self._folder = None if folder is None else os.path.realpath(folder)
        given = [os.path.realpath(d) for d in package_dirs]
        self._roots = given if self._folder is None else [self._folder, *given]
        self.files: dict[str, bytes] = {}
        self.paths: dict[str, str] = {}
        self.origins: list[Element] = []
        self.meshes: dict[str, MeshFile] = {}
        self._kept: dict[tuple[bool, str, MeshFile | None], tuple[str, int]] = {}
        self.root = parse(text, source)
        self.text, _ = self._flatten(self.root, self._folder, ())

    # includes

    def _flatten(
        self, root: Element, folder: str | None, chain: tuple[str, ...]
    ) -> tuple[str, int]:
        """A document as text, and the number of elements it makes."""
        if root.tag != "mujoco":
            raise root.error(f"the root is <{root.tag}>; expected <mujoco>")
        self._expand(root, folder, folder, set(chain), 0)
        document = _Document(root, folder)
        for element in descendants(root):
            if element.tag == "model" and element.get("file"):
                self._gather(document, element, element.attributes["file"], chain)
        self._write(document, root)
        return "".join(document.parts), check_copies(root, document.largest)

    def _expand(
        self, element: Element, main: str | None, here: str | None, seen: set[str], depth: int
    ) -> None:
        """Put what is included in its place; main, here: folders of the main and of this file."""
        if depth > MAX_DEPTH:
            raise element.error(f"{element} is nested more than {MAX_DEPTH} deep by includes")
        children: list[Element] = []
        for child in element.children:
            if child.tag == "include":
                path, included = self._include(child, main, here, seen)
                self._expand(included, main, os.path.dirname(path), seen, depth + 1)
                children += included.children
            else:
                self._expand(child, main, here, seen, depth + 1)
                children.append(child)
        element.children = children

    def _include(
        self, element: Element, main: str | None, here: str | None, seen: set[str]
    ) -> tuple[str, Element]:
        """The path and the root of an included file."""
        if element.children:
            raise element.error("<include> has children; it only names a file")
        path = self._locate(element, element.string("file").replace("\\", "/"), (main, here))
        if path in seen:
            raise element.error(
                f"{shortened(element.string('file'), 200)} is included twice, or includes itself; "
                "a file can be included once"
            )
        seen.add(path)
        included = parse(_read(element, path), self._display(path))
        if not included.children:
            raise element.error(
                f"{shortened(element.string('file'), 200)} is empty; it adds nothing"
            )
        return path, included

    # files

    def _locate(self, element: Element, name: str, folders: Sequence[str | None]) -> str:
        """The real path of a named file, the first that exists and lies where files may lie."""
        known = [folder for folder in dict.fromkeys(folders) if folder is not None]
        if not known:
            raise element.error(
                f"<{element.tag}> names the file {shortened(name, 200)}, but this text has no "
                "folder; load the model from a file"
            )
        paths = [os.path.realpath(os.path.join(folder, name)) for folder in known]
        inside = [path for path in paths if any(_contains(root, path) for root in self._roots)]
        for path in inside:
            if os.path.isfile(path):
                return path
        if not inside:
            raise element.error(
                f"<{element.tag}> names {shortened(name, 200)}, which leads out of the folder of "
                "the model; move the file there, or pass the folder that holds it in package_dirs"
            )
        raise element.error(f"<{element.tag}> names {shortened(name, 200)}; there is no such file")

    def _gather(
        self, document: _Document, element: Element, written: str, chain: tuple[str, ...] = ()
    ) -> str:
        """Keep a file's contents, and return the name they have from now on.

        chain: of a model to attach, the paths of the models it is in.
        """
        path = self._locate(element, document.path_of(element, written), (document.folder,))
        mesh = MeshFile.of(element, path) if element.tag == "mesh" else None
        key = element.tag == "model", path, mesh
        if key not in self._kept:
            data, size = _read(element, path), 0
            if element.tag == "model":
                data, size = self._model(element, path, data, chain)
            extension = re.sub(r"[^.a-zA-Z0-9]", "", os.path.splitext(path)[1])
            name = sha256(data + repr(mesh).encode()).hexdigest()[:24] + extension
            self.files[name], self.paths[name] = data, path
            self._kept[key] = name, size
            if mesh is not None:
                self.meshes[name] = mesh
        name, size = self._kept[key]
        document.largest = max(document.largest, size)
        return name

    def _model(
        self, element: Element, path: str, data: bytes, chain: tuple[str, ...]
    ) -> tuple[bytes, int]:
        """A model to attach, flattened, and the number of elements it makes."""
        if path in chain or len(chain) == MAX_MODELS:
            raise element.error(
                f"the model {shortened(element.string('file'), 200)} contains itself, or lies more "
                f"than {MAX_MODELS} models deep"
            )
        root = parse(data, self._display(path))
        text, size = self._flatten(root, os.path.dirname(path), (*chain, path))
        return text.encode(), size

    def _display(self, path: str) -> str:
        """How messages call a file: as seen from where the main file was named."""
        folder = os.path.dirname(self._source)
        try:
            return os.path.normpath(os.path.join(folder, os.path.relpath(path, self._folder)))
        except ValueError:
            # on another drive
            return path

    # text

    def _write(self, document: _Document, element: Element) -> None:
        """Write an element at the start of the next line that no other element has."""
        check_sizes(element)
        attributes = self._attributes(document, element)
        self.origins.append(element)
        document.parts.append("\n" * (len(self.origins) - document.line))
        document.line = len(self.origins)
        document.parts.append(f"<{element.tag}")
        document.parts += [f" {name}={quoteattr(value)}" for name, value in attributes.items()]
        document.parts.append(">")
        for child in element.children:
            if not (element.tag == "compiler" and child.tag == "lengthrange"):
                self._write(document, child)
        if element is document.root:
            document.parts.append(_LAST)
        document.parts.append(f"</{element.tag}>")

    def _attributes(self, document: _Document, element: Element) -> dict[str, str]:
        """An element's attributes, with new names for files."""
        given = dict(element.attributes)
        if element.tag == "compiler":
            return {name: value for name, value in given.items() if name not in _FOLDERS}
        if element.tag == "size":
            return {name: value for name, value in given.items() if not _ROOM.fullmatch(name)}
        for name, value in element.attributes.items():
            if name.startswith("file") and value:
                given[name] = self._gather(document, element, value)
        # an asset without a name is called after its file
        if given.get("file") and element.tag in ("hfield", "mesh", "skin", "texture"):
            stem = os.path.basename(element.attributes["file"].replace("\\", "/"))
            given.setdefault("name", os.path.splitext(stem)[0])
        return given


def _contains(root: str, path: str) -> bool:
    return Path(path).is_relative_to(root)


def _read(element: Element, path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as e:
        raise element.error(f"{path} cannot be read: {e.strerror}") from None


MAX_ELEMENTS = 50_000
MAX_COPIES = 10_000  # of elements, made by replicate and attach

# the product of all numbers in these attributes of one element is at most this
_SIZES = (
    (("count",), 4_000),
    (("params",), 100_000),
    (("nrow", "ncol"), 100_000_000),
    (("width", "height"), 100_000_000),
    (("resolution",), 10_000_000),
    (("dim",), 100_000),
    (("num",), 100_000),
    (("actdim",), 100_000),
    (("nsample",), 100_000),
)


def check_sizes(element: Element) -> None:
    """Refuse an element that asks for an absurd amount of anything."""
    for names, limit in _SIZES:
        given = [name for name in names if name in element.attributes]
        size = math.prod(max(1.0, abs(x)) for name in given for x in element.numbers(name))
        if size > limit:
            what = " and ".join(f"{name}={element.get(name)!r}" for name in given)
            raise element.error(f"<{element.tag}> has {what}; at most {limit} is read")


def check_copies(root: Element, largest: int) -> int:
    """Refuse a document that makes too many elements; returns how many it makes.

    largest: the elements of the largest model that the document can attach.
    """
    made = 0
    limit = min(MAX_ELEMENTS, len(descendants(root)) + MAX_COPIES)
    sizes: dict[str, int] = {}

    def walk(element: Element) -> None:
        nonlocal made
        before = made
        made += 1 + _grid(element)
        if element.tag == "attach":
            # what is not finished yet, or was made by attaching, is at most all there is
            target = element.get("body") or element.get("frame") or ""
            made += largest if "model" in element.attributes else sizes.get(target, made)
        for child in element.children:
            walk(child)
        if element.tag == "replicate":
            made += (made - before) * max(0, int(element.number("count", 1.0)))
        if made > limit:
            raise element.error(
                f"with <{element.tag}> there are more than {limit} elements, counting what is "
                "replicated and attached; split the model"
            )
        if element.tag in ("body", "frame"):
            sizes[element.get("name") or ""] = made - before

    walk(root)
    return made


def _grid(element: Element) -> int:
    """The elements that MuJoCo makes of a grid."""
    if element.tag not in ("composite", "flexcomp"):
        return 0
    return int(math.prod(abs(n) for n in element.numbers("count", default=(0.0,))))


def descendants(root: Element) -> list[Element]:
    """The element and all below it."""
    found = [root]
    for element in found:
        found.extend(element.children)
    return found
