"""XML as a tree of elements that know their file and line; made for files nobody trusts.

Nothing is expanded and nothing else is read: a document type that declares anything is refused, so
there are no entities to blow up and none to fetch.  Depth, size and the number of elements are
bounded, and the tree is built by callbacks, without recursion.  Every refusal is one `ModelError`
that starts with "file:line:".
"""

from __future__ import annotations

import codecs
import math
import re
from dataclasses import dataclass, field
from xml.parsers import expat

from ..errors import ModelError, warn_of_model

__all__ = [
    "MAX_BYTES",
    "MAX_DEPTH",
    "MAX_SIZE",
    "Element",
    "Remarks",
    "number_of",
    "parse",
    "shortened",
]

MAX_BYTES = 50_000_000
MAX_DEPTH = 200
MAX_ELEMENTS = 500_000
_MAX_TEXT = 200  # characters that an element keeps of what is no element
MAX_SIZE = 1e12  # of a length, mass, inertia or any other number, in SI units

# no underscores, no other alphabets: stricter than float(); linear in the length of the token
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_CUT_OFF = (expat.errors.XML_ERROR_NO_ELEMENTS, expat.errors.XML_ERROR_UNCLOSED_TOKEN)
_DECLARED_LATE = re.compile(rb"\s+(?=<\?xml)")
_TRAILING_NULL = re.compile(rb"(?<=>)\s*\x00[\s\x00]*\Z")
# what a declaration says, if it is in ASCII; some of Python's other codecs do more than look up
_ENCODING = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*<\?xml[^>]{0,200}?\sencoding\s*=\s*[\"']([^\"'>]{0,80})"
)
_ENCODINGS = (
    *("utf-8", "utf8", "utf-16", "utf16", "utf-16le", "utf-16be", "us-ascii", "ascii"),
    *("iso-8859-1", "iso8859-1", "latin-1", "latin1", "windows-1252", "cp1252"),
)
_INVALID_TOKEN = expat.errors.codes[expat.errors.XML_ERROR_INVALID_TOKEN]
_INFINITY = re.compile(r"[+-]?inf(?:inity)?", re.IGNORECASE)


class Remarks:
    """What was not read as it is written, told as warnings at the end: the first of each kind."""

    # go on past faults that do no harm
    lenient = False

    def __init__(self) -> None:
        self._found: dict[str, dict[str, None]] = {}

    def add(self, kind: str, message: str) -> None:
        """Note something, once; the message begins with "file:line"."""
        self._found.setdefault(kind, {})[message] = None

    def tell(self) -> None:
        """Warn of everything noted."""
        for first, *others in self._found.values():
            warn_of_model(f"{first} ({len(others)} more like this)" if others else first)


@dataclass(slots=True, eq=False)
class Element:
    """One element: its tag, attributes and children, and the file and line where it begins.

    remarks: those about the whole document; document, offset: its text, and where in it the element
    begins; text: the beginning of what it contains besides elements.
    """

    tag: str
    attributes: dict[str, str]
    source: str
    line: int
    children: list[Element] = field(default_factory=list)
    remarks: Remarks = field(default_factory=Remarks)
    document: bytes = b""
    offset: int = 0
    text: str = ""

    @property
    def where(self) -> str:
        """ "file:line", the beginning of every message."""
        return f"{self.source}:{self.line}"

    def error(self, message: str) -> ModelError:
        """The error to raise about this element."""
        return ModelError(f"{self.where}: {message}")

    def remark(self, kind: str, message: str) -> None:
        """Note something about this element, to be told with the document's other remarks."""
        self.remarks.add(kind, f"{self.where}: {message}")

    def fault(self, message: str, hint: str, instead: str) -> None:
        """Refuse something with a hint, or, where the user is lenient, remark on what is done."""
        if not self.remarks.lenient:
            raise self.error(f"{message}; {hint}")
        self.remark(f"fault {self.line} {message}", f"{message}; {instead}")

    def all(self, tag: str) -> list[Element]:
        """The children with this tag, in the order of the file."""
        return [child for child in self.children if child.tag == tag]

    def get(self, name: str) -> str | None:
        """An attribute as it is written, or None."""
        return self.attributes.get(name)

    def string(self, name: str) -> str:
        """An attribute that must be there and say something."""
        value = self.attributes.get(name, "").strip()
        if value:
            return value
        if name in self.attributes:
            raise self.error(f"<{self.tag}> has an empty attribute {name!r}; give it a value")
        others = ", ".join(name[:60] for name in list(self.attributes)[:8])
        hint = f" (it has {others})" if others else ""
        raise self.error(f"<{self.tag}> has no attribute {name!r}{hint}; add it")

    def number(self, name: str, default: float | None = None, *, unbounded: bool = False) -> float:
        """An attribute as one number; without a default it must be there."""
        if default is not None and name not in self.attributes:
            return default
        joined = self._over_lines(name)
        value = None if joined is None else number_of(joined, unbounded)
        if value is None:
            return self.numbers(name, 1, unbounded=unbounded)[0]
        written = f"{name}={shortened(self.string(name))}"
        self.remark(
            "lines", f"<{self.tag}> has {written}, broken over lines; it is read as {value}"
        )
        return value

    def _over_lines(self, name: str) -> str | None:
        """An attribute of several words that are written on several lines, put together."""
        words = self.attributes.get(name, "").split()
        if len(words) < 2:
            return None
        # as it is written: to XML the end of a line is a space
        pattern = rb"\b%s\s*=\s*([\"'])([^\"'<>]*)\1" % re.escape(name.encode())
        written = re.compile(pattern).search(self.document, self.offset, self.offset + 10_000)
        lines = written[2].splitlines() if written else []
        alone = [line.strip() for line in lines if line.strip()]
        return "".join(words) if alone == [word.encode() for word in words] else None

    def numbers(
        self,
        name: str,
        count: int | None = None,
        default: tuple[float, ...] | None = None,
        *,
        unbounded: bool = False,
    ) -> tuple[float, ...]:
        """An attribute as `count` numbers (any count: None); without a default it must be there.

        Each is finite and at most 1e12 in size, or, if `unbounded`, any number or infinity.
        """
        if default is not None and name not in self.attributes:
            return default
        text = self.string(name)
        words, parts = text.split(), [part.strip() for part in text.split(",")]
        commas = len(words) > 1 and all(word.endswith(",") for word in words[:-1])
        words = [word.removesuffix(",") for word in words] if commas else words
        # of the number that is asked for; a single "1,5" may be meant otherwise
        if count is not None and count > 1 and len(parts) == count:
            commas, words = True, parts
        values = [number_of(word, unbounded) for word in words]
        if None in values or count not in (None, len(values)):
            wanted = "number" if unbounded else f"number of at most {MAX_SIZE:g} in size"
            wanted = f"one {wanted}" if count == 1 else f"{count or 'any'} numbers, each a {wanted}"
            raise self.error(f"<{self.tag}> has {name}={shortened(text)}; expected {wanted}")
        if commas:
            self.remark("commas", f"<{self.tag}> has {name}={shortened(text)}: commas are left out")
        return tuple(v for v in values if v is not None)

    def __str__(self) -> str:
        name = self.attributes.get("name")
        tag = f"<{self.tag[:60]}>"
        return tag if name is None else f"{tag} {shortened(name)}"


def parse(text: str | bytes, source: str) -> Element:
    """The root element of a document; `source` is the file's name, for messages.

    Refused: what is not well-formed, document types with an internal subset or an external
    identifier, more than 50 MB, 200 levels or half a million elements.  Faults that most readers
    of XML let pass are put right: space before the XML declaration, a zero byte at the end, and
    comments that contain "--" or are in another encoding, and text after the root element.
    """
    if len(text) > MAX_BYTES:
        raise ModelError(f"{source}:1: has {len(text)} bytes; at most {MAX_BYTES} are read")
    if isinstance(text, str):
        return _root(text.encode("utf-8", "surrogatepass"), source, "utf-8")
    return _root(text, source, None)


def _root(data: bytes, source: str, encoding: str | None) -> Element:
    declared = _ENCODING.match(data) if encoding is None else None
    name = declared[1].decode("ascii", "replace") if declared else "utf-8"
    if name.lower().replace("_", "-") not in _ENCODINGS:
        raise ModelError(
            f"{source}:1: unknown text encoding {shortened(name)}; save the file as UTF-8"
        )
    if not data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        data = _TRAILING_NULL.sub(b"", data)
    space = _DECLARED_LATE.match(data)
    tree = _Tree(source, encoding, data[space.end() :] if space else data)
    tree.above = space[0].count(b"\n") if space else 0
    try:
        return tree.read()
    except expat.ExpatError as e:
        blank = _without_comments(data)
        if e.code == _INVALID_TOKEN and blank != data:
            return _root(blank, source, encoding)
        raise tree.explained(e) from None


def _without_comments(data: bytes) -> bytes:
    """The text with a blank for every character of a comment but the ends of lines."""
    parts, done = [], 0
    while (start := data.find(b"<!--", done)) >= 0 and (end := data.find(b"-->", start + 4)) >= 0:
        parts += [data[done:start], re.sub(rb"[^\n]", b" ", data[start : end + 3])]
        done = end + 3
    return b"".join([*parts, data[done:]])


def shortened(text: str, length: int = 60) -> str:
    """A quoted text for a message, cut if it is long."""
    return repr(text if len(text) <= length else text[: length - 1] + "…")


class _Tree:
    """The callbacks of one parse: a stack of open elements, the document itself at the bottom."""

    above = 0  # lines that were cut off

    def __init__(self, source: str, encoding: str | None, data: bytes) -> None:
        self._document = Element("", {}, source, 1)
        self._data = data
        self._open = [self._document]
        self._count = 0
        self._parser = expat.ParserCreate(encoding)
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text

    def read(self) -> Element:
        """The root element; an ExpatError if there is none, or not the end of it."""
        try:
            self._parser.Parse(self._data, True)
        except ModelError:
            raise
        except expat.ExpatError as e:
            rest = _without_comments(self._data[self._parser.ErrorByteIndex :])
            if len(self._open) > 1 or not self._document.children or b"<" in rest:
                raise
            root = self._document.children[0]
            where = f"{root.source}:{self.above + e.lineno}"
            root.remarks.add("rest", f"{where}: what follows </{root.tag[:60]}> is left out")
        except (LookupError, ValueError) as e:
            raise self._error(1, f"unknown text encoding ({e}); save the file as UTF-8") from None
        return self._document.children[0]

    def explained(self, error: expat.ExpatError) -> ModelError:
        """What expat complains about, in words that help to find it."""
        return self._error(error.lineno, self._explain(expat.ErrorString(error.code)))

    def _error(self, line: int, message: str) -> ModelError:
        return ModelError(f"{self._document.source}:{self.above + line}: {message}")

    def _explain(self, message: str) -> str:
        if len(self._open) == 1:
            if message == expat.errors.XML_ERROR_NO_ELEMENTS:
                return "the file has no XML element; expected a robot description"
            return f"not well-formed XML ({message}); correct the file, or check that it is XML"
        top = self._open[-1]
        where = f"{top} of line {top.line}"
        if message in _CUT_OFF:
            return f"the file ends inside {where}; it is cut off, or lacks </{top.tag[:60]}>"
        if message == expat.errors.XML_ERROR_TAG_MISMATCH:
            return f"a closing tag does not fit {where}; expected </{top.tag[:60]}>"
        return f"not well-formed XML inside {where} ({message}); correct the file"

    def _doctype(self, name: str, system: str | None, public: str | None, subset: int) -> None:
        if system or public or subset:
            raise self._error(
                self._parser.CurrentLineNumber,
                f"the document type {shortened(name)} declares entities or names another file; "
                "neither is expanded or read: remove the DOCTYPE and write the values out",
            )

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        line = self._parser.CurrentLineNumber
        self._count += 1
        if len(self._open) > MAX_DEPTH:
            raise self._error(line, f"elements are nested more than {MAX_DEPTH} deep; flatten them")
        if self._count > MAX_ELEMENTS:
            raise self._error(line, f"there are more than {MAX_ELEMENTS} elements; split the file")
        where = self._document.source, self.above + line
        here = self._data, self._parser.CurrentByteIndex
        element = Element(tag, attributes, *where, [], self._document.remarks, *here)
        self._open[-1].children.append(element)
        self._open.append(element)

    def _end(self, tag: str) -> None:
        self._open.pop()

    def _text(self, data: str) -> None:
        element = self._open[-1]
        if len(element.text) < _MAX_TEXT:
            element.text += data[:_MAX_TEXT]


def number_of(token: str, unbounded: bool = False) -> float | None:
    """The value of a token, None if it is not a number or not one that is wanted."""
    if unbounded and _INFINITY.fullmatch(token):
        return -math.inf if token[0] == "-" else math.inf
    if len(token) > 100 or not _NUMBER.fullmatch(token):
        return None
    value = float(token)
    return value if unbounded or abs(value) <= MAX_SIZE else None
