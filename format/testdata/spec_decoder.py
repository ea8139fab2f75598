#!/usr/bin/env python3
"""A second decoder of feature files and packs, written from SPEC.md and encoding/SPEC.md alone.

It shares no code and no author's assumption with the Go decoder: where the two disagree, the page is unclear or one of them is
wrong. It is slow and plain on purpose, each function is a section of the specification, and whatever the specification does not
allow raises Damaged.

    spec_decoder.py [--codecs] FILE [--group FILE] [FILE [--group FILE]]...

prints every row of each feature file as testdata/golden/*/*.txt have them; --group names the file of kind inverse that the feature
file before it needs. With --codecs the stream kinds and codecs met follow, one a line.

    spec_decoder.py --chunks

reads lines "FAMILY COUNTS CHUNK" from the standard input: ints, floats, doubles or bits and the number of values, or strings and the
length of each with commas between; and the chunk in hexadecimal. It prints the values of each on a line: the bits of a number in
hexadecimal, the bits of flags and the bytes of all strings as they are.

Needs Python 3.9, and one of compression.zstd, zstandard and pyarrow; without them it ends with status 77.
"""

import struct
import sys
from fractions import Fraction

from spec_encoding import Bytes, MASK64, bits, codecs_met, expand_runs, floats, ints, look_up, need, round_to, strings


# ---- SPEC.md

DENSE, SPARSE, WEIGHTED, EMBEDDING, BYTES, STRING, INVERSE = range(1, 8)
ELEMS = [None, "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"]
UINT64, FLOAT32, FLOAT64 = 9, 10, 11
STREAMS = {1: "presence", 2: "inverse runs", 3: "inverse changes", 4: "inverse codes", 5: "lengths", 6: "values", 7: "scores", 8: "starts", 9: "codes"}


def crc32c(data, table=[]):
    if not table:
        for i in range(256):
            for _ in range(8):
                i = i >> 1 ^ (0x82F63B78 if i & 1 else 0)
            table.append(i)
    c = 0xFFFFFFFF
    for byte in data:
        c = c >> 8 ^ table[(c ^ byte) & 255]
    return c ^ 0xFFFFFFFF


def directory_of(data, magic):
    """Section 2: header and tail. Returns the directory's bytes and where they start."""
    need(len(data) >= 16 and data[:4] == magic + b"\x01", "header")
    tail = data[-12:]
    need(tail[8:11] == magic, "magic of the tail")
    length = int.from_bytes(tail[:4], "little")
    need(length <= len(data) - 16, "directory length")
    start = len(data) - 12 - length
    need(crc32c(data[start:-12] + tail[:4] + tail[8:]) == int.from_bytes(tail[4:8], "little"), "checksum of the directory")
    need(tail[11] == 1, "version")
    return data[start:-12], start


class Feature:
    """Section 3: the directory of a feature file, and its bytes."""

    def __init__(self, data):
        directory, self.end = directory_of(data, b"DSF")
        self.data = data
        b = Bytes(directory)
        need(b.uint(1) == 1, "version of the directory")
        flags = b.uint(1)
        need(flags <= 7, "flags of the directory")
        self.kind = b.uint(1)
        need(1 <= self.kind <= 7, "kind")
        self.elem = b.uint(1) if self.kind <= EMBEDDING else 0
        need(self.kind > EMBEDDING or 1 <= self.elem <= 11, "elem")
        self.score = b.uint(1) if self.kind == WEIGHTED else 0
        need(self.score in ((10, 11) if self.kind == WEIGHTED else (0,)), "score")
        self.dim = b.uvarint() if self.kind == EMBEDDING else 1
        need(1 <= self.dim <= 65536, "dim")
        self.id, salt = b.uint(8), b.take(4)
        self.group = b.uint(8) if flags & 1 else 0
        need(self.group != 0 or not flags & 1, "group 0")
        shared, length_shared = (b.uvarint(), b.uvarint()) if flags & 4 else (0, 0)
        if flags & 4:
            need(self.kind in (DENSE, SPARSE, WEIGHTED) and self.elem < FLOAT32, "dictionary of a kind that has none")
            need(shared > 0 and length_shared > 4, "empty dictionary")
        length = b.uvarint()
        need(length <= 65535, "name length")
        self.name = b.take(length).decode()
        self.floats = self.elem in (FLOAT32, FLOAT64)
        self.lists = self.kind in (SPARSE, WEIGHTED, BYTES, STRING)
        self.salt, self.stripes, rows, at = salt, [], 0, 4 + length_shared
        for _ in range(b.uvarint()):
            stripe = Stripe(self, len(self.stripes), b, rows, at)
            self.stripes.append(stripe)
            rows, at = stripe.rows, stripe.end
        need(at == self.end, "stripes do not end where the directory starts")
        if flags & 2:
            for _ in range(b.uvarint()):
                tag = b.uvarint()
                b.take(b.uvarint())
                need(tag % 2 == 0, "unknown field")
        b.end()
        self.shared = []
        if flags & 4:
            need(at <= len(data) and crc32c(salt + b"\xff" * 4 + b"\0" + data[4:length_shared]) == int.from_bytes(data[length_shared : 4 + length_shared], "little"), "checksum of the dictionary")
            self.shared = ints(data[4:length_shared], shared)
            codecs_met.add("dictionary")

    def type(self):
        elem = ELEMS[self.elem] if self.elem else ""
        return {
            DENSE: elem,
            SPARSE: "list<%s>" % elem,
            WEIGHTED: "list<%s:%s>" % (elem, ELEMS[self.score] if self.score else ""),
            EMBEDDING: "%s[%d]" % (elem, self.dim),
            BYTES: "bytes",
            STRING: "string",
            INVERSE: "inverse",
        }[self.kind]

    def width(self, elem):
        return 8 if elem == FLOAT64 else 4


class Stripe:
    """Section 4: one stripe entry, and section 6: its streams."""

    def __init__(self, feature, number, b, rows_before, at):
        self.feature = feature
        self.context = feature.salt + number.to_bytes(4, "little")
        kinds = b.uvarint()
        need(kinds < 1 << 9, "stream kind")
        flags = b.uint(1)
        need(flags < 1 << 6, "flags of a stripe")
        self.rows = rows_before + b.svarint()
        need(self.rows >= 0, "rows")
        self.slots = b.uvarint() if flags & 1 else self.rows
        self.nulls = b.uvarint() if flags & 2 else self.slots if flags & 4 else 0
        need(flags & 6 != 6 and self.nulls <= self.slots, "nulls")
        self.present = self.slots - self.nulls
        has = lambda kind: kinds >> (kind - 1) & 1
        if feature.lists:
            self.elements = b.uvarint() if self.present else 0
        else:
            self.elements = 0 if feature.kind == INVERSE else self.present * feature.dim
        self.runs = b.uvarint() if has(4) and (has(2) or has(3)) else None
        self.own = b.uvarint() if has(9) else None
        need(self.own is None or self.own <= self.elements, "values of its own")
        self.null_rows, self.row_elements = (b.uvarint(), b.uvarint()) if flags & 8 else (self.nulls, self.elements)
        self.bounds = (self.bound(b, flags, False), self.bound(b, flags, True)) if flags & 16 else None
        self.streams = {}
        for kind in range(1, 10):
            if has(kind):
                length = b.uvarint()
                need(at + length <= feature.end, "stream outside the file")
                self.streams[kind] = (at, length)
                at += length
        self.end = at

    def bound(self, b, flags, upper):
        if self.feature.floats:
            return struct.unpack("<d", b.take(8))[0] if flags & 32 else struct.unpack("<f", b.take(4))[0]
        head = b.uint(1)
        n, d = head & 15, head >> 4
        need(n + d <= 8, "bound")
        v = int.from_bytes(b.take(n), "big", signed=self.feature.elem != UINT64)
        v = v * 256**d + (256**d - 1 if upper else 0)
        return -1 if upper and d == 8 and self.feature.elem != UINT64 else v

    def chunk(self, kind):
        codecs_met.add("stream " + STREAMS[kind])
        at, length = self.streams[kind]
        need(length >= 4, "stream of no checksum")
        chunk = self.feature.data[at : at + length - 4]
        need(crc32c(self.context + bytes([kind]) + chunk) == int.from_bytes(self.feature.data[at + length - 4 : at + length], "little"), "checksum of a stream")
        return chunk

    def int32s(self, kind, n):
        out = ints(self.chunk(kind), n)
        need(all(0 <= v < 1 << 31 for v in out) or kind == 4, STREAMS[kind] + " outside")
        return out

    def inverse(self):
        """The slot of each row."""
        has = self.streams.__contains__
        if not (has(2) or has(3) or has(4)):
            need(self.slots == self.rows or self.slots == 1, "no inverse")
            return list(range(self.rows)) if self.slots == self.rows else [0] * self.rows
        need(not (has(2) and has(3)), "two inverses")
        runs = self.runs if self.runs is not None else self.rows if has(4) else self.slots
        if has(2):
            lengths = self.int32s(2, runs)
        elif has(3):
            changes = bits(self.chunk(3), self.rows)
            need(changes[0] == 0, "change at row 0")
            starts = [0] + [i for i, c in enumerate(changes) if c] + [self.rows]
            need(len(starts) == runs + 1, "count of changes")
            lengths = [b - a for a, b in zip(starts, starts[1:])]
        else:
            lengths = [1] * runs
        if has(4):
            slots, following = [], 0
            for c in self.int32s(4, runs):
                s = following - c
                need(0 <= s < self.slots, "slot outside")
                slots.append(s)
                following = max(following, s + 1)
        else:
            slots = list(range(self.slots))
        return expand_runs(slots, lengths, self.rows)

    def integers(self):
        """The integers of a stripe, by codes where it has them."""
        if 9 not in self.streams:
            return ints(self.chunk(6), self.elements)
        need(self.feature.shared, "codes without a dictionary")
        need((self.own > 0) == (6 in self.streams), "values of its own")
        own = ints(self.chunk(6), self.own) if self.own else []
        return look_up(self.feature.shared + own, ints(self.chunk(9), self.elements))

    def values(self):
        """The text of each slot; None of a null one."""
        f = self.feature
        if 1 in self.streams:
            presence = bits(self.chunk(1), self.slots)
            need(sum(presence) == self.present, "count of nulls")
        else:
            need(self.nulls in (0, self.slots), "no presence")
            presence = [1 if self.nulls == 0 else 0] * self.slots
        if f.lists:
            lengths = self.int32s(5, self.present) if 5 in self.streams else []
            need(len(lengths) == self.present, "no lengths")
            if 8 in self.streams:
                starts = self.int32s(8, self.present)
            else:
                starts, at = [], 0
                for length in lengths:
                    starts.append(at)
                    at += length
                need(at == self.elements, "lengths do not sum to the elements")
            need(all(s + l <= self.elements for s, l in zip(starts, lengths)), "slice outside")
        else:
            lengths = [f.dim] * self.present
            starts = range(0, self.elements, f.dim)
        texts = []
        if f.kind in (BYTES, STRING):
            data = b""
            if 6 in self.streams:
                data = b"".join(strings(self.chunk(6), [self.elements] if 8 in self.streams else lengths))
            for start, length in zip(starts, lengths):
                value = data[start : start + length]
                if f.kind == STRING:
                    value.decode()
                texts.append(quoted(value))
        else:
            items = []
            if self.elements:
                elem = f.elem
                if f.floats:
                    items = [number(v, f.width(elem)) for v in floats(self.chunk(6), self.elements, f.width(elem))]
                else:
                    raw = self.integers()
                    items = [str(v & MASK64 if elem == UINT64 else v) for v in raw]
                    self.check_bounds([v & MASK64 if elem == UINT64 else v for v in raw])
                if f.kind == WEIGHTED:
                    w = f.width(f.score)
                    scores = floats(self.chunk(7), self.elements, w)
                    items = ["%s:%s" % (i, number(s, w)) for i, s in zip(items, scores)]
            for start, length in zip(starts, lengths):
                texts.append(" ".join(items[start : start + length]))
            if f.kind in (SPARSE, WEIGHTED):
                texts = ["[%s]" % t for t in texts]
            elif f.kind == EMBEDDING:
                texts = ["(%s)" % t for t in texts]
        following = iter(texts)
        following_length = iter(lengths)
        return [next(following) if p else None for p in presence], [next(following_length) if p else 0 for p in presence]

    def check_bounds(self, values):
        if self.bounds:
            need(self.bounds[0] <= min(values) and max(values) <= self.bounds[1], "bounds")

    def lines(self, group):
        if not self.rows:
            need(not self.slots and not self.streams, "streams of no rows")
            return []
        need(self.slots >= 1, "rows without slots")
        if group is not None:
            need((group.rows, group.slots) == (self.rows, self.slots) and not {2, 3, 4} & set(self.streams), "not of the group")
        inverse = (group or self).inverse()
        if self.feature.kind == INVERSE:
            return [str(s) for s in inverse]
        texts, lengths = self.values()
        need(sum(texts[s] is None for s in inverse) == self.null_rows, "null rows")
        if self.feature.lists:
            need(sum(lengths[s] for s in inverse) == self.row_elements, "row elements")
        return ["null" if texts[s] is None else texts[s] for s in inverse]


# ---- the text of values: as strconv.FormatFloat(v, 'g', -1, bits) and strconv.QuoteToASCII print them


def number(value, width):
    f = struct.unpack("<d" if width == 8 else "<f", value.to_bytes(width, "little"))[0]
    if f != f:
        return "NaN"
    if f in (float("inf"), float("-inf")):
        return "+Inf" if f > 0 else "-Inf"
    if width == 8:
        digits = repr(f)
    else:
        digits = next(d for p in range(1, 10) for d in ["%.*g" % (p, f)] if round_to(Fraction(d), 4) == round_to(Fraction(f), 4))
    sign = "-" if digits[0] == "-" else ""
    mantissa, _, exponent = digits.lstrip("-").partition("e")
    whole, _, part = mantissa.partition(".")
    point = len(whole) + int(exponent or 0)
    figures = whole + part
    stripped = figures.lstrip("0")
    point -= len(figures) - len(stripped)
    figures = stripped.rstrip("0")
    if not figures:
        return sign + "0"
    if not -4 <= point - 1 < 21:
        return "%s%s%se%+03d" % (sign, figures[0], "." + figures[1:] if len(figures) > 1 else "", point - 1)
    if point <= 0:
        return sign + "0." + "0" * -point + figures
    whole, part = figures[:point].ljust(point, "0"), figures[point:]
    return sign + whole + ("." + part if part else "")


def quoted(data):
    named = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}
    out = []
    for c in map(ord, data.decode("utf-8", "surrogateescape")):
        if c in named:
            out.append(named[c])
        elif 32 <= c < 127:
            out.append(chr(c))
        elif c < 128 or 0xDC80 <= c <= 0xDCFF:
            out.append("\\x%02x" % (c & 255))
        else:
            out.append(("\\u%04x" if c < 1 << 16 else "\\U%08x") % c)
    return '"%s"' % "".join(out)


def text(feature, group):
    need((feature.group or 0) == (group.id if group else 0), "file of another group, or none")
    need(group is None or group.kind == INVERSE and len(group.stripes) == len(feature.stripes), "group")
    rows = sum(s.rows for s in feature.stripes)
    yield 'feature %d "%s", group %d, %d rows' % (feature.id, feature.name, feature.group, rows)
    for i, stripe in enumerate(feature.stripes):
        yield "stripe %d: %s, %d rows, %d slots" % (i, feature.type(), stripe.rows, stripe.slots)
        yield from stripe.lines(group.stripes[i] if group else None)


def pack(data):
    """Section 7: the feature files of a pack, by feature id."""
    directory, end = directory_of(data, b"DSP")
    b = Bytes(directory)
    need(b.uint(1) == 0, "flags of a pack")
    at, files = 4, {}
    for _ in range(b.uvarint()):
        feature, gap, length = b.uint(8), b.uvarint(), b.uvarint()
        at += gap
        need(length >= 16 and at + length <= end, "feature file outside")
        files[feature] = data[at : at + length]
        at += length
    b.end()
    return files


def chunks(lines):
    for line in lines:
        family, counts, digits = line.split(" ")
        chunk = bytes.fromhex(digits)
        if family == "strings":
            print(b"".join(strings(chunk, [int(v) for v in counts.split(",") if v])).hex())
        elif family == "bits":
            print("".join(map(str, bits(chunk, int(counts)))))
        elif family == "ints":
            print(" ".join("%x" % (v & MASK64) for v in ints(chunk, int(counts))))
        else:
            print(" ".join("%x" % v for v in floats(chunk, int(counts), 4 if family == "floats" else 8)))


def main(arguments):
    if arguments == ["--chunks"]:
        return chunks(sys.stdin)
    files, show = [], False
    arguments = iter(arguments)
    for a in arguments:
        if a == "--codecs":
            show = True
        elif a == "--group":
            files[-1] = (files[-1][0], next(arguments))
        else:
            files.append((a, None))

    def read(name):
        with open(name, "rb") as f:
            return f.read()

    for name, group in files:
        data = read(name)
        if data[:3] == b"DSP":
            members = {k: Feature(v) for k, v in pack(data).items()}
            for k, feature in members.items():
                need(feature.id == k, "pack names another feature")
                print("\n".join(text(feature, members.get(feature.group))))
            continue
        print("\n".join(text(Feature(data), Feature(read(group)) if group else None)))
    if show:
        print("\n".join(sorted(codecs_met)))


if __name__ == "__main__":
    main(sys.argv[1:])
