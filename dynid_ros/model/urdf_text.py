"""Text of a URDF, read from a file or a pipe, or expanded from xacro."""

from pathlib import Path
from xml.parsers import expat

from dynid_ros.errors import ModelError
from dynid_ros.files import MEGABYTE, read_bytes

MAX_FILE_BYTES = 50 * MEGABYTE
XACRO = ".xacro"
BEFORE_TEXT = "\ufeff \t\r\n"


def is_urdf_text(path_or_xml: str) -> bool:
    """Return whether a string is XML text, such as a URDF, rather than a path."""
    return path_or_xml.lstrip(BEFORE_TEXT).startswith("<")


def urdf_text(path_or_xml: str | Path) -> tuple[str, str]:
    """Return the text of a URDF and its name in errors, from a path or from the text itself.

    Macros can run code, so only a file whose name ends in `.xacro` is expanded.

    Raises:
        ModelError: the file cannot be read, or a file whose name ends in `.xacro` cannot be expanded.
    """
    if isinstance(path_or_xml, str) and is_urdf_text(path_or_xml):
        return _Prefixes(path_or_xml.lstrip(BEFORE_TEXT)).declared(), "URDF text"
    if not str(path_or_xml).strip():
        raise ModelError("URDF: got an empty string; give the path of a URDF file or its text")
    path = Path(path_or_xml)
    if path.suffix == XACRO:
        return _expanded(path), f"URDF '{path}'"
    try:
        # read_text would change line ends, but an export keeps every byte that it need not change.
        text = read_bytes(path, MAX_FILE_BYTES, pipes=True).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ModelError(f"URDF '{path}': not UTF-8 (byte {error.start}); save it as UTF-8") from error
    except OSError as error:
        raise ModelError(
            f"URDF '{path}': cannot be read ({error.strerror}); give a path or the text of a URDF"
        ) from error
    return _Prefixes(text).declared(), f"URDF '{path}'"


class _Prefixes:
    """Prefixes of the elements and attributes of an XML text, up to the first syntax error."""

    def __init__(self, text: str):
        self._text = text
        self._used: set[str] = set()
        self._declared: set[str] = {"xml", "xmlns"}
        self._root_end = -1
        # The text is UTF-8, although its declaration may differ.
        self._parser = expat.ParserCreate("utf-8")
        self._parser.StartElementHandler = self._start
        self._parser.StartDoctypeDeclHandler = self._stop
        try:
            self._data = text.encode()
            self._parser.Parse(self._data, True)
        except (expat.ExpatError, ValueError):
            pass  # the parser of the model reports the error

    def declared(self) -> str:
        """Return the text with declarations of undeclared prefixes, such as drake, which ROS accepts."""
        missing = sorted(self._used - self._declared)
        if not missing or self._root_end < 0:
            return self._text
        declarations = "".join(f' xmlns:{name}="urn:{name}"' for name in missing).encode()
        return (self._data[: self._root_end] + declarations + self._data[self._root_end :]).decode()

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if self._root_end < 0 and tag == "robot":
            self._root_end = self._parser.CurrentByteIndex + len("<robot")
        for name in (tag, *attributes):
            prefix, colon, local = name.partition(":")
            if colon:
                self._used.add(prefix)
                self._declared |= {local} if prefix == "xmlns" else set()

    def _stop(self, *_: object) -> None:
        raise ValueError("document type declaration")


def _expanded(path: Path) -> str:
    """Return the URDF text of a xacro file, with the defaults of its arguments."""
    try:
        import xacro  # noqa: PLC0415 - only such files need it
    except ImportError as error:
        raise ModelError(
            f"URDF '{path}': it is to be expanded by xacro, which is not installed: pip install xacro, or install "
            "ros-<distribution>-xacro"
        ) from error
    try:
        return xacro.process_file(str(path)).toxml()
    except Exception as error:  # expressions and packages in the file can raise anything
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ModelError(
            f"URDF '{path}': xacro cannot expand it ({reason}); expand it yourself, with the arguments that it needs: "
            f"xacro {path.name} name:=value > arm.urdf"
        ) from error
