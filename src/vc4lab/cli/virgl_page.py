"""docs/virgl.md, from the declarations (`python -m vc4lab.cli.virgl_page`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from vc4lab.mesa.protocol.fields import Spec
    from vc4lab.mesa.protocol.payload import Payload

HEAD = """\
# What Mesa sends

Generated from the declarations in `src/vc4lab/mesa/protocol/`: `python -m vc4lab.cli.virgl_page >
docs/virgl.md`. With `GALLIUM_DRIVER=virpipe` Mesa sends *messages* (vtest) over a Unix socket, and
in one of them, SUBMIT_CMD, *commands* (virgl): Gallium's state objects, draws, transfers.
[gl.md](gl.md) says how a program is started; `vc4lab gl --trace gallium -- PROGRAM` prints all of
it.

Everything consists of little-endian words of 32 bits. In the tables, a field is `name: word`, with
`[high:low]` if it has not all bits, and `…` if it goes on to the end.

## Messages

Two words, length and number, then the payload. The length counts the payload's words, except where
the table says otherwise. *Versions* of the protocol: 2 shares memory with the client, 0 does not.

| number | name | versions | length counts | fields | answer |
| --- | --- | --- | --- | --- | --- |"""
COMMANDS_HEAD = """\
## Commands

One word, `number | object << 8 | length << 16`, then `length` words. What the capabilities do not
have, Mesa does not send: those are in the second table.

| number | name | words | fields |
| --- | --- | --- | --- |"""
ABSENT_HEAD = """\
### Not announced

| number | name | words | needs | fields |
| --- | --- | --- | --- | --- |"""
OBJECTS_HEAD = """\
## State objects

CREATE_OBJECT has the kind in bits 15:8 of its header and the handle in word 0.

| kind | name | words | fields |
| --- | --- | --- | --- |"""
PARTS_HEAD = """\
### Parts

What fields of the tables above repeat, or consist of.

| name | words | fields |
| --- | --- | --- |"""
CAPABILITIES_HEAD = """\
## Capabilities

The answer to GET_CAPS2 has 344 words; GET_CAPS only the first 77. These are not 0:

| word | field | value |
| --- | --- | --- |"""


def write_page() -> str:
    """The page's text."""
    from vc4lab.mesa.protocol.commands import COMMANDS
    from vc4lab.mesa.protocol.messages import MESSAGES
    from vc4lab.mesa.protocol.objects import OBJECTS

    messages = [MESSAGES[number] for number in sorted(MESSAGES)]
    commands = [COMMANDS[number] for number in sorted(COMMANDS)]
    objects = [OBJECTS[kind] for kind in sorted(OBJECTS)]
    lines = [HEAD]
    for message in messages:
        versions = ", ".join(str(version) for version in message.versions)
        lines.append(
            f"| {message.number} | {message.name} | {versions} | {message.length} | "
            f"{_fields(message)} | {message.reply or '-'} |"
        )
    lines += ["", COMMANDS_HEAD]
    for command in commands:
        if not command.needs:
            words = command.length_text()
            lines.append(f"| {command.number} | {command.name} | {words} | {_fields(command)} |")
    lines += ["", ABSENT_HEAD]
    for command in commands:
        if command.needs:
            start = f"| {command.number} | {command.name} | {command.length_text()} "
            lines.append(f"{start}| {command.needs} | {_fields(command)} |")
    lines += ["", OBJECTS_HEAD]
    for one in objects:
        name = one.__name__ + (f" (needs {one.needs})" if one.needs else "")
        lines.append(f"| {one.kind:d} | {name} | {one.length_text()} | {_fields(one)} |")
    lines += ["", PARTS_HEAD]
    for part in _parts([*messages, *commands, *objects]):
        lines.append(f"| {part.__name__} | {part.length_text()} | {_fields(part)} |")
    lines += ["", CAPABILITIES_HEAD, *_capabilities()]
    return "\n".join(lines) + "\n"


def _fields(declared: type[Payload]) -> str:
    texts = [_field(name, spec) for name, spec in declared.specs.items()]
    return "; ".join(texts) or "-"


def _field(name: str, spec: Spec) -> str:
    kinds = {"f": "float", "d": "double", "i": "signed"}
    kind = kinds.get(spec.form, "")
    if spec.form == "n" and isinstance(spec.item, str):
        kind = {"u": "words", "i": "signed", "f": "floats", "s": "bytes"}[spec.item]
    elif spec.form == "n":
        kind = spec.item.__name__
    if spec.enum is not None:
        kind = spec.enum.__name__
    if spec.below is not None:
        kind += f" below {spec.below}"
    notes = ", ".join(part for part in (kind.strip(), spec.doc) if part)
    return f"{name}: {spec.place}" + (f" ({notes})" if notes else "")


def _parts(declared: Iterable[type[Payload]]) -> list[type[Payload]]:
    """List the payloads that are repeated in these, each once."""
    found: dict[type[Payload], None] = {}
    for one in declared:
        for spec in one.specs.values():
            if spec.form == "n" and not isinstance(spec.item, str):
                found[spec.item] = None
    return list(found)


def _capabilities() -> Iterator[str]:
    from vc4lab.mesa.protocol.capabilities import RENDERER, Capabilities, videocore
    from vc4lab.mesa.protocol.formats import Format

    values = videocore()
    for name, spec in Capabilities.specs.items():
        value = getattr(values, name)
        if not value or (isinstance(value, tuple) and not any(value)):
            continue
        if name == "renderer":
            text = RENDERER
        elif isinstance(value, tuple) and len(value) == 16:
            bits = sum(word << 32 * place for place, word in enumerate(value))
            text = ", ".join(str(one) for one in Format if bits >> int(one) & 1)
        else:
            text = hex(value) if spec.hex else str(value)
        yield f"| {spec.place} | {name} | {text} |"


if __name__ == "__main__":
    print(write_page(), end="")
