"""Texture requests and memory look-ups."""

from __future__ import annotations

from vc4lab.driver.compiler.interface import TextureKey, Uniform, UniformKind
from vc4lab.driver.compiler.lower.arithmetic import Arithmetic
from vc4lab.driver.compiler.lower.srgb import to_linear
from vc4lab.driver.compiler.ssa.values import Function, Value
from vc4lab.mesa.protocol.codes import Compare, Swizzle
from vc4lab.qpu.isa.operations import AddOp, Condition, MulOp, Signal, Unpack
from vc4lab.qpu.isa.registers import Write
from vc4lab.qpu.machine.builder import HALF, ONE, ZERO, real
from vc4lab.qpu.machine.code import Const, Op, Operand, Reg, Request, TooComplex, Wants

S, T, R, B = (int(one) for one in (Write.TMU0_S, Write.TMU0_T, Write.TMU0_R, Write.TMU0_B))
BYTES = (Unpack.B8A, Unpack.B8B, Unpack.B8C, Unpack.B8D)
EXPLICIT_LEVEL = 1
"""BSLOD: B is the level itself."""
DEPTH = real(1.0 / (2.0**24 - 1))
SHORTEST = real(2.0**-20)
"""The least length of a derivative, squared, in texels."""
NUMBER = {"1D": 1, "2D": 2, "RECT": 2, "3D": 3, "CUBE": 3}
"""Coordinates of each texture, the value of a shadow comparison not among them."""
SHADOW: dict[Compare, tuple[str, bool, Condition]] = {
    # reference and depth: operation, whether they change places, lanes that pass
    Compare.LESS: ("fmax", True, Condition.CS),
    Compare.GEQUAL: ("fmax", True, Condition.CC),
    Compare.GREATER: ("fmax", False, Condition.CS),
    Compare.LEQUAL: ("fmax", False, Condition.CC),
    Compare.EQUAL: ("fsub", False, Condition.ZS),
    Compare.NOTEQUAL: ("fsub", False, Condition.ZC),
}


class Samples(Arithmetic):
    """Arithmetic, with textures as a key describes them."""

    def __init__(
        self, function: Function, textures: tuple[TextureKey, ...], has_derivatives: bool = True
    ) -> None:
        super().__init__(function)
        self._textures = textures
        self._has_derivatives = has_derivatives
        self._components: dict[tuple[Value, int], Operand] = {}
        self._several: set[Reg] = set()
        """Registers of the request at hand that are read elsewhere, too."""

    def _texture(self, unit: int) -> TextureKey:
        return self._textures[unit] if unit < len(self._textures) else TextureKey()

    # ---------------------------------------------------------------- requests

    def _sample(self, value: Value) -> Operand:
        """The unit's word. Operands: coordinates, then what the operation has besides."""
        name, texture, unit = value.attributes
        key = self._texture(unit)
        if key.is_sampled is not (name == "TXF"):
            numbers = ("one sample", "several samples")[key.is_sampled]
            raise TooComplex("TGSI-008", f"{name} of a texture with {numbers} a pixel")
        if name == "TXF":
            return self._fetch(value)
        is_shadow = texture.startswith("SHADOW")
        kind = texture.removeprefix("SHADOW")
        count = NUMBER[kind]
        args = [self.get(arg) for arg in value.args]
        coordinates = args[:count]
        extra = args[count + is_shadow :]
        code = self.code
        level: Operand | None = None
        is_explicit = name in ("TXL", "TXL2", "TEX_LZ", "TXD") or not self._has_derivatives
        if name in ("TXB", "TXB2", "TXL", "TXL2"):
            level = extra[-1]
        elif name == "TXD":
            level = self._level_of(unit, kind, coordinates, extra)
        elif is_explicit:
            level = ZERO
        if name in ("TXB", "TXB2") and not self._has_derivatives:
            level = ZERO
        if key.clamps_level:
            if not is_explicit:
                automatic = self._automatic_level(unit, kind, coordinates)
                level = automatic if level is None else code.make("fadd", automatic, level)
            assert level is not None
            level = code.make("fmin", level, Uniform(UniformKind.TEXTURE_MAX_LEVEL, unit))
            level = code.make("fmax", level, Uniform(UniformKind.TEXTURE_MIN_LEVEL, unit))
            is_explicit = True
        if kind == "CUBE":
            coordinates = self._onto_cube(coordinates)
        elif kind == "RECT":
            sizes = (UniformKind.TEXTURE_WIDTH_RCP, UniformKind.TEXTURE_HEIGHT_RCP)
            coordinates = [
                code.make("fmul", one, Uniform(size, unit))
                for one, size in zip(coordinates, sizes, strict=True)
            ]
        elif kind == "1D":
            coordinates = [coordinates[0], real(0.5)]
        elif kind == "3D":
            coordinates = coordinates[:2]
        if key.saturate_s:
            coordinates[0] = self.saturate(coordinates[0])
        if key.saturate_t:
            coordinates[1] = self.saturate(coordinates[1])
        writes: list[tuple[int, Operand]] = [(T, coordinates[1])]
        if kind == "CUBE":
            writes.append((R, coordinates[2]))
        elif key.has_border:
            writes.append((R, Uniform(UniformKind.TEXTURE_BORDER, unit)))
        if level is not None:
            writes.append((B, level))
        writes.append((S, coordinates[0]))
        self._several = {
            operand
            for arg, operand in zip(value.args, args, strict=True)
            if self._uses.get(arg) != 1 and isinstance(operand, Reg)
        }
        return self._request(writes, self._parameters(unit, len(writes), kind, is_explicit))

    @staticmethod
    def _parameters(unit: int, count: int, kind: str, is_explicit: bool) -> list[Uniform]:
        """The configuration words that the writes take, in order."""
        words = [Uniform(UniformKind.TEXTURE_P0, unit), Uniform(UniformKind.TEXTURE_P1, unit)]
        if kind == "CUBE" or is_explicit:
            value = EXPLICIT_LEVEL if is_explicit else 0
            words.append(Uniform(UniformKind.TEXTURE_P2, unit, value))
        words += [Uniform(UniformKind.TEXTURE_ZERO, unit)] * (count - len(words))
        return words

    def _request(self, writes: list[tuple[int, Operand]], parameters: list[Uniform]) -> Reg:
        """Writes, the last of which starts the request, and the load of what it gives."""
        request = Request(parameters)
        for number, (address, operand) in enumerate(writes):
            given = self.code.as_reg(operand) if isinstance(operand, Uniform) else operand
            if isinstance(given, Const):
                given = self.code.move(given)
            maker = self._writer(given) if given not in [one for _, one in writes[:number]] else None
            if maker is None:
                maker = self.code.op("mov", given)
                maker.name = Write(address).name.lower()
                self.code.add(maker, None)
            else:
                self.code.to_end(maker)
            maker.target, maker.request, maker.peripheral = address, request, True
            request.writes.append(maker)
        return self._result(request)

    def _writer(self, operand: Operand) -> Op | None:
        """Return the operation that can write a coordinate to the unit itself, if there is one."""
        maker = self.code.may_change(operand)
        if maker is None or operand in self._shared or operand in self._several:
            return None
        streamed = any(isinstance(one, Uniform | Const) for one in maker.args)
        return None if streamed else maker

    def _result(self, request: Request) -> Reg:
        load = Op("load texture")
        load.signal, load.request, load.peripheral = Signal.LOAD_TMU0, request, True
        request.load = load
        result = self.code.add(load, Wants.R4)
        assert result is not None
        return result

    def _level_of(
        self, unit: int, kind: str, coordinates: list[Operand], derivatives: list[Operand]
    ) -> Operand:
        """log2 of the longer way in texels, of the changes to the right and upwards.

        Source: OpenGL 2.1 specification, section 3.8.8. Of a cube's face what the largest
        coordinate itself changes by is left out.
        """
        code = self.code
        if kind == "RECT":
            return ZERO
        sizes = self._sizes(unit, kind, coordinates)
        count = len(derivatives) // 2
        squares = []
        for way in (derivatives[:count], derivatives[count:]):
            total: Operand | None = None
            for one, size in zip(way, sizes, strict=False):
                texels = code.make("fmul", one, size)
                square = code.make("fmul", texels, texels)
                total = square if total is None else code.make("fadd", total, square)
            assert total is not None
            squares.append(total)
        # A change of nothing has no logarithm; the unit takes any level below 0 as magnified.
        longest = code.make("fmax", code.make("fmax", *squares), SHORTEST)
        return code.make("fmul", code.special("log", longest), HALF)

    def _automatic_level(self, unit: int, kind: str, coordinates: list[Operand]) -> Operand:
        """The level that the unit would take: log2 of the longest step in texels, of one coordinate
        from pixel to pixel (row tmu_lod_footprint of the unknowns; hardware reference 6.6).
        """
        code = self.code
        if kind == "RECT":
            return ZERO
        longest: Operand = SHORTEST
        for one, size in zip(coordinates, self._sizes(unit, kind, coordinates), strict=False):
            across, upwards = self.difference(one, 1), self.difference(one, 2)
            texels = code.make("fmul", code.make("fmaxabs", across, upwards), size)
            longest = code.make("fmaxabs", longest, texels)
        return code.special("log", longest)

    def _sizes(self, unit: int, kind: str, coordinates: list[Operand]) -> list[Reg]:
        """How many texels a step of 1 is, of each coordinate that has texels."""
        code = self.code
        sizes: list[Reg] = [self.reciprocal(Uniform(UniformKind.TEXTURE_WIDTH_RCP, unit))]
        if kind in ("2D", "3D"):
            sizes.append(self.reciprocal(Uniform(UniformKind.TEXTURE_HEIGHT_RCP, unit)))
        elif kind == "CUBE":
            # A face is 2 wide where the largest coordinate is 1.
            x, y, z = coordinates
            largest = code.make("fmaxabs", code.make("fmaxabs", x, y), z)
            by = code.make("fmul", self.reciprocal(largest), HALF)
            sizes = [code.make("fmul", sizes[0], by)] * 3
        return sizes

    def _onto_cube(self, coordinates: list[Operand]) -> list[Operand]:
        """The largest of them becomes 1 or -1."""
        code = self.code
        x, y, z = coordinates
        largest = code.make("fmaxabs", code.make("fmaxabs", x, y), z)
        by = self.reciprocal(largest)
        return [code.make("fmul", one, by) for one in coordinates]

    # ---------------------------------------------------------------- results

    def _component(self, value: Value) -> Operand:
        (sample,) = value.args
        (number,) = value.attributes
        unit = sample.attributes[2]
        key = self._texture(unit)
        swizzle = key.swizzle[number]
        if swizzle is Swizzle.ZERO:
            return ZERO
        if swizzle is Swizzle.ONE:
            return ONE
        place = sample, int(swizzle)
        if place not in self._components:
            self._components[place] = self._part(sample, int(swizzle), key)
        found = self._components[place]
        if isinstance(found, Reg):
            self._shared.add(found)
        return found

    def plain_byte(self, value: Value) -> tuple[Reg, int] | None:
        """Return the unit's word and the unpack that give a component which nothing else reads."""
        if value.op != "component" or self._uses.get(value) != 1 or value in self._operands:
            return None
        (sample,) = value.args
        key = self._texture(sample.attributes[2])
        swizzle = key.swizzle[value.attributes[0]]
        is_byte = swizzle in (Swizzle.X, Swizzle.Y, Swizzle.Z, Swizzle.W)
        if not is_byte or key.is_depth or key.is_srgb:
            return None
        if (sample, int(swizzle)) in self._components:
            return None
        word = self.get(sample)
        assert isinstance(word, Reg)
        if word.block != self.code.block.number:
            return None
        return word, int(BYTES[int(swizzle)])

    def _part(self, sample: Value, number: int, key: TextureKey) -> Operand:
        """A byte of the unit's word as a float, or its depth."""
        word = self.get(sample)
        assert isinstance(word, Reg)
        if key.is_depth:
            return self._depth_of(sample, word, key) if not number else (ONE if number == 3 else ZERO)
        op = Op("unpack", AddOp.OR, MulOp.V8MIN, [word])
        op.is_unpack = True
        op.unpacks = (int(BYTES[number]),)
        result = self.code.add(op)
        assert result is not None
        return to_linear(self.code, result) if key.is_srgb and number < 3 else result

    def _depth_of(self, sample: Value, word: Reg, key: TextureKey) -> Reg:
        code = self.code
        whole = code.make("itof", code.make("shr", word, Const(8)))
        depth = code.make("fmul", whole, DEPTH)
        texture = sample.attributes[1]
        if key.compare is None or not texture.startswith("SHADOW"):
            return depth
        if key.compare in (Compare.NEVER, Compare.ALWAYS):
            return code.move(ONE if key.compare is Compare.ALWAYS else ZERO)
        count = NUMBER[texture.removeprefix("SHADOW")]
        reference = self.saturate(self.get(sample.args[count]))
        name, swapped, condition = SHADOW[key.compare]
        args = (depth, reference) if swapped else (reference, depth)
        flags = code.flags(code.op(name, *args))
        return code.conditional(code.op("mov", ONE), flags, condition, code.move(ZERO))

    # ---------------------------------------------------------------- memory

    def _uniform_at(self, value: Value) -> Operand:
        """A word of a constant buffer by an index; the kernel wants the address clamped so."""
        buffer, register, component = value.attributes
        offset = 16 * register + 4 * component
        code = self.code
        index = code.make("shl", self._arg(value), Const(4))
        inside = self._inside(index, Uniform(UniformKind.CONSTANTS_LIMIT, buffer, offset))
        return self._look_up(inside, Uniform(UniformKind.CONSTANTS_ADDRESS, buffer, offset))

    def _fetch(self, value: Value) -> Reg:
        """One sample of a texel: its word, where the tile buffer stored it (reference 7.11).

        Tiles are 32 x 32 pixels; in them quads follow each other, with four pixels a sample.
        """
        code = self.code
        unit = value.attributes[2]
        x, y, sample = (code.as_reg(self.get(arg)) for arg in value.args)

        def shifted(place: Operand, mask: int, by: int) -> Reg:
            return code.make("shl", code.make("and", place, Const(mask)), Const(by))

        row = code.make("shr", y, Const(5))
        parts: list[Operand] = [
            code.make("mul24", row, Uniform(UniformKind.TEXTURE_ROW, unit)),
            code.make("shl", code.make("shr", x, Const(5)), Const(14)),
            shifted(y, 30, 9),
            shifted(x, 30, 5),
            shifted(sample, 3, 4),
            shifted(y, 1, 3),
            shifted(x, 1, 2),
        ]
        total = parts[0]
        for part in parts[1:]:
            total = code.make("add", total, part)
        inside = self._inside(total, Uniform(UniformKind.TEXTURE_LIMIT, unit))
        return self._look_up(inside, Uniform(UniformKind.TEXTURE_ADDRESS, unit))

    def _inside(self, offset: Operand, limit: Uniform) -> Reg:
        """A byte offset, clamped."""
        code = self.code
        clamp = code.op("max", offset, ZERO)
        clamp.is_clamp = True
        above = code.add(clamp)
        assert above is not None
        return code.make("min", above, limit)

    def _look_up(self, inside: Operand, start: Uniform) -> Reg:
        """A word of memory at a byte offset that is inside."""
        code = self.code
        op = code.op("add", inside, start)
        op.name, op.target, op.peripheral, op.is_look_up = "look up", S, True, True
        request = Request()
        op.request = request
        request.writes.append(op)
        code.add(op, None)
        word = self._result(request)
        return code.move(word)
