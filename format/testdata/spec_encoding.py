"""Chunks, as encoding/SPEC.md has them: the part of spec_decoder.py that knows nothing of files."""

import struct
import sys
from fractions import Fraction


class Damaged(Exception):
    """The bytes are not what the specification allows."""


def need(ok, reason):
    if not ok:
        raise Damaged(reason)


MASK64 = (1 << 64) - 1


def signed64(v):
    v &= MASK64
    return v - (1 << 64) if v >> 63 else v


# Zstandard: whichever binding there is. Each returns exactly the frame's content; sizes are always known beforehand.
try:
    from compression import zstd as _zstd  # Python 3.14

    def _unzstd(frame, size):
        return _zstd.decompress(frame)
except ImportError:
    try:
        import zstandard

        def _unzstd(frame, size):
            return zstandard.ZstdDecompressor().decompress(frame, max_output_size=size)
    except ImportError:
        try:
            import pyarrow
        except ImportError:
            sys.exit(77)

        def _unzstd(frame, size):
            return pyarrow.decompress(frame, size, codec="zstd", asbytes=True)


def frame_bytes(frame, size):
    out = _unzstd(frame, size) if size else b""
    need(len(out) == size, "frame of another size")
    return out


class Bytes:
    """A cursor over bytes. Reading past the end is damage."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def left(self):
        return len(self.data) - self.at

    def take(self, n):
        need(n <= self.left(), "bytes missing")
        self.at += n
        return self.data[self.at - n : self.at]

    def rest(self):
        return self.take(self.left())

    def uint(self, n):
        return int.from_bytes(self.take(n), "little")

    def uvarint(self):
        v = 0
        for i in range(10):
            b = self.uint(1)
            v |= (b & 127) << (7 * i)
            if b < 128:
                need(v <= MASK64, "uvarint above 2^64")
                return v
        raise Damaged("uvarint of more than 10 bytes")

    def svarint(self):
        u = self.uvarint()
        return -(u >> 1) - 1 if u & 1 else u >> 1

    def chunk(self):
        """A nested chunk that is not the last field: its length, then its bytes."""
        return self.take(self.uvarint())

    def end(self):
        need(self.left() == 0, "bytes left over")


# ---- encoding/SPEC.md, section 2: bit-packing


def packed_size(n, w):
    return n // 256 * 32 * w + (n % 256 * w + 7) // 8


def unpack(data, n, w):
    need(len(data) == packed_size(n, w), "packed values of another size")
    if w == 0:
        return [0] * n
    out = []
    low = (1 << w) - 1
    for block in range(n // 256):
        base = block * 32 * w
        lanes = []
        for lane in range(4):
            words = (int.from_bytes(data[base + 8 * (4 * k + lane) :][:8], "little") << (64 * k) for k in range(w))
            lanes.append(sum(words))
        out += [lanes[i % 4] >> (i // 4 * w) & low for i in range(256)]
    tail = int.from_bytes(data[n // 256 * 32 * w :], "little")
    out += [tail >> (i * w) & low for i in range(n % 256)]
    return out


# ---- encoding/SPEC.md, section 3: ints. Values are signed 64-bit.

codecs_met = set()


def positions(p, n):
    need(all(0 <= v < n for v in p), "position outside")
    need(all(a < b for a, b in zip(p, p[1:])), "positions not increasing")
    return p


def expand_runs(values, lengths, n):
    need(all(v >= 1 for v in lengths) and sum(lengths) == n, "run lengths")
    out = []
    for v, length in zip(values, lengths):
        out += [v] * length
    return out


def look_up(values, codes):
    need(all(0 <= c < len(values) for c in codes), "code outside")
    return [values[c] for c in codes]


def copy_sequences(literals, skips, copies, distances, n):
    out, at = [], 0
    for skip, copy, distance in zip(skips, copies, distances):
        need(0 <= skip <= len(literals) - at, "skip")
        out += literals[at : at + skip]
        at += skip
        need(copy >= 1 and 1 <= distance <= len(out) and len(out) + copy <= n, "copy")
        for _ in range(copy):
            out.append(out[-distance])
    out += literals[at:]
    need(len(out) == n, "count of sequences")
    return out


def sequences(b, n, depth, literals):
    m, s = b.uvarint(), b.uvarint()
    need(m + s <= n, "counts of sequences")
    skips, copies, distances = (ints(b.chunk(), s, depth + 1) for _ in range(3))
    return copy_sequences(literals(b.rest(), m), skips, copies, distances, n)


def classes(b, n):
    w, minimum = b.uint(1), b.svarint()
    need(w <= 48, "low width")
    cuts, others, sizes = [], [], []
    for _ in range(16):
        cuts.append(b.uint(1))
        both = b.uint(1)
        others.append(both & 15)
        sizes.append(both >> 4)
    states = [b.uint(4) for _ in range(32)]
    low_bytes = packed_size(n, w)
    need(b.left() >= low_bytes and (b.left() - low_bytes) % 2 == 0, "words")
    words = Bytes(b.take(b.left() - low_bytes))
    lows = unpack(b.rest(), n, w)
    owner, rank, frequency = [0] * 4096, [0] * 4096, [0] * 16
    for bucket in range(16):
        for place in range(256):
            c = bucket if place < cuts[bucket] else others[bucket]
            owner[place * 16 + bucket] = c
            rank[place * 16 + bucket] = frequency[c]
            frequency[c] += 1

    def refilled(x):
        x &= 0xFFFFFFFF
        return (x << 16 | words.uint(2)) & 0xFFFFFFFF if x < 65536 else x

    out = []
    for begin in range(0, n, 32):
        row = []
        count = min(32, n - begin)
        for i in range(count):
            x = states[i]
            c = owner[x % 4096]
            row.append(c)
            states[i] = refilled(frequency[c] * (x // 4096) + rank[x % 4096])
        for i, c in enumerate(row):
            size = 2 ** sizes[c]
            distance = sum(2**s for s in sizes[:c]) + states[i] % size
            out.append(signed64(minimum + lows[begin + i] + (distance << w)))
            states[i] = refilled(states[i] // size)
    need(all(x == 65536 for x in states), "states at the end")
    words.end()
    return out


def ints(data, n, depth=0):
    need(depth <= 4, "depth")
    b = Bytes(data)
    codec = b.uint(1)
    codecs_met.add("codec %d" % codec)
    if codec == 1:
        out = [b.svarint()] * n
    elif codec == 2:
        w = b.uint(1)
        need(w in (1, 2, 4, 8), "width")
        out = [int.from_bytes(b.take(w), "little", signed=True) for _ in range(n)]
    elif codec == 3:
        w, minimum = b.uint(1), b.svarint()
        need(w <= 64, "width")
        out = [signed64(minimum + d) for d in unpack(b.rest(), n, w)]
    elif codec == 4:
        need(n >= 1, "delta of nothing")
        out = [b.svarint()]
        for d in ints(b.rest(), n - 1, depth + 1):
            out.append(signed64(out[-1] + d))
    elif codec == 5:
        w, base, x = b.uint(1), b.svarint(), b.uvarint()
        need(w <= 63 and x <= n, "width or exceptions")
        where = positions(ints(b.chunk(), x, depth + 1), n)
        highs = ints(b.chunk(), x, depth + 1)
        out = [signed64(base + v) for v in unpack(b.rest(), n, w)]
        for p, h in zip(where, highs):
            out[p] = signed64(out[p] + (h << w))
    elif codec == 6:
        k = b.uvarint()
        need(k <= n, "distinct")
        values = ints(b.chunk(), k, depth + 1)
        out = look_up(values, ints(b.rest(), n, depth + 1))
    elif codec == 7:
        r = b.uvarint()
        need(r <= n, "runs")
        values = ints(b.chunk(), r, depth + 1)
        out = expand_runs(values, ints(b.rest(), r, depth + 1), n)
    elif codec == 8:
        s = b.uvarint()
        need(s <= 64 + 9 * n, "size")
        out = ints(frame_bytes(b.rest(), s), n, depth + 1)
    elif codec == 10:
        out = sequences(b, n, depth, lambda d, m: ints(d, m, depth + 1))
    elif codec == 11:
        out = classes(b, n)
    else:
        raise Damaged("codec %d of ints" % codec)
    b.end()
    return out


# ---- encoding/SPEC.md, section 4: floats. Values are bits, as unsigned integers.


def round_to(x, width):
    """The bits of the float of width bytes nearest to the Fraction x, ties to even."""
    mantissa, least, bias = (52, -1074, 1023) if width == 8 else (23, -149, 127)
    sign = 1 if x < 0 else 0
    x = abs(x)
    if x == 0:
        return sign << (8 * width - 1)
    e = x.numerator.bit_length() - x.denominator.bit_length()
    if x < Fraction(2) ** e:
        e -= 1
    ulp = max(e - mantissa, least)
    units = round(x / Fraction(2) ** ulp)  # ties to even
    # Units carry into the exponent by themselves: the bits of floats are in the order of the floats.
    bits = units + ((ulp - least) << mantissa)
    return bits | sign << (8 * width - 1)


def fraction(bits, width):
    return Fraction(struct.unpack("<d" if width == 8 else "<f", bits.to_bytes(width, "little"))[0])


def product(a, b, width):
    """The bits of the product; the sign of a zero too."""
    bits = round_to(fraction(a, width) * fraction(b, width), width)
    top = 1 << (8 * width - 1)
    return bits & (top - 1) | (a ^ b) & top


def floats(data, n, width, depth=0):
    need(depth <= 4, "depth")
    b = Bytes(data)
    codec = b.uint(1)
    codecs_met.add("codec %d" % codec)
    if codec == 16:
        out = [b.uint(width)] * n
    elif codec == 17:
        out = [b.uint(width) for _ in range(n)]
    elif codec == 18:
        planes = []
        for _ in range(width):
            how = b.uint(1)
            need(how <= 2, "plane")
            planes.append(b.take(n) if how == 0 else b.take(1) * n if how == 1 else frame_bytes(b.chunk(), n))
        rotated = [int.from_bytes(bytes(p[i] for p in planes), "little") for i in range(n)]
        out = [v >> 1 | (v & 1) << (8 * width - 1) for v in rotated]
    elif codec == 19:
        e, f, x = b.uint(1), b.uint(1), b.uvarint()
        need(f <= e <= (18 if width == 8 else 10) and x <= n, "powers or exceptions")
        integers = ints(b.chunk(), n, depth + 1)
        where = positions(ints(b.chunk(), x, depth + 1), n)
        up, down = round_to(Fraction(10) ** f, width), round_to(Fraction(1, 10**e), width)
        known = {}
        for v in set(integers):
            known[v] = product(product(round_to(Fraction(v), width), up, width), down, width)
        out = [known[v] for v in integers]
        for p in where:
            out[p] = b.uint(width)
    elif codec == 20:
        k = b.uvarint()
        need(k <= n, "distinct")
        values = floats(b.chunk(), k, width, depth + 1)
        out = look_up(values, ints(b.rest(), n, depth + 1))
    elif codec == 21:
        r = b.uvarint()
        need(r <= n, "runs")
        values = floats(b.chunk(), r, width, depth + 1)
        out = expand_runs(values, ints(b.rest(), r, depth + 1), n)
    elif codec == 22:
        plain = Bytes(frame_bytes(b.rest(), n * width))
        out = [plain.uint(width) for _ in range(n)]
    elif codec == 23:
        out = sequences(b, n, depth, lambda d, m: floats(d, m, width, depth + 1))
    else:
        raise Damaged("codec %d of floats" % codec)
    b.end()
    return out


# ---- encoding/SPEC.md, section 5: bits


def bits(data, n, depth=0):
    b = Bytes(data)
    codec = b.uint(1)
    codecs_met.add("codec %d" % codec)
    if codec == 33:
        v = int.from_bytes(b.take((n + 7) // 8), "little")
        need(v >> n == 0, "bits beyond the last")
        out = [v >> i & 1 for i in range(n)]
    elif codec in (32, 34, 35):
        flag = b.uint(1)
        need(flag <= 1, "flag")
        if codec == 32:
            out = [flag] * n
        elif codec == 34:
            r = b.uvarint()
            need(r <= n, "runs")
            out = expand_runs([flag ^ i & 1 for i in range(r)], ints(b.rest(), r, depth + 1), n)
        else:
            k = b.uvarint()
            need(k <= n, "count")
            out = [1 - flag] * n
            for p in positions(ints(b.rest(), k, depth + 1), n):
                out[p] = flag
    else:
        raise Damaged("codec %d of bits" % codec)
    b.end()
    return out


# ---- encoding/SPEC.md, section 6: strings


def strings(data, lengths, depth=0):
    need(depth <= 4, "depth")
    b = Bytes(data)
    codec = b.uint(1)
    codecs_met.add("codec %d" % codec)
    if codec in (48, 49):
        plain = Bytes(b.take(sum(lengths)) if codec == 48 else frame_bytes(b.rest(), sum(lengths)))
        out = [plain.take(length) for length in lengths]
    elif codec == 50:
        k = b.uvarint()
        need(k <= len(lengths), "distinct")
        codes = ints(b.chunk(), len(lengths), depth + 1)
        distinct = [None] * k
        for c, length in zip(codes, lengths):
            need(0 <= c < k and distinct[c] in (None, length), "code")
            distinct[c] = length
        need(None not in distinct, "distinct string without use")
        out = look_up(strings(b.rest(), distinct, depth + 1), codes)
    else:
        raise Damaged("codec %d of strings" % codec)
    b.end()
    return out
