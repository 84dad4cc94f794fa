"""Decoding and printing, against encodings that others have published."""

import random

import pytest
from tests.soc.videocore.vpu.code import pack

from vc4lab.soc.videocore.vpu.forms import FORMS
from vc4lab.soc.videocore.vpu.instructions import UNDEFINED, VECTORS, class_of, decode

ASSEMBLER = """
a002 stm r6, (--sp)
2002 ldm r6, (sp++)
a003 stm r6, lr, (--sp)
2003 ldm r6, pc, (sp++)
c002 stm r16, (--sp)
e002 stm gp, (--sp)
8503 stm r0-r5, lr, (--sp)
0703 ldm r0-r7, pc, (sp++)
ef03 stm lr, (--sp)
6f03 ldm pc, (sp++)
0000 bkpt
0100 nop
0500 di
0a00 rti
2d00 swi r13
5300 b r19
7200 bl r18
8200 switch.b r2
a300 switch r3
e500 version r5
5608 ld r6, (r5)
f605 ld r6, (sp+124)
0606 st r6, (sp+0)
16a20028 ld r22, (r5+0)
36a27cc8 st r22, (sp+124)
05a93075 ld r5, (sp+30000)
9ae600000018 ldb lr, (r3+0)
baa20018 stb lr, (r3+0)
f063 add r0, 31
f077 addscale r0, 31<<3
40c05108 add.eq r0, r1, 17
60c25108 addscale.eq r0, r1, 17<<1
80c55108 addscale.eq r0, r1, 17<<5
e0c55108 addscale.eq r0, r1, 17<<8
c0c05108 sub.eq r0, r1, 17
20c65108 subscale.eq r0, r1, 17<<1
00c75108 subscale.eq r0, r1, 17<<8
0056 addscale r0, r0<<3
e0c20007 addscale r0, r0, r0<<4
2155 addscale r1, r2<<2
20c60c47 subscale r0, r8, r12<<1
40c0020e add.gt r0, r1, r2
84a04328 ldb.eq r4, (r5+3)
104a cmp r0, r1
40c10106 cmp.gt r0, r1
40c11487 cmp r16, r20
40c19485 cmp.lt r16, r20
1021 ld r0, (r1+4)
1031 st r0, (r1+4)
00a0440e ld.gt r0, (r1+4)
20a0440d st.ge r0, (r1+4)
10ab0010 ld r16, (r0+4096)
04e600008028 ld r4, (r5+8388608)
100b sth r0, (r1)
60a20808 sth r0, (r1+8)
40a8a00f ldh r0, (gp+4000)
60e6a08601c0 sth r0, (gp+100000)
a3a0df30 stb.ne r3, (r6+31)
afe6dd400370 stb r15, (r14+213213)
100f ldsb r0, (r1)
100e ldsh r0, (r1)
f2ab4075 ldsb r18, (r0+30016)
f2a05a61 ldsb.lo r18, (r12+26)
d2a0da61 ldsh.hs r18, (r12+26)
cce6400d0368 ldsh r12, (r13+200000)
00a5000f ld r0, (r1++)
e0a4000f ldsb r0, (--r1)
a0a4000c stb.hi r0, (--r1)
00a0020f ld r0, (r1+r2<<2)
e0b02000 and r0, 32
006a cmp r0, 0
40b12000 cmp r0, 32
40c17f07 cmp r0, -1
40c16007 cmp r0, -32
40e900800000 cmp r0, 32768
40b10080 cmp r0, -32768
40e921436587 cmp r0, 2271560481
"""
"""The tests of itszor's assembler (binutils-vc4)."""
BLINKER = """
01e80400207e mov r1, 2116026372
1020 ld r0, (r1+0)
e0e8ffffe3ff and r0, 4293132287
a0e900000400 or r0, 262144
1030 st r0, (r1+0)
0060 mov r0, 0
1062 add r0, 1
40e900001000 cmp r0, 1048576
fc18 bne 0x00000ff8
721f b 0x00000fe4
e2b00700 and r2, 7
"""
"""The programs blinker01 and uart01 of hermanhermitage's videocoreiv."""


def text(code: bytes, address: int = 0x1000) -> str:
    first = int.from_bytes(code[:2], "little")
    size, _name = class_of(first)
    assert size == len(code)
    word = first
    if size > 2:
        word = first << 8 * (size - 2) | _rest(code)
    return decode(word, size).text(address)


def _rest(code: bytes) -> int:
    return int.from_bytes(code[2:], "little")


@pytest.mark.parametrize("line", [*ASSEMBLER.split("\n")[1:-1], *BLINKER.split("\n")[1:-1]])
def test_published_encodings(line):
    code, expected = line.split(" ", 1)
    assert text(bytes.fromhex(code)) == expected


def test_targets_and_48_bits():
    assert text(bytes.fromhex("c718"), 0x80) == "bne 0x0000000e", "itszor's bne_1"
    assert text(bytes.fromhex("05e70e0000f8"), 6) == "ld r5, (0x00000014)", "itszor's pcrel"
    assert text(bytes.fromhex("009e4305"), 0xCEC002F0) == "b 0xcec00d76"
    assert text(bytes.fromhex("00e03412c00e")) == "j 0x0ec01234"
    assert text(bytes.fromhex("01e83020007e")) == f"mov r1, {0x7E002030}"


def test_every_form_is_found_again_with_its_fields():
    chance = random.Random(4)
    for form in FORMS:
        for _round in range(20):
            raw = {letter: chance.getrandbits(bits) for letter, _parts, bits in form.fields}
            word = form.match
            for letter, parts, bits in form.fields:
                for shift, count in parts:
                    bits -= count
                    word |= (raw[letter] >> bits & (1 << count) - 1) << shift
            fields = form.extract(word)
            data = pack(form, fields)
            first = int.from_bytes(data[:2], "little")
            assert class_of(first)[0] == form.size
            again = decode(word, form.size)
            assert again.form is not None
            assert again.form.pattern == form.pattern or FORMS.index(again.form) < FORMS.index(form)
            assert again.text(0x8000)


def test_what_is_refused_says_why():
    assert decode(0xF000 << 32, 6).refused == VECTORS
    assert decode(0xF800 << 64, 10).refused == VECTORS
    assert decode(0x0100, 2).refused == UNDEFINED
    assert "interrupts" in decode(0x0004, 2).refused
    assert "clamp16" in decode(0xC560_0701 & 0xFFFFFFFF, 4).refused
    assert "sr or pc" in decode(0x005F, 2).refused
    assert "range" in decode(0x02E3, 2).refused
    assert "fabs" in decode(0xC8A0_0701, 4).refused
