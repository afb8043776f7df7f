"""All or nothing: a run's files get their final names together, and `_SUCCESS` is the last of all.

Until here every file of the run waits under `_temporary`. The sums are checked first; then the
earlier result, if any, loses its `_SUCCESS`, the files move, and what the new manifest does not
name goes. On object stores a rename is a copy: a file is whole under its final name there too.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import apache_beam as beam
import msgspec
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems
from apache_beam.pvalue import PCollection

from pipeline.card import dataset_card
from pipeline.inputs import InputFile
from pipeline.manifest import manifest, manifest_bytes
from pipeline.writing import TEMPORARY, Receipt, ShardFiles, file_problem
from schemas.errors import JobError
from transforms.convert import Target

SUCCESS = "_SUCCESS"
MANIFEST = "manifest.json"
CARD = "README.md"
FOLDERS = ("training", "replay", "rejected")


class Committing(msgspec.Struct, frozen=True):
    """What a commit needs to know of its run."""

    files: ShardFiles
    inputs: list[InputFile]
    targets: list[Target]
    options: dict[str, Any]


class Commit(beam.PTransform):  # type: ignore[misc]
    """(receipts, tallies) -> the committed manifest. Raises JobError, with nothing committed."""

    def __init__(self, committing: Committing) -> None:
        super().__init__()
        self._committing = committing

    def expand(self, parts: tuple[PCollection, PCollection]) -> PCollection:
        receipts, tallies = parts
        return (
            (
                receipts | "Receipts" >> beam.Map(_of_receipt),
                tallies | "Tallies" >> beam.Map(_of_tally),
            )
            | "All of the run" >> beam.Flatten()
            | "Together" >> beam.GroupByKey()
            | "Commit" >> beam.ParDo(_Commit(self._committing))
        )


def _of_receipt(receipt: Receipt) -> tuple[int, tuple[str, Any]]:
    return 0, ("receipt", msgspec.to_builtins(receipt))


def _of_tally(tally: Mapping[str, int]) -> tuple[int, tuple[str, Any]]:
    return 0, ("tally", dict(tally))


class _Commit(beam.DoFn):  # type: ignore[misc]
    def __init__(self, committing: Committing) -> None:
        self._committing = committing

    def process(self, element: tuple[int, Iterable[tuple[str, Any]]]) -> Iterator[dict[str, Any]]:
        tally: Counter[str] = Counter()
        receipts: list[Receipt] = []
        for kind, value in element[1]:
            if kind == "receipt":
                receipts.append(msgspec.convert(value, Receipt))
            else:
                tally.update(value)
        receipts.sort(key=lambda receipt: receipt.name)
        run = self._committing
        content = manifest(tally, receipts, run.inputs, run.targets, run.options)
        commit(run.files, receipts, content)
        yield content


def commit(files: ShardFiles, receipts: Sequence[Receipt], content: Mapping[str, Any]) -> None:
    """Moves the files of the run to their names. May be repeated. Raises JobError."""
    output = files.output
    try:
        if not _is_committed(output, content):
            _publish(files, receipts, content)
        delete_present([FileSystems.join(output, TEMPORARY)])
    except JobError:
        raise
    except Exception as error:  # each file system raises errors of its own
        raise JobError(f"cannot commit to {output}: {file_problem(error)}") from error


def _publish(files: ShardFiles, receipts: Sequence[Receipt], content: Mapping[str, Any]) -> None:
    output = files.output
    for receipt in receipts:
        check_present(receipt, output)
    delete_present([FileSystems.join(output, SUCCESS)])
    for folder in FOLDERS:
        make_folder(FileSystems.join(output, folder))
    for receipt in receipts:
        move(receipt.temporary, FileSystems.join(output, *receipt.name.split("/")))
    delete_present(_strangers(output, {receipt.name for receipt in receipts}))
    _drop_empty_folders(output)
    _write_whole(files, CARD, dataset_card(content).encode())
    written = manifest_bytes(content)
    _write_whole(files, MANIFEST, written)
    # Not empty, because an empty object cannot be written to S3: it vouches for the manifest.
    _write_whole(files, SUCCESS, f"{hashlib.sha256(written).hexdigest()}  {MANIFEST}\n".encode())


def has_result(output: str) -> bool:
    """Whether the output holds a committed result."""
    return bool(FileSystems.exists(FileSystems.join(output, SUCCESS)))


def discard(files: ShardFiles) -> None:
    """Takes away what a run that failed left under its temporary folder."""
    delete_present([FileSystems.join(files.output, TEMPORARY, files.run)])
    if "://" not in files.output:
        # Only what is empty then: another run may be writing there.
        with contextlib.suppress(OSError):
            os.rmdir(os.path.join(files.output, TEMPORARY))
            os.rmdir(files.output)


def _is_committed(output: str, content: Mapping[str, Any]) -> bool:
    if not has_result(output):
        return False
    return read_bytes(FileSystems.join(output, MANIFEST)) == manifest_bytes(content)


def read_bytes(path: str) -> bytes:
    """A whole file of any file system that Beam knows."""
    with FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED) as stream:
        return bytes(stream.read())


def check_present(receipt: Receipt, output: str) -> None:
    """Raises JobError unless the file waits, or an earlier attempt at this commit has moved it already."""
    if FileSystems.exists(receipt.temporary):
        return
    final = FileSystems.join(output, *receipt.name.split("/"))
    if FileSystems.exists(final) and hashlib.sha256(read_bytes(final)).hexdigest() == receipt.sha256:
        return
    raise JobError(f"{receipt.temporary} is gone: does another run write to the same output?")


def move(temporary: str, final: str) -> None:
    """Gives a file its final name, unless it has it already. Raises JobError."""
    if FileSystems.exists(temporary):
        FileSystems.rename([temporary], [final])
    elif not FileSystems.exists(final):
        raise JobError(f"{temporary} is gone: does another run write to the same output?")


def _strangers(output: str, names: set[str]) -> list[str]:
    """Parts of an earlier result that the new one does not have."""
    patterns = [FileSystems.join(output, folder, "part-*.parquet") for folder in FOLDERS]
    keep = {FileSystems.join(output, *name.split("/")) for name in names}
    found = [meta.path for result in FileSystems.match(patterns) for meta in result.metadata_list]
    return [path for path in found if path not in keep]


def _write_whole(files: ShardFiles, name: str, content: bytes) -> None:
    temporary = FileSystems.join(files.output, TEMPORARY, files.run, name)
    with FileSystems.create(temporary, compression_type=CompressionTypes.UNCOMPRESSED) as stream:
        stream.write(content)
    FileSystems.rename([temporary], [FileSystems.join(files.output, name)])


def make_folder(path: str) -> None:
    """Makes a local folder where there is none; object stores need none."""
    if "://" not in path and not FileSystems.exists(path):
        FileSystems.mkdirs(path)


def _drop_empty_folders(output: str) -> None:
    """Object stores have no folders; elsewhere an empty one would look like a dataset."""
    if "://" in output:
        return
    for folder in FOLDERS:
        path = FileSystems.join(output, folder)
        if not FileSystems.match([FileSystems.join(path, "*")])[0].metadata_list:
            delete_present([path])


def delete_present(paths: list[str]) -> None:
    """Deletes what is there."""
    for path in paths:
        if "://" in path or FileSystems.exists(path):
            FileSystems.delete([path])
