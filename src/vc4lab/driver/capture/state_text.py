"""Parts of the state as lines `path = value`, and back.

The fields are those of the declarations (`mesa/protocol`); which declarations a part of the state
consists of is known to `commands/blocks.py`. Nothing is described twice.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from vc4lab.capture.lines import Line, Lines, read_lines
from vc4lab.driver.capture.model import MAX_CONSTANT_BUFFERS, STAGES, CapturedResource
from vc4lab.driver.commands.blocks import PIPE_PARTS, STAGE_PARTS, SURFACES, Codec
from vc4lab.driver.commands.commands import parse_ref, parse_value, real_text, ref_text, value_words
from vc4lab.mesa.protocol.fields import REST, Malformed, Spec
from vc4lab.mesa.state.pipe import INDEX_SIZES, Framebuffer, IndexBuffer

MAX_ITEMS = 64
"""Items of a list, as blocks have it."""
Resources = Callable[[int], CapturedResource]
"""The resource with a number. Raises KeyError."""
_CODECS = {**PIPE_PARTS, **STAGE_PARTS}
_SURFACE = "resource"
"""The field of a bound object that names its resource."""


# -- printing --------------------------------------------------------------------------------------


def part_lines(kind: str, value: Any) -> list[str]:
    """The lines of a part."""
    if kind == "pipe_state":
        return [f"{part} = {ref_text(part, number)}" for part, number in value.items()]
    if kind == "shader_state":
        return _shader_state_lines(value)
    if kind == "framebuffer":
        lines = _list_lines("cbufs", value.cbufs, _bound_lines)
        return lines + (_bound_lines("zsbuf.", value.zsbuf) if value.zsbuf is not None else [])
    if kind == "index_buffer":
        number = value.resource.number
        return [
            f"resource = {ref_text('resource', number)}",
            f"index_size = {value.index_size}",
            f"offset = {value.offset}",
        ]
    codec = _CODECS[kind]
    if isinstance(codec.item, str):
        return [f"values = {' '.join(_number(one, codec.item) for one in value)}"]
    if not codec.is_list:
        return payload_lines("", value)
    return _list_lines("", value, _bound_lines if codec.is_bound else payload_lines)


def _shader_state_lines(value: dict[str, dict[str, Any]]) -> list[str]:
    lines = []
    for stage in STAGES:
        for part, number in value[stage].items():
            if part != "constants":
                lines.append(f"{stage}.{part} = {ref_text(part, number)}")
        for place, number in enumerate(value[stage].get("constants", ())):
            named = ref_text("constants", number) if number else "none"
            lines.append(f"{stage}.constants[{place}] = {named}")
    return lines


def _list_lines(prefix: str, values: tuple[Any, ...], lines_of: Callable[[str, Any], list[str]]) -> list[str]:
    lines = []
    for place, value in enumerate(values):
        path = f"{prefix}[{place}]"
        lines += [f"{path} = none"] if value is None else lines_of(f"{path}.", value)
    return lines


def _bound_lines(prefix: str, value: Any) -> list[str]:
    named = f"{prefix}{_SURFACE} = {ref_text('resource', value.resource.number)}"
    return [named, *payload_lines(prefix, value.state, without=_SURFACE)]


def payload_lines(prefix: str, payload: Any, without: str = "") -> list[str]:
    """A line for each field of a payload; of repeated ones those up to the last that is set."""
    lines = []
    for name, spec in payload.specs.items():
        value = getattr(payload, name)
        if name == without:
            continue
        if spec.form != "n":
            text = ("no", "yes")[bool(value)] if spec.is_flag else value_words(value, spec)
            lines.append(f"{prefix}{name} = {text}")
        elif isinstance(spec.item, str):
            lines.append(f"{prefix}{name} = {' '.join(_number(one, spec.item) for one in value)}")
        else:
            last = len(value)
            while spec.count != REST and last > 1 and value[last - 1] == value[last - 2]:
                last -= 1  # the rest is as the last one that is printed
            for place, one in enumerate(value[:last]):
                lines += payload_lines(f"{prefix}{name}[{place}].", one)
    return lines


def _number(value: Any, letter: str) -> str:
    if letter == "f":
        return float_text(value)
    return str(value)


def float_text(value: float) -> str:
    """A single; one that no number says, by its bits."""
    if value != value:
        return f"0x{struct.unpack('<I', struct.pack('<f', value))[0]:08x}"
    return real_text(value, single=True)


def parse_float(text: str) -> float:
    """The single of `float_text`. Raises ValueError, OverflowError."""
    if text[:2].lower() == "0x":
        found: float = struct.unpack("<f", struct.pack("<I", _bits(text)))[0]
        return found
    value = float(text)
    struct.pack("<f", value)
    return value


def _bits(text: str) -> int:
    if len(text) > 10:
        raise ValueError(text)
    return int(text, 16)


# -- parsing ---------------------------------------------------------------------------------------


def parse_part(kind: str, text: str, file: str, resources: Resources) -> Any:
    """The part of a text. Raises CaptureError."""
    lines = read_lines(text, file)
    found = _Parser(lines, resources).part(kind)
    lines.check_used()
    return found


class _Parser:
    def __init__(self, lines: Lines, resources: Resources) -> None:
        self.lines = lines
        self.resources = resources

    def part(self, kind: str) -> Any:
        if kind == "pipe_state":
            return self._refs("", PIPE_PARTS)
        if kind == "shader_state":
            return {stage: self._stage(stage) for stage in STAGES}
        if kind == "framebuffer":
            zsbuf = self._bound("zsbuf", SURFACES) if self.lines.has("zsbuf") else None
            return Framebuffer(self._items("cbufs", lambda at: self._bound(at, SURFACES)), zsbuf)
        if kind == "index_buffer":
            return self._index_buffer()
        codec = _CODECS[kind]
        if isinstance(codec.item, str):
            return self._numbers("values", codec.item)
        if not codec.is_list:
            return self._payload("", codec.item)
        if codec.is_bound:
            return self._items("", lambda at: self._bound(at, codec))
        return self._items("", lambda at: self._payload(f"{at}.", codec.item))

    def _index_buffer(self) -> IndexBuffer:
        size, offset = self._whole("index_size"), self._whole("offset")
        if size not in INDEX_SIZES:
            raise self.lines.wrong(
                self.lines.take("index_size"), f"index_size is one of {INDEX_SIZES}, not {size}"
            )
        return IndexBuffer(self._resource("resource"), size, offset)

    def _stage(self, stage: str) -> dict[str, Any]:
        found: dict[str, Any] = self._refs(f"{stage}.", STAGE_PARTS)
        buffers = self._items(f"{stage}.constants", None, MAX_CONSTANT_BUFFERS)
        if buffers:
            found["constants"] = tuple(one or 0 for one in buffers)
        return found

    def _refs(self, prefix: str, kinds: Any) -> dict[str, int]:
        found = {}
        for kind in kinds:
            line = self.lines.take(prefix + kind)
            if line is not None and line.value != "none":
                found[kind] = self._ref(line, kind)
        return found

    def _ref(self, line: Line, kind: str) -> int:
        try:
            return parse_ref(kind, line.value)
        except ValueError:
            raise self.lines.wrong(line, f"{line.value[:60]!r} is not {kind}- and a number") from None

    def _items(
        self, prefix: str, read: Callable[[str], Any] | None, most: int = MAX_ITEMS
    ) -> tuple[Any, ...]:
        """A list; `none` is None. Without `read`: of names of constants."""
        found: list[Any] = []
        for place in range(self.lines.count(prefix, most)):
            at = f"{prefix}[{place}]"
            line = self.lines.take(at)
            if line is None:
                found.append(read(at) if read is not None and self.lines.has(at) else None)
            elif line.value == "none":
                found.append(None)
            elif read is None:
                found.append(self._ref(line, "constants"))
            else:
                raise self.lines.wrong(line, f"{line.value[:60]!r} is not none")
        return tuple(found)

    def _bound(self, at: str, codec: Codec) -> Any:
        resource = self._resource(f"{at}.{_SURFACE}")
        state = self._payload(f"{at}.", codec.item, without=_SURFACE)
        if _SURFACE in state.specs:
            state = replace(state, resource=resource.number)
        return codec.bound(state, resource)

    def _resource(self, path: str) -> CapturedResource:
        line = self.lines.take(path)
        if line is None:
            raise self.lines.wrong(None, f"there is no line {path}")
        number = self._ref(line, "resource")
        try:
            return self.resources(number)
        except KeyError:
            raise self.lines.wrong(line, f"there is no {line.value}") from None

    def _whole(self, path: str) -> int:
        line = self.lines.take(path)
        return self._value(line, path, Spec(0, "u")) if line is not None else 0

    def _value(self, line: Line, name: str, spec: Spec) -> Any:
        if spec.is_flag:
            if line.value not in ("yes", "no"):
                raise self.lines.wrong(line, f"{line.value[:60]!r} is neither yes nor no")
            return line.value == "yes"
        try:
            if spec.form == "f":
                return parse_float(line.value)
            return parse_value(name, line.value, spec)
        except (Malformed, ValueError, OverflowError) as error:
            text = str(error) if isinstance(error, Malformed) else f"{line.value[:60]!r}: no number"
            raise self.lines.wrong(line, text) from None

    def _payload(self, prefix: str, declared: Any, without: str = "") -> Any:
        values: dict[str, Any] = {}
        last: Line | None = None
        for name, spec in declared.specs.items():
            path = f"{prefix}{name}"
            if name == without:
                continue
            if spec.form == "n" and not isinstance(spec.item, str):
                items = self._payloads(path, spec)
                if items is not None:
                    values[name] = items
                continue
            line = self.lines.take(path)
            if line is None:
                continue
            last = line
            if spec.form == "n":
                values[name] = self._numbers(path, spec.item, spec.count, line)
            else:
                values[name] = self._value(line, name, spec)
            self._check(declared, name, values[name], line)
        try:
            made = declared(**values)
            made.encode()
        except (ValueError, OverflowError, struct.error) as error:
            raise self.lines.wrong(last, str(error)) from None
        return made

    def _check(self, declared: Any, name: str, value: Any, line: Line) -> None:
        """Raises CaptureError if the field cannot have it."""
        try:
            declared(**{name: value}).encode()
        except (ValueError, OverflowError, struct.error) as error:
            raise self.lines.wrong(line, f"{name}: {error}") from None

    def _payloads(self, path: str, spec: Spec) -> tuple[Any, ...] | None:
        most = MAX_ITEMS if spec.count == REST else spec.count
        count = self.lines.count(path, most)
        if not count:
            return () if spec.count == REST else None
        found = [self._payload(f"{path}[{place}].", spec.item) for place in range(count)]
        if spec.count != REST:
            found += [found[-1]] * (spec.count - count)
        return tuple(found)

    def _numbers(
        self, path: str, letter: str, count: int = REST, line: Line | None = None
    ) -> tuple[Any, ...]:
        line = line or self.lines.take(path)
        if line is None:
            return ()
        words = line.value.split()
        if count != REST and len(words) != count:
            raise self.lines.wrong(line, f"{len(words)} numbers, but there must be {count}")
        if len(words) > MAX_ITEMS:
            raise self.lines.wrong(line, f"more than {MAX_ITEMS} numbers")
        try:
            if letter == "f":
                return tuple(parse_float(word) for word in words)
            return tuple(_whole(word) for word in words)
        except (ValueError, OverflowError):
            raise self.lines.wrong(line, f"{line.value[:60]!r} has something that is no number") from None


def _whole(text: str) -> int:
    if len(text) > 12:
        raise ValueError(text)
    value = int(text, 0)
    struct.pack("<I", value & 0xFFFFFFFF)
    if not -(1 << 31) <= value < 1 << 32:
        raise ValueError(text)
    return value
