"""Sessions through Beam: arrivals and watermarks by TestStream, and every row held to what batch gives."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing import test_stream
from product import rows, run, write_lines
from streaming_job import stamped

from pipeline.options import RunOptions
from pipeline.streaming.graph import StreamPlan, written_parcels
from pipeline.streaming.options import StreamOptions
from pipeline.streaming.parcels import opened
from pipeline.streaming.reading import by_lane, read_batch
from pipeline.streaming.run import stream_plan
from schemas.arrow import STREAMED
from schemas.parcels import LaneParcel, RejectsParcel, RowsParcel
from transforms.record_tables import unpacked_tables
from transforms.streamed import decoded_values

GAP, LATENESS = 10, 30
START = 1_700_000_000


class Arrives:
    """Records that arrive together; seconds are event time, counted from START."""

    def __init__(self, *lines: dict[str, Any] | bytes) -> None:
        self.lines = lines


class Watermark:
    """Event time has come so far."""

    def __init__(self, seconds: int) -> None:
        self.seconds = seconds


def said(seconds: float, thread: str = "t", text: str = "hi", **fields: Any) -> dict[str, Any]:
    return {
        "_type": "chat:Message",
        "id": f"{thread}@{seconds}",
        "threadId": thread,
        "text": text,
        "author": {"userName": "sam", "isMe": False},
        "metadata": {"dateSent": stamped(START + seconds)},
        "attachments": [],
        **fields,
    }


class Collected(beam.DoFn):
    """Keeps each element in a file: the runner pickles what it runs."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def process(self, element: tuple[int, bytes]) -> None:
        count = len(list(Path(self._folder).iterdir()))
        (Path(self._folder) / f"{count:06d}").write_bytes(element[1])


def plan(**options: Any) -> StreamPlan:
    stream = StreamOptions(
        watch=("in/*",), gap_ms=GAP * 1000, lateness_ms=LATENESS * 1000, commit_ms=100, lanes=2
    )
    given = {"input": ("in/*",), "output": "out", "dataset": "both", **options}
    return stream_plan(RunOptions(**given), stream)


class Played:
    """What a stream of events came to."""

    def __init__(self, folder: Path, events: Iterable[Arrives | Watermark], **options: Any) -> None:
        self.options = options
        self.folder = folder
        self.lines: list[dict[str, Any] | bytes] = []
        self.parcels = self._play(list(events))
        self.given = {name: self._rows(name) for name in ("training", "replay")}
        self.rejects = [
            row
            for parcel in self.parcels
            if isinstance(parcel, RejectsParcel)
            for row in unpacked_tables([parcel.table], STREAMED).to_pylist()
        ]
        lanes = [parcel for parcel in self.parcels if isinstance(parcel, LaneParcel)]
        self.late = sum(lane.late for lane in lanes)
        self.too_late = sum(lane.too_late for lane in lanes)

    def _play(self, events: list[Arrives | Watermark]) -> list[Any]:
        elements = test_stream.TestStream().advance_watermark_to(START - 1)
        for event in events:
            if isinstance(event, Watermark):
                elements = elements.advance_watermark_to(START + event.seconds)
                continue
            for line in event.lines:
                packed, moment = self._packed(line)
                elements = elements.add_elements(
                    [beam.window.TimestampedValue(one, moment) for one in packed]
                )
        folder = self.folder / "parcels"
        folder.mkdir(parents=True)
        runner = "apache_beam.runners.direct.direct_runner.BundleBasedDirectRunner"
        with beam.Pipeline(runner, options=PipelineOptions(["--streaming"])) as pipeline:
            records = pipeline | elements.advance_watermark_to_infinity()
            parcels = written_parcels(records, plan(**self.options))
            (tuple(parcels) | "All" >> beam.Flatten() | "Keep" >> beam.ParDo(Collected(str(folder))))
        return [opened(path.read_bytes()) for path in sorted(folder.iterdir())]

    def _packed(self, line: dict[str, Any] | bytes) -> tuple[list[tuple[int, bytes]], float]:
        at = len(self.lines)
        self.lines.append(line)
        data = line if isinstance(line, bytes) else json.dumps(line).encode()
        table, rejects = decoded_values([data], [at], "auto")
        batch = read_batch("in/a.jsonl", [table], rejects, START * 1000)
        moment = START if not batch.table.num_rows else batch.table["event_ms"][0].as_py() / 1000
        return list(by_lane(batch, 2)), moment

    def _rows(self, dataset: str) -> list[dict[str, Any]]:
        return [
            row
            for parcel in self.parcels
            if isinstance(parcel, RowsParcel) and parcel.dataset == dataset
            for row in unpacked_tables([parcel.table], STREAMED).to_pylist()
        ]

    def sessions(self, dataset: str = "training") -> list[tuple[str, int, int, list[str]]]:
        """(thread, session, version, seconds of its messages), by thread, session, version"""
        return sorted(
            (
                row["thread_id"],
                row["session"],
                row["version"],
                [one.rpartition("@")[2] for one in row["message_ids"]],
            )
            for row in self.given[dataset]
        )

    def check_rows_are_those_of_batch(self) -> None:
        """Each row, but for its version and session, is what batch gives for the same messages."""
        for dataset, given in self.given.items():
            for number, row in enumerate(one for one in given if one["message_count"]):
                ids = {*row["message_ids"], *(repair["message_id"] for repair in row["repairs"])}
                same = [line for line in self.lines if isinstance(line, dict) and line["id"] in ids]
                folder = self.folder / f"{dataset}{number}"
                folder.mkdir()
                archive = write_lines(folder / "a.jsonl", same)
                run(folder / "out", "--input", archive, "--dataset", "both", "--quiet")
                (expected,) = rows(folder / "out", dataset)
                if dataset == "replay":
                    row["messages"] = [json.loads(one) for one in row["messages"]]
                assert {name: row[name] for name in expected} == expected


@pytest.fixture
def play(tmp_path: Path) -> Any:
    def played(*events: Arrives | Watermark, **options: Any) -> Played:
        one = Played(tmp_path, events, **options)
        one.check_rows_are_those_of_batch()
        return one

    return played


def test_out_of_order(play: Any) -> None:
    done = play(Arrives(said(8), said(2), said(5)), Watermark(100))
    assert done.sessions() == done.sessions("replay") == [("t", 1, 1, ["2", "5", "8"])]
    assert done.late == 0


def test_a_gap_exactly_at_the_edge_parts_two_sessions(play: Any) -> None:
    done = play(Arrives(said(0), said(9.999), said(20)), Watermark(100))
    assert done.sessions() == [("t", 1, 1, ["0", "9.999"]), ("t", 2, 1, ["20"])]
    shorter = 19.998
    assert shorter - 9.999 < GAP


def test_a_session_is_over_exactly_at_its_end(play: Any) -> None:
    """The message at 10 comes when event time has come to 9.999: it is a session of its own, not late."""
    done = play(Arrives(said(0)), Watermark(9), Arrives(said(9.5)), Watermark(19), Arrives(said(19.4)))
    assert done.sessions() == [("t", 1, 1, ["0", "9.5", "19.4"])]
    assert done.late == 0


def test_late_inside_the_allowance_gives_the_session_again(play: Any) -> None:
    done = play(Arrives(said(0), said(4)), Watermark(20), Arrives(said(2)), Watermark(100))
    assert done.sessions() == [("t", 1, 1, ["0", "4"]), ("t", 1, 2, ["0", "2", "4"])]
    assert (done.late, done.too_late) == (1, 0)


def test_late_beyond_the_allowance_is_a_session_of_its_own(play: Any) -> None:
    done = play(Arrives(said(0), said(4)), Watermark(4 + GAP + LATENESS), Arrives(said(2)), Watermark(200))
    assert done.sessions() == [("t", 1, 1, ["0", "4"]), ("t", 2, 1, ["2"])]
    assert (done.late, done.too_late) == (1, 1)


def test_just_inside_the_allowance(play: Any) -> None:
    done = play(Arrives(said(0), said(4)), Watermark(3 + GAP + LATENESS), Arrives(said(2)), Watermark(200))
    assert done.sessions() == [("t", 1, 1, ["0", "4"]), ("t", 1, 2, ["0", "2", "4"])]


def test_a_late_message_joins_two_sessions(play: Any) -> None:
    done = play(Arrives(said(0), said(12)), Watermark(30), Arrives(said(6)), Watermark(100))
    assert done.sessions() == [
        ("t", 1, 1, ["0"]),
        ("t", 1, 2, ["0", "6", "12"]),
        ("t", 2, 1, ["12"]),
        ("t", 2, 2, []),
    ]


def test_a_late_message_reopens_a_session(play: Any) -> None:
    done = play(
        Arrives(said(0)), Watermark(12), Arrives(said(8)), Watermark(15), Arrives(said(16)), Watermark(100)
    )
    assert done.sessions() == [("t", 1, 1, ["0"]), ("t", 1, 2, ["0", "8", "16"])]


def test_a_thread_that_never_falls_silent(play: Any) -> None:
    talk = [event for at in range(0, 200, 5) for event in (Arrives(said(at)), Watermark(at + 1))]
    done = play(*talk, Arrives(said(50, "other")))
    everything = [str(at) for at in range(0, 200, 5)]
    assert done.sessions() == [("other", 1, 1, ["50"]), ("t", 1, 1, everything)]


def test_empty_windows(play: Any) -> None:
    done = play(Watermark(50), Watermark(500), Arrives(said(500)), Watermark(5000), Watermark(50_000))
    assert done.sessions() == [("t", 1, 1, ["500"])]
    assert len([one for one in done.parcels if isinstance(one, RowsParcel)]) == 2


def test_nothing_at_all(play: Any) -> None:
    assert play(Watermark(50), Watermark(500)).parcels == []


def test_two_threads_that_interleave(play: Any) -> None:
    lines = [said(at, thread) for at in range(0, 40, 3) for thread in ("a", "b")]
    lines += [said(60, "a"), said(45, "b")]
    done = play(Arrives(*lines), Watermark(30), Arrives(said(31, "c")), Watermark(200))
    everything = [str(at) for at in range(0, 40, 3)]
    assert done.sessions() == [
        ("a", 1, 1, everything),
        ("a", 2, 1, ["60"]),
        ("b", 1, 1, [*everything, "45"]),
        ("c", 1, 1, ["31"]),
    ]


def test_a_poisoned_record_in_between(play: Any) -> None:
    done = play(Arrives(said(0), b'{"threadId": "t", ', said(1, text=None), said(2)), Watermark(100))
    assert done.sessions() == [("t", 1, 1, ["0", "2"])]


def test_a_call_that_is_pending_when_its_session_is_over(play: Any) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    lines = [
        {"threadId": "t", "id": "u@0", "role": "user", "content": "?", "dateSent": stamped(START)},
        {
            "threadId": "t",
            "id": "a@1",
            "role": "assistant",
            "content": "",
            "toolCalls": [call],
            "dateSent": stamped(START + 1),
        },
    ]
    assert play(Arrives(*lines), Watermark(100)).sessions("replay") == [("t", 1, 1, ["0"])]


def test_a_pending_call_is_kept_where_batch_keeps_it(tmp_path: Path) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    lines = [
        {"threadId": "t", "id": "u@0", "role": "user", "content": "?", "dateSent": stamped(START)},
        {"threadId": "t", "id": "a@1", "role": "assistant", "content": "", "toolCalls": [call]},
    ]
    lines[1]["dateSent"] = stamped(START + 1)
    done = Played(tmp_path, [Arrives(*lines), Watermark(100)], keep_pending_call=True)
    assert done.sessions("replay") == [("t", 1, 1, ["0", "1"])]


def test_a_session_that_says_nothing_any_more_is_given_empty(tmp_path: Path) -> None:
    """The edit that comes late leaves nothing of the only message."""
    edited = said(0, text=" ")
    edited["metadata"]["editedAt"] = stamped(START + 1)
    done = Played(tmp_path, [Arrives(said(0)), Watermark(20), Arrives(edited), Watermark(100)])
    assert done.sessions("replay") == [("t", 1, 1, ["0"]), ("t", 1, 2, [])]
    assert Counter(one["reason"] for one in done.rejects if one["dataset"] == "replay") == {"no_turn_left": 1}
