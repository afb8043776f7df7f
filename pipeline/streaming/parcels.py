"""Parcels as bytes, keyed so that they all meet."""

from __future__ import annotations

import apache_beam as beam
import msgspec
from apache_beam.pvalue import PCollection

from schemas.parcels import Parcel

# An element that carries nothing: time has passed.
TICK = b""
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Parcel)


def addressed(parcel: Parcel) -> tuple[int, bytes]:
    """The parcel for the one who makes the commits."""
    return 0, _ENCODER.encode(parcel)


def opened(packed: bytes) -> Parcel:
    """The parcel that was packed."""
    found: Parcel = _DECODER.decode(packed)
    return found


class Keyed(beam.PTransform):  # type: ignore[misc]
    """(number, bytes) …, declared as such: state is kept only by keys of a declared type"""

    def expand(self, elements: PCollection) -> PCollection:
        return elements | "As numbers and bytes" >> beam.Map(_same).with_output_types(tuple[int, bytes])


def _same(element: tuple[int, bytes]) -> tuple[int, bytes]:
    return element
