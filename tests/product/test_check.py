"""`threadloom check`: convicts what a provider rejects, in any vocabulary, and streams."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from product import ARCHIVES, FIVE, environment, here, run, write_lines

from schemas.violations import Violation
from transforms.check.history import broken_rules
from transforms.providers import RULES, Provider


def user(text: str = "q") -> dict[str, Any]:
    return {"role": "user", "content": text}


def says(text: str = "fine") -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def caller(*ids: str, text: Any = None, arguments: str = "{}") -> dict[str, Any]:
    calls = [
        {"id": one, "type": "function", "function": {"name": "f", "arguments": arguments}} for one in ids
    ]
    return {"role": "assistant", "content": text, "tool_calls": calls}


def result(call_id: str, name: str | None = "f") -> dict[str, Any]:
    message = {"role": "tool", "content": "ok", "tool_call_id": call_id}
    return message if name is None else {**message, "name": name}


SYSTEM = {"role": "system", "content": "s"}
A = "abcdefghi"

# A history, and who must convict it of what: the table of providers, row by row.
TABLE: list[tuple[str, list[Any], str, str]] = [
    ("a call without a result", [user(), caller(A), says()], "ORAGBM", "call_without_result"),
    ("a result without a call", [user(), result(A), says()], "ORAGBM", "result_without_call"),
    ("a result before its call", [user(), result(A), caller(A)], "ORAGBM", "result_without_call"),
    ("a result behind a user", [user(), caller(A), user(), result(A)], "OAGBM", "result_away_from_call"),
    ("two results for one id", [user(), caller(A), result(A), result(A)], "ORAGBM", "second_result"),
    (
        "an id used again",
        [user(), caller(A), result(A), says(), user(), caller(A), result(A)],
        "RAB",
        "call_id_reused",
    ),
    ("an empty id", [user(), caller(""), result("")], "ORAGBM", "call_id_refused"),
    ("41 characters", [user(), caller("a" * 41), result("a" * 41)], "OM", "call_id_refused"),
    ("65 characters", [user(), caller("a" * 65), result("a" * 65)], "ORABM", "call_id_refused"),
    ("a dot in an id", [user(), caller("a.bcdefgh"), result("a.bcdefgh")], "ABM", "call_id_refused"),
    ("no tool name", [user(), caller(A), result(A, None)], "G", "result_without_name"),
    ("a system message later", [user(), says(), SYSTEM, user()], "AGBM", "system_not_leading"),
    ("a blank text", [user(), says(), user(" ")], "AGB", "blank_text"),
    ("an empty text", [user(), says(""), user()], "AGB", "blank_text"),
    ("an assistant first", [says(), user()], "ABM", "first_not_user"),
    ("a call first", [caller(A), result(A), user()], "G", "call_before_user"),
    ("a user twice", [user(), user(), says()], "B", "same_role_twice"),
    ("an assistant twice", [user(), says(), says()], "B", "same_role_twice"),
    ("a user behind a result", [user(), caller(A), result(A), user()], "M", "user_behind_result"),
    ("arguments a list", [user(), caller(A, arguments="[1]"), result(A)], "ORAGBM", "arguments_not_object"),
    ("arguments no JSON", [user(), caller(A, arguments="{"), result(A)], "ORAGBM", "arguments_not_object"),
    ("a system message alone", [SYSTEM], "ORAGBM", "empty_history"),
    ("a reasoning message", [user(), {"role": "reasoning", "content": "x"}], "ORAGBM", "unreadable_message"),
]
LETTERS = dict(zip("ORAGBM", Provider, strict=True))


@pytest.mark.parametrize(("name", "history", "convicted_by", "rule"), TABLE, ids=lambda one: str(one)[:30])
def test_each_row_of_the_table(name: str, history: list[Any], convicted_by: str, rule: str) -> None:
    for letter, provider in LETTERS.items():
        found = {one.violation.value for one in broken_rules(history, RULES[provider])}
        assert (rule in found) == (letter in convicted_by), f"{provider}: {found}"


@pytest.mark.parametrize("provider", list(Provider), ids=str)
def test_a_history_that_is_fine(provider: Provider) -> None:
    history = [
        SYSTEM,
        user(),
        caller("abcdefgh1", "abcdefgh2", text=""),
        result("abcdefgh1"),
        result("abcdefgh2"),
        says(),
        user(),
    ]
    assert broken_rules(history, RULES[provider], as_request=True) == []


def test_rules_of_a_request() -> None:
    history = [user(), says("fine ")]
    for provider in Provider:
        found = [one.violation for one in broken_rules(history, RULES[provider], as_request=True)]
        assert broken_rules(history, RULES[provider]) == []
        ends = provider not in (Provider.OPENAI_CHAT, Provider.OPENAI_RESPONSES)
        assert (Violation.ENDS_WITH_ASSISTANT in found) == ends
        spaced = provider in (Provider.ANTHROPIC, Provider.BEDROCK_CONVERSE)
        assert (Violation.TRAILING_SPACE in found) == spaced


def test_user_texts_right_behind_results_are_one_turn_with_them() -> None:
    history = [user(), caller(A), result(A), user("and?"), says()]
    assert broken_rules(history, RULES[Provider.BEDROCK_CONVERSE]) == []


def checked(*arguments: object, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code, said = here("check", *arguments)
    return code, capsys.readouterr().out + said


class TestTheCommand:
    def test_our_own_rows_pass_for_their_provider(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        inputs = [argument for pattern in FIVE for argument in ("--input", ARCHIVES / pattern)]
        for provider in Provider:
            output = tmp_path / provider
            run(output, *inputs, "--dataset", "replay", "--provider", provider, "--quiet")
            code, said = checked(output, "--provider", provider, capsys=capsys)
            assert code == 0, said

    def test_upstream_rows_do_not(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        arguments = ["--input", ARCHIVES / FIVE[4], "--dataset", "replay", "--guards", "upstream"]
        run(tmp_path / "out", *arguments)
        code, said = checked(tmp_path / "out", capsys=capsys)
        assert code == 1
        assert "anthropic" in said
        assert "call_id_reused 26" in said

    @pytest.mark.parametrize("shape", ["openai", "langchain", "agui"])
    def test_any_vocabulary_in_parquet_and_json_lines(
        self, tmp_path: Path, shape: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        histories = {
            "openai": [user(), caller("c1")],
            "langchain": [
                {"type": "human", "data": {"content": "q"}},
                {
                    "type": "ai",
                    "data": {"content": "", "tool_calls": [{"id": "c1", "name": "f", "args": {}}]},
                },
            ],
            "agui": [user(), {"role": "assistant", "toolCalls": [call]}],
        }
        broken, fine = histories[shape], histories[shape][:1]
        write_lines(tmp_path / "a.jsonl", [{"thread_id": "bad", "messages": broken}, fine])
        texts = [[json.dumps(message) for message in one] for one in (broken, fine)]
        pq.write_table(pa.table({"messages": texts, "thread_id": ["bad", "good"]}), tmp_path / "b.parquet")
        for name in ("a.jsonl", "b.parquet"):
            code, said = checked(tmp_path / name, "--provider", "gemini", "--json", capsys=capsys)
            assert code == 1
            row, sums = [json.loads(line) for line in said.splitlines()]
            assert (row["row"], row["thread_id"]) == (0, "bad")
            assert [one["violation"] for one in row["broken"]] == ["call_without_result"]
            assert sums == {
                "rows": 2,
                "providers": {"gemini": {"broken_rows": 1, "rules": {"call_without_result": 1}}},
            }

    def test_struct_columns(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        messages = [[{"role": "user", "content": "q", "tool_call_id": None}]]
        pq.write_table(pa.table({"messages": messages}), tmp_path / "a.parquet")
        assert checked(tmp_path, capsys=capsys)[0] == 0

    def test_rubbish_is_broken_and_not_a_crash(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        lines = [b"rubbish", b"5", b'{"messages":5}', b'{"messages":[5,null]}', b"[]", b"[" * 5000]
        write_lines(tmp_path / "a.jsonl", lines)
        code, said = checked(tmp_path / "a.jsonl", "--provider", "anthropic", "--json", capsys=capsys)
        assert code == 1
        assert json.loads(said.splitlines()[-1])["providers"]["anthropic"]["broken_rows"] == 6

    def test_usage(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert checked(tmp_path / "none", capsys=capsys)[0] == 2
        assert checked(tmp_path, "--provider", "acme", capsys=capsys)[0] == 2
        assert "--as_request" in checked(tmp_path, "--as_requst", capsys=capsys)[1]
        pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
        code, said = checked(tmp_path, capsys=capsys)
        assert (code, "no column `messages`" in said) == (1, True)

    def test_memory_does_not_grow_with_the_dataset(self, tmp_path: Path) -> None:
        line = json.dumps({"messages": [user("x" * 1000), says("y" * 1000)] * 5}).encode() + b"\n"
        peaks = []
        for rows in (500, 20_000):
            path = tmp_path / f"{rows}.jsonl"
            with open(path, "wb") as lines:
                for _ in range(rows):
                    lines.write(line)
            code = (
                "import resource, sys\nfrom pipeline.cli import main\n"
                f"code = main(['check', {str(path)!r}, '--provider', 'anthropic'])\n"
                "print(code, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
            )
            done = subprocess.run(
                [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True
            )
            peaks.append(int(done.stdout.split()[-1]))
        # 200 MB of rows against 5 MB: a reader that kept them would need that much more.
        assert peaks[1] < peaks[0] + 30_000
