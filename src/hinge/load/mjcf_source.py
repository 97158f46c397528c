"""An MJCF file, all it includes and all the files it names, as one text and a handful of bytes.

MuJoCo is given this text and these bytes and opens nothing itself.  Includes are put in their
place; meshes and models to attach are read from where a model may read (`project`), never from
elsewhere; their names in the text become names of contents.  Every element starts a line of its
own, no line number is used twice, and `origins` says where each came from: a line in a message of
MuJoCo's leads back to a file and a line.

What a mechanism has no use for is not passed on: textures, height fields' data, skins, sensors,
keyframes, custom data and the settings of a viewer.  None of it changes what MuJoCo says of bodies
and joints, and files that only it names may be missing.  What would exhaust the machine is refused
(`mjcf_limits`), and so is what MuJoCo would take for a format of its error messages.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from xml.sax.saxutils import quoteattr

from .limits import MAX_MEMORY
from .mjcf_limits import Budget, check_sizes, descendants, elements_made
from .mjcf_table import SKIPPED, unknown
from .mujoco_shapes import MeshFile
from .paths import PathLike, read_bounded
from .project import Reach
from .xml import MAX_BYTES, MAX_DEPTH, Element, parse, shortened

__all__ = ["MjcfSource"]

MAX_MODELS = 4
_FOLDERS = ("assetdir", "meshdir", "texturedir", "strippath")
# room that a simulation may take, and sizes that MuJoCo finds by itself
_ROOM = re.compile("memory|njmax|nconmax|nstack|nkey|nuserdata|nuser_.*")
# attributes that need what is not passed on
_UNUSED_OF = {
    "material": ("texture",),
    "light": ("texture",),
    "hfield": ("file", "content_type", "elevation"),
}
# nothing is simulated while compiling, and no warning comes from another thread
_LAST = '<compiler usethread="false"><lengthrange mode="none"/></compiler>'


@dataclass
class _Document:
    """A text in the making: the main file or a model to attach, with its folder and settings."""

    root: Element
    folder: str | None
    meshdir: str = ""
    strippath: bool = False
    parts: list[str] = field(default_factory=list)
    line: int = 1
    largest: int = 1

    def __post_init__(self) -> None:
        for compiler in self.root.all("compiler"):
            given = compiler.attributes
            assets = given.get("assetdir")
            self.meshdir = given.get("meshdir", self.meshdir if assets is None else assets)
            self.strippath = given.get("strippath", str(self.strippath).lower()) == "true"

    def names(self, element: Element, written: str) -> tuple[str, str]:
        """A file's name relative to the document's folder, and to that of an included file."""
        name = written.replace("\\", "/")
        if element.tag == "model":
            return name, name
        name = os.path.basename(name) if self.strippath else name
        return os.path.join(self.meshdir.replace("\\", "/"), name), name


class MjcfSource:
    """The main text, `files` by the names it gives them, and where they and its lines come from.

    paths, meshes: of the files, by the same names; origins: the element on each line; unknown: what
    the table of attributes does not have, and where it is.
    """

    def __init__(
        self,
        text: str | bytes,
        source: str,
        folder: PathLike | None = None,
        package_dirs: Sequence[PathLike] = (),
        max_memory: int = MAX_MEMORY,
        only_own: bool = False,
    ) -> None:
        self._source = source
        self._folder = None if folder is None else os.path.realpath(folder)
        given = [os.path.realpath(d) for d in package_dirs]
        self._reach = Reach(self._folder, given, only_own)
        self._budget = Budget(max_memory)
        self._folders: dict[str, str] = {}  # of the included files, by the names in messages
        self.files: dict[str, bytes] = {}
        self.paths: dict[str, str] = {}
        self.origins: list[Element] = []
        self.meshes: dict[str, MeshFile] = {}
        self.unknown: dict[str, str] = {}
        self._kept: dict[tuple[bool, str, MeshFile | None], tuple[str, int]] = {}
        self.root = _parsed(text, source)
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
        made = elements_made(root, document.largest, self._budget)
        self._write(document, root)
        return "".join(document.parts), made

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
        name = element.string("file").replace("\\", "/")
        path = self._locate(element, name, [(main, name), (here, name)])
        if path in seen:
            raise element.error(
                f"{shortened(element.string('file'), 200)} is included twice, or includes itself; "
                "a file can be included once"
            )
        seen.add(path)
        shown = self._display(path)
        self._folders[shown] = os.path.dirname(path)
        included = _parsed(self._read(element, path, MAX_BYTES), shown)
        if not included.children:
            raise element.error(
                f"{shortened(element.string('file'), 200)} is empty; it adds nothing"
            )
        return path, included

    # files

    def _locate(self, element: Element, name: str, places: Sequence[tuple[str | None, str]]) -> str:
        """The real path of a named file: in the first of the places that has it, if it may be read.

        places: folders, and the file's name in each.
        """
        known = [(folder, inner) for folder, inner in places if folder is not None]
        if not known:
            raise element.error(
                f"<{element.tag}> names the file {shortened(name, 200)}, but this text has no "
                "folder; load the model from a file"
            )
        paths = [os.path.realpath(os.path.join(folder, inner)) for folder, inner in known]
        inside = [path for path in paths if self._reach.holds(path)]
        for path in inside:
            if os.path.isfile(path):
                return path
        outside = [path for path in paths if path not in inside]
        # a name that leads out is not looked for
        if outside and (not inside or os.pardir in name.split("/")):
            raise element.error(
                f"<{element.tag}> names {shortened(name, 200)}, which leads to {outside[0]!r}; the "
                f"model may read {self._reach}: move the file there, or pass "
                f"package_dirs=[{os.path.dirname(outside[0])!r}]"
            )
        raise element.error(f"<{element.tag}> names {shortened(name, 200)}; there is no such file")

    def _gather(
        self, document: _Document, element: Element, written: str, chain: tuple[str, ...] = ()
    ) -> str:
        """Keep a file's contents, and return the name they have from now on.

        chain: of a model to attach, the paths of the models it is in.
        """
        name, beside = document.names(element, written)
        here = self._folders.get(element.source)
        # MuJoCo looks beside the main file, then beside the one that names it
        places = [(document.folder, name), (here, beside), (here, name)]
        path = self._locate(element, name, places)
        mesh = MeshFile.of(element, path) if element.tag == "mesh" else None
        key = element.tag == "model", path, mesh
        if key not in self._kept:
            if element.tag == "model":
                data, size = self._model(element, path, chain)
            else:
                data, size = self._read(element, path, self._budget.file), 0
                self._budget.take_mesh(len(data))
            extension = re.sub(r"[^.a-zA-Z0-9]", "", os.path.splitext(path)[1])
            name = sha256(data + repr(mesh).encode()).hexdigest()[:24] + extension
            self.files[name], self.paths[name] = data, path
            self._kept[key] = name, size
            if mesh is not None:
                self.meshes[name] = mesh
        name, size = self._kept[key]
        document.largest = max(document.largest, size)
        return name

    def _model(self, element: Element, path: str, chain: tuple[str, ...]) -> tuple[bytes, int]:
        """A model to attach, flattened, and the number of elements it makes."""
        if path in chain or len(chain) == MAX_MODELS:
            raise element.error(
                f"the model {shortened(element.string('file'), 200)} contains itself, or lies more "
                f"than {MAX_MODELS} models deep"
            )
        root = _parsed(self._read(element, path, MAX_BYTES), self._display(path))
        text, size = self._flatten(root, os.path.dirname(path), (*chain, path))
        return text.encode(), size

    def _read(self, element: Element, path: str, limit: int) -> bytes:
        try:
            return read_bounded(path, limit)
        except OSError as e:
            hint = "; pass a larger max_memory" if e.errno == errno.EFBIG else ""
            raise element.error(f"{path} cannot be read: {e.strerror}{hint}") from None

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
        _check_formats(element)
        attributes = self._attributes(document, element)
        self.origins.append(element)
        document.parts.append("\n" * (len(self.origins) - document.line))
        document.line = len(self.origins)
        document.parts.append(f"<{element.tag}")
        document.parts += [f" {name}={quoteattr(value)}" for name, value in attributes.items()]
        document.parts.append(">")
        for child in element.children:
            if not _is_unused(child, element):
                for what in unknown(child.tag, element.tag, child.attributes):
                    self.unknown.setdefault(what, child.where)
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
        # an asset without a name is called after its file
        if given.get("file") and element.tag in ("hfield", "mesh"):
            stem = os.path.basename(element.attributes["file"].replace("\\", "/"))
            given.setdefault("name", os.path.splitext(stem)[0])
        for name in _UNUSED_OF.get(element.tag, ()):
            given.pop(name, None)
        if element.tag == "hfield":
            given |= {"nrow": "2", "ncol": "2"}
        for name, value in given.items():
            if name.startswith("file") and value:
                given[name] = self._gather(document, element, value)
        return given


def _parsed(text: str | bytes, source: str) -> Element:
    """The root element of a document; what is odd about it is said."""
    root = parse(text, source)
    root.remarks.tell()
    return root


def _is_unused(element: Element, parent: Element) -> bool:
    """Whether MuJoCo need not see an element; a sensor that is a plugin it misses."""
    if parent.tag == "sensor":
        return element.tag != "plugin"
    length = (parent.tag, element.tag) == ("compiler", "lengthrange")
    return length or (element.tag in SKIPPED and element.tag != "sensor")


def _check_formats(element: Element) -> None:
    """Refuse what MuJoCo 4.0 would take for a format: it prints an unknown class as one."""
    for name in ("class", "childclass"):
        if "%" in element.attributes.get(name, ""):
            given = shortened(element.attributes[name])
            raise element.error(
                f"<{element.tag}> has {name}={given}; a class has no '%' in its name"
            )
