"""Where every record and every message went: the one place where reasons are counted.

A tally is a flat mapping from a key to a number, so that tallies add up by key, in any order:

    read/records, read/messages, read/bytes, read/blank …        what reading saw
    rejected/REASON/records …                                    rejected before grouping
    DATASET/kept/records, DATASET/superseded/…, DATASET/left_out/REASON/…, DATASET/rejected/REASON/…
    DATASET/rows, DATASET/repairs/REASON
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from schemas.formats import Dataset
from schemas.reasons import Reject, Repair
from schemas.records import Record
from transforms.convert import Outcome
from transforms.threads import Thread

Tally = Counter[str]


def tally_reject(tally: Tally, reason: Reject, messages: int = 1) -> None:
    """Counts a record that was rejected before grouping, for every dataset."""
    tally[f"rejected/{reason.value}/records"] += 1
    tally[f"rejected/{reason.value}/messages"] += messages


def fates(thread: Thread, outcome: Outcome) -> tuple[Tally, list[tuple[Record, Reject, str]]]:
    """What became of the records and messages of one thread in one dataset, and its rejects.

    Keys lack the dataset's name. A record is where most can be said for it: kept if any message of
    it is, else rejected if any message was, else left out.
    """
    tally: Tally = Counter()
    rejects: list[tuple[Record, Reject, str]] = []
    for record in thread.superseded:
        _count(tally, "superseded", record.messages)
    for record in thread.misplaced:
        _reject(tally, rejects, record, Reject.MIXED_KINDS, "the thread is mostly of the other vocabulary")
    if outcome.row is None:
        failed = {failure.source: failure for failure in outcome.failures}
        detail = no_turn_detail(Counter(left.reason for left in outcome.left_out))
        for position, record in enumerate(thread.records):
            failure = failed.get(position)
            if failure is not None:
                _reject(tally, rejects, record, failure.reason, failure.detail)
            else:
                _reject(tally, rejects, record, Reject.NO_TURN_LEFT, detail)
        return tally, rejects
    tally["rows"] += 1
    for note in outcome.row.repairs:
        tally[f"repairs/{note.reason.value}"] += 1
    if not outcome.left_out and not outcome.failures:
        tally["kept/records"] += len(thread.records)
        tally["kept/messages"] += len(thread.messages)
        return tally, rejects
    _count_each(tally, rejects, thread, outcome)
    return tally, rejects


def no_turn_detail(reasons: Mapping[Repair, int]) -> str:
    """Why a thread has no row: what was left out of it, by reason."""
    if not reasons:
        return "no user and no assistant message in the thread"
    shown = ", ".join(f"{count} {reason.value}" for reason, count in sorted(reasons.items()))
    return f"no user and no assistant message is left ({shown})"


def count_left_out(tally: Tally, reason: Repair) -> None:
    """Counts a record of one message that was left out."""
    _count(tally, f"left_out/{reason.value}", 1)


def _count_each(
    tally: Tally, rejects: list[tuple[Record, Reject, str]], thread: Thread, outcome: Outcome
) -> None:
    left_out: dict[int, Repair] = {left.source: left.reason for left in outcome.left_out}
    failures = {failure.source: failure for failure in outcome.failures}
    kept_of: Counter[int] = Counter()
    reasons_of: dict[int, Repair] = {}
    for position in range(len(thread.messages)):
        owner = position if thread.owners is None else thread.owners[position]
        if position in failures:
            continue
        reason = left_out.get(position)
        if reason is None:
            kept_of[owner] += 1
            tally["kept/messages"] += 1
        else:
            reasons_of.setdefault(owner, reason)
            tally[f"left_out/{reason.value}/messages"] += 1
    for owner, record in enumerate(thread.records):
        if kept_of[owner]:
            tally["kept/records"] += 1
        elif owner in reasons_of:
            tally[f"left_out/{reasons_of[owner].value}/records"] += 1
        elif owner in failures:
            failure = failures[owner]
            _reject(tally, rejects, record, failure.reason, failure.detail)
        else:
            tally[f"left_out/{Repair.BLANK_MESSAGE.value}/records"] += 1


def _count(tally: Tally, key: str, messages: int) -> None:
    tally[f"{key}/records"] += 1
    tally[f"{key}/messages"] += messages


def _reject(
    tally: Tally,
    rejects: list[tuple[Record, Reject, str]],
    record: Record,
    reason: Reject,
    detail: str,
) -> None:
    _count(tally, f"rejected/{reason.value}", record.messages)
    rejects.append((record, reason, detail))


def prefixed(tally: Tally, dataset: Dataset) -> Tally:
    """The tally of one dataset, its name before every key."""
    return Counter({f"{dataset.value}/{key}": count for key, count in tally.items()})


def sums(tally: Mapping[str, int], dataset: Dataset, unit: str) -> dict[str, Any]:
    """The ledger of one dataset in `records` or `messages`: read, kept, superseded, left out, rejected."""
    own = f"{dataset.value}/"
    return {
        "read": tally.get(f"read/{unit}", 0),
        "kept": tally.get(f"{own}kept/{unit}", 0),
        "superseded": tally.get(f"{own}superseded/{unit}", 0),
        "left_out": _by_reason(tally, f"{own}left_out/", unit),
        "rejected": dict(
            sorted(
                (
                    Counter(_by_reason(tally, "rejected/", unit))
                    + Counter(_by_reason(tally, f"{own}rejected/", unit))
                ).items()
            )
        ),
    }


def imbalance(ledger: Mapping[str, Any]) -> int:
    """How many more were read than ended somewhere; 0 where the sums add up."""
    ended = ledger["kept"] + ledger["superseded"]
    ended += sum(ledger["left_out"].values()) + sum(ledger["rejected"].values())
    return int(ledger["read"] - ended)


def _by_reason(tally: Mapping[str, int], prefix: str, unit: str) -> dict[str, int]:
    suffix = f"/{unit}"
    return {
        key[len(prefix) : -len(suffix)]: count
        for key, count in sorted(tally.items())
        if key.startswith(prefix) and key.endswith(suffix) and count
    }
