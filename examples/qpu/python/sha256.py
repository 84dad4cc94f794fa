"""SHA-256 of 16 messages at a time, a message in each lane."""

import struct

import vc4lab
from vc4lab.kernels.python import Array, InOut, Uint, index, me, qpu_function, qpus, ror, unroll


def _primes(count: int) -> list[int]:
    found: list[int] = []
    n = 2
    while len(found) < count:
        if all(n % p for p in found):
            found.append(n)
        n += 1
    return found


def _root_bits(n: int, degree: int) -> int:
    """The first 32 bits after the point of a root, by integers only."""
    low, high = 0, 1 << 40
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**degree <= n << 32 * degree else (low, middle)
    return low & 0xFFFFFFFF


K = [_root_bits(p, 3) for p in _primes(64)]
START = [_root_bits(p, 2) for p in _primes(8)]


@qpu_function
def scramble(x: Uint, a: int, b: int, c: int) -> Uint:
    return ror(x, a) ^ ror(x, b) ^ ror(x, c)


@qpu_function
def spread(x: Uint, a: int, b: int, c: int) -> Uint:
    return ror(x, a) ^ ror(x, b) ^ (x >> c)


@vc4lab.qpu_kernel
def sha256_block(blocks: Array[Uint], states: InOut[Uint]) -> None:
    """Add a block of 16 words to each message's state of 8 words.

    blocks: (groups, 16, 16) and states: (groups, 8, 16), word by word, messages side by side.
    """
    for group in range(me(), blocks.length, qpus()):
        words, state = blocks + group * 256, states + group * 128
        w = [words[16 * k + index()] for k in unroll(16)]
        s = [state[16 * k + index()] for k in unroll(8)]
        a, b, c, d, e, f, g, h = s
        for n in unroll(64):
            if n >= 16:
                w[n % 16] = (
                    w[n % 16]
                    + spread(w[(n - 15) % 16], 7, 18, 3)
                    + w[(n - 7) % 16]
                    + spread(w[(n - 2) % 16], 17, 19, 10)
                )
            one = h + scramble(e, 6, 11, 25) + (g ^ (e & (f ^ g))) + K[n] + w[n % 16]
            two = scramble(a, 2, 13, 22) + ((a & b) | (c & (a | b)))
            h, g, f, e, d, c, b, a = g, f, e, d + one, c, b, a, one + two
        for k, value in enumerate((a, b, c, d, e, f, g, h)):
            state[16 * k + index()] = value + state[16 * k + index()]


def sha256(messages: list[bytes], qpus: int = 1) -> list[bytes]:
    """The hashes of messages of equal length."""
    import numpy as np

    padded = []
    for message in messages:
        rest = -(len(message) + 9) % 64
        padded.append(message + b"\x80" + bytes(rest) + struct.pack(">Q", 8 * len(message)))
    groups = -(-len(messages) // 16)
    padded += [padded[0]] * (16 * groups - len(messages))
    words = np.array([np.frombuffer(one, ">u4") for one in padded], np.uint32).reshape(groups, 16, -1)
    states = np.empty((groups, 8, 16), np.uint32)
    states[:] = np.array(START, np.uint32)[:, None]
    for first in range(0, words.shape[2], 16):
        block = words[:, :, first : first + 16].transpose(0, 2, 1)
        states = sha256_block(block, states, qpus=qpus)
    hashes = states.transpose(0, 2, 1).reshape(-1, 8)[: len(messages)]
    return [one.astype(">u4").tobytes() for one in hashes]


if __name__ == "__main__":
    print(sha256([b"abc"])[0].hex())
