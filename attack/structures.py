"""Mutations of the structure of pictures and arrays: chunks of PNG, tags of TIFF, segments of JPEG, headers of ``.npy``."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Callable

from attack.traps import Traps, packed_zeros

_SIZES = (0, 1, 2, 13, 14, 255, 4096, 12_000, 20_000, 2**16 - 1, 2**24, 2**31 - 1, 2**31, 2**32 - 1)
_TEXTS = (b"\x1b[2Jtext", b"\xff\xfe\x00", b"a" * 70_000, b"\xe2\x80\xae", b"[bold]x[/bold]", b"<img onerror=x>", b"")
_TYPES = (
    "<f4",
    "|u1",
    ">u2",
    "<f8",
    "|O",
    "|V8",
    "<c16",
    "<M8[s]",
    "|S5",
    "<U3",
    "<f2",
    "|b1",
    "<q9",
    "<i8",
    "<g",
    "x\x1b[31m",
)
_CHUNKS = (b"tEXt", b"zTXt", b"iTXt", b"iCCP", b"eXIf", b"gAMA", b"tRNS", b"acTL", b"fcTL", b"PLTE", b"xx\x1bx")
_SHAPES = (
    "(3, 8, 9)", "(1099511627776, 8, 8)", "(4294967296, 4294967296, 4)", "(0, 5)", "(-2, -5)", "()", "(8,)", "(2, 2, 2, 2)",
    "(1, 1, 1)", "(2.5, 3)", "('a', 3)", "(True, 9)", "(216,)", "(3, 8, 9, 1)", "(" + "1," * 60 + ")", "None", "9" * 5000,
    "(" * 200 + ")" * 200,
)  # fmt: skip

_CELLS = (
    "", "nan", "inf", "-inf", "1e999", "1e-999", "1e38", "-1e300", "NA", "x", "1_0", "0x1p3", "1j", "١٢", "=1+1", "time",
    "ms", '"', '"""', "#", "\x1b[31m", "\u202e", "\0", "9" * 400, "9" * 200_000, "2024-01-01", "True", " ", "1.2.3", "1,2,3",
)  # fmt: skip


def mutated_npy(rng: random.Random, content: bytes, traps: Traps) -> bytes:
    """An array whose header says something else, with the samples or a pickle behind it."""
    body = content[10 + int.from_bytes(content[8:10], "little") :]
    descr, shape = rng.choice(_TYPES), rng.choice(_SHAPES)
    text = f"{{'descr': {descr!r}, 'fortran_order': {rng.choice(['False', 'True', '1', 'None'])}, 'shape': {shape}, }}"
    odd = rng.choice(
        [
            f"{{'descr': [('a', {descr!r}), ('b\\x1b[31m', '<f4')], 'fortran_order': False, 'shape': {shape}}}",
            f"{{'descr': [('a', '|O')], 'fortran_order': False, 'shape': {shape}}}",
            "{" * 3000, "[1, 2]", "\xff\0\n", "__import__('os').mkdir('ran')", text[:-4], "", text + " " * 60_000,
        ]
    )  # fmt: skip
    header = (text if rng.random() < 0.7 else odd).encode("latin-1")
    if descr == "|O" or rng.random() < 0.1:
        body = traps.pickle
    version = rng.choice([1, 1, 1, 2, 3, 4, 0])
    length = len(header) if rng.random() < 0.9 else rng.choice([0, 1, len(header) + 7, 2**15])
    return b"\x93NUMPY" + bytes([version, 0]) + length.to_bytes(2 if version == 1 else 4, "little") + header + body


def mutated_table(rng: random.Random, content: bytes, traps: Traps) -> bytes:
    """A table with other cells, delimiters, lines or ends of lines."""
    lines = content.decode().split("\n")
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(lines)) if rng.random() < 0.7 else 0
        mark = rng.choice(",;\t ")
        cells = lines[place].split(mark)
        cells[rng.randrange(len(cells))] = rng.choice(_CELLS)
        lines[place] = rng.choice(
            [
                mark.join(cells), mark.join(cells), lines[place].replace(",", mark),
                lines[place] + mark * rng.choice([1, 9, 5000]), "", "#",
                f'"{lines[place]}', lines[place] * 3, lines[place] + "\r", rng.choice(_CELLS),
            ]
        )  # fmt: skip
    return (
        rng.choice(["\n", "\n", "\r\n", "\r"])
        .join(lines)
        .encode(rng.choice(["utf-8", "utf-8", "utf-16", "latin-1"]), "replace")
    )


def mutated_png(rng: random.Random, content: bytes, traps: Traps) -> bytes:
    """A PNG whose chunks are changed, repeated, removed or in another order, with checksums that fit."""
    chunks = _png_chunks(content)
    place = rng.randrange(len(chunks))
    action = rng.choice(["header", "header", "change", "repeat", "remove", "order", "add", "bomb", "samples"])
    if action == "header" or not chunks:
        width, height = (rng.choice(_SIZES) if rng.random() < 0.5 else side for side in (14, 12))
        fields = (rng.choice([1, 2, 4, 8, 16, 7]), rng.choice([0, 2, 3, 4, 6, 5]), *rng.choices([0, 0, 0, 1, 9], k=3))
        chunks[0] = (b"IHDR", struct.pack(">II", width, height) + bytes(fields))
    elif action == "change":
        name, data = chunks[place]
        chunks[place] = (name, rng.randbytes(len(data)) if rng.random() < 0.5 else data[: len(data) // 2])
    elif action == "repeat":
        chunks[place:place] = [chunks[place]] * rng.choice([1, 2, 300])
    elif action == "remove":
        del chunks[place]
    elif action == "order":
        rng.shuffle(chunks)
    elif action == "samples":
        chunks[-2:-1] = [(b"IDAT", zlib.compress(bytes(rng.choice([0, 10, 10**6]))))]
    else:
        name = rng.choice(
            [b"tEXt", b"zTXt", b"iTXt", b"iCCP", b"eXIf", b"gAMA", b"tRNS", b"acTL", b"fcTL", b"PLTE", b"xx\x1bx"]
        )
        packed = packed_zeros() if action == "bomb" else zlib.compress(rng.choice(_TEXTS))
        chunks.insert(
            1, (name, rng.choice([b"", b"Title\0", b"a\0\0", b"a\0\1\0\0\0"]) + rng.choice([packed, *_TEXTS]))
        )
    return content[:8] + b"".join(map(_png_chunk, chunks))


def _png_chunks(content: bytes) -> list[tuple[bytes, bytes]]:
    place, chunks = 8, []
    while place + 8 <= len(content):
        length = int.from_bytes(content[place : place + 4], "big")
        chunks.append((content[place + 4 : place + 8], content[place + 8 : place + 8 + length]))
        place += 12 + length
    return chunks


def _png_chunk(chunk: tuple[bytes, bytes]) -> bytes:
    body = b"".join(chunk)
    return struct.pack(">I", len(chunk[1])) + body + struct.pack(">I", zlib.crc32(body))


def mutated_tiff(rng: random.Random, content: bytes, traps: Traps) -> bytes:
    """A TIFF with an entry of its first directory changed: tag, type, count or value; or the directory's end."""
    changed = bytearray(content)
    order, big = ">" if content[:2] == b"MM" else "<", content[2:4] in (b"+\0", b"\0+")
    link, count, size = ("Q", "Q", 20) if big else ("I", "H", 12)
    (start,) = struct.unpack_from(order + link, changed, 8 if big else 4)
    (entries,) = struct.unpack_from(order + count, changed, start)
    first = start + struct.calcsize("=" + count)
    for _ in range(rng.randint(1, 2)):
        entry = first + size * rng.randrange(entries)
        tag, kind, many, value = struct.unpack_from(f"{order}HH{link}{link}", changed, entry)
        field = rng.choice(["tag", "kind", "many", "value", "value", "value", "next"])
        largest = 2 ** (64 if big else 32)
        if field == "tag":
            tag = rng.choice(
                [256, 257, 258, 259, 262, 270, 273, 277, 278, 279, 317, 320, 322, 330, 338, 339, 34665, 65535]
            )
        elif field == "kind":
            kind = rng.choice([0, 1, 2, 3, 4, 5, 7, 11, 12, 13, 16, 255])
        elif field == "many":
            many = rng.choice([*_SIZES, 2**40]) % largest
        elif field == "value":
            value = (
                rng.choice([*_SIZES, start, len(content), 5, 7, 8, 34925, 50000, 34712, rng.randrange(2**16)]) % largest
            )
        else:
            struct.pack_into(order + link, changed, first + size * entries, rng.choice([start, 0, 8, len(content)]))
        struct.pack_into(f"{order}HH{link}{link}", changed, entry, tag, kind, many, value)
    return bytes(changed)


def mutated_jpeg(rng: random.Random, content: bytes, traps: Traps) -> bytes:
    """A JPEG whose segments are changed, repeated, removed or in another order, with lengths that fit."""
    segments, rest = _jpeg_segments(content)
    place = rng.randrange(len(segments))
    action = rng.choice(["size", "change", "repeat", "remove", "order", "add"])
    if action == "size":
        for i, (mark, data) in enumerate(segments):
            if 0xC0 <= mark <= 0xCF and mark not in (0xC4, 0xC8, 0xCC):
                sides = [rng.choice(_SIZES) % 2**16 for _ in range(2)]
                segments[i] = (mark, data[:1] + struct.pack(">HH", *sides) + data[5:])
    elif action == "change":
        mark, data = segments[place]
        changed = bytearray(data)
        for _ in range(rng.randint(1, 4) if changed else 0):
            changed[rng.randrange(len(changed))] = rng.choice([0, 1, 3, 127, 255, rng.randrange(256)])
        segments[place] = (mark, bytes(changed))
    elif action == "repeat":
        segments[place:place] = [segments[place]] * rng.choice([1, 2, 200])
    elif action == "remove":
        del segments[place]
    elif action == "order":
        rng.shuffle(segments)
    else:
        head = rng.choice(
            [
                b"",
                b"Exif\0\0",
                b"Exif\0\0II*\0\x08\0\0\0\xff\xff",
                b"ICC_PROFILE\0\1\1",
                b"MPF\0",
                b"http://ns.adobe.com/xap/1.0/\0",
            ]
        )
        segments.insert(place, (rng.choice([0xE0, 0xE1, 0xE2, 0xED, 0xEE, 0xFE]), head + rng.choice(_TEXTS)[:60_000]))
    parts = [bytes((0xFF, mark)) + struct.pack(">H", len(data) + 2) + data for mark, data in segments]
    return b"\xff\xd8" + b"".join(parts) + rest


def _jpeg_segments(content: bytes) -> tuple[list[tuple[int, bytes]], bytes]:
    """The segments ahead of the first scan, and the rest with the scan's own head."""
    place, segments = 2, []
    while content[place + 1] != 0xDA:
        length = int.from_bytes(content[place + 2 : place + 4], "big")
        segments.append((content[place + 1], content[place + 4 : place + 2 + length]))
        place += 2 + length
    return segments, content[place:]


Mutation = Callable[[random.Random, bytes, Traps], bytes]

STRUCTURES: dict[str, Mutation] = {
    ".npy": mutated_npy,
    ".csv": mutated_table,
    ".png": mutated_png,
    ".tif": mutated_tiff,
    ".dng": mutated_tiff,
    ".jpg": mutated_jpeg,
}
"""Mutations of structure, by the end of the file's name."""
