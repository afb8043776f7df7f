"""Rejects on their way to their files: packed for the shuffle, and as the table of one shard."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import pyarrow as pa

from schemas.arrow import reject_schema
from schemas.reasons import Reject
from schemas.records import Record, Rejected

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(list[Rejected])


def packed_rejects(rejects: list[Rejected]) -> bytes:
    """The rejects as bytes."""
    return _ENCODER.encode(rejects)


def unpacked_rejects(packed: Iterable[bytes]) -> list[Rejected]:
    """All rejects, by place; of one place those of the whole run first, then by dataset."""
    rejects = [reject for one in packed for reject in _DECODER.decode(one)]
    rejects.sort(key=lambda reject: (reject.place, reject.dataset or "", reject.reason))
    return rejects


def late_reject(record: Record, reason: Reject, detail: str, dataset: str) -> Rejected:
    """The reject of a record that was read well; its raw bytes are what the job carried of it."""
    raw = msgspec.json.encode(record.body)
    return Rejected(record.place, reason, detail, record.thread_id, raw, dataset, record.messages)


def reject_table(rejects: Sequence[Rejected], paths: Sequence[str]) -> pa.Table:
    """The rejects as a table of `reject_schema()`; `paths` are the archive's files, in order."""
    schema = reject_schema()
    if not rejects:
        return schema.empty_table()
    columns = [
        [paths[reject.place.file] for reject in rejects],
        [reject.place.at for reject in rejects],
        [place_unit(paths[reject.place.file]) for reject in rejects],
        [reject.reason.value for reject in rejects],
        [reject.detail for reject in rejects],
        [reject.thread_id for reject in rejects],
        [reject.dataset for reject in rejects],
        [reject.raw for reject in rejects],
    ]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def place_unit(path: str) -> str:
    """What a place in that source counts: rows of Avro and Parquet, bytes of (unpacked) JSON lines, and of a
    broker the offsets, or ids, that it gives its messages.
    """
    if path.startswith(("kafka://", "pubsub://")):
        return "offset" if path.startswith("kafka://") else "id"
    return "row" if path.lower().endswith((".avro", ".parquet")) else "byte"
