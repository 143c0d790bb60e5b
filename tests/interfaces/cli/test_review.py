"""`byheart review`: the queue on a terminal and as JSON."""

import json
import re

from tests.interfaces.cli.conftest import Run


def test_review_lists_items_with_reason_and_commands(run: Run) -> None:
    run("save", "The guest password changes soon.", "--ttl-days", "3", "--kind", "fact")
    run("save", "The API listens on port 8080.", "--kind", "fact")
    run("save", "The API listens on port 8081.", "--kind", "fact")
    shown = run("review")
    assert "contradiction" in shown.out
    assert "expires in" in shown.out
    assert "byheart supersede mem_" in shown.out
    assert "byheart update mem_" in shown.out
    assert "2 items: 1 contradiction, 1 expiring" in shown.err
    only = json.loads(run("review", "--reason", "expiring", "--json").out)
    assert [each["reason"] for each in only["items"]] == ["expiring"]
    assert only["counts"]["contradiction"] == 1
    assert only["items"][0]["actions"] == ["extend", "keep", "forget"]


def test_review_of_a_tidy_store_says_so(run: Run) -> None:
    run("save", "The sky is blue.")
    assert run("review").out == "Nothing needs a look.\n"


def test_the_memory_saved_later_is_offered_to_replace_the_earlier(run: Run) -> None:
    old = run("save", "The API listens on port 8080.", "--kind", "fact").out.strip()
    new = run("save", "The API listens on port 8081.", "--kind", "fact").out.strip()
    assert f"byheart supersede {old} {new}\n" in run("review").out


def test_a_terminal_names_items_by_short_ids_on_one_line(run: Run, terminal: Run) -> None:
    for port in (8080, 8081):
        run("save", f"The API listens on port {port}.", "--kind", "fact")
    shown = re.sub(r"\x1b\[[0-9;]*m", "", terminal("review").out)
    [keep] = [line.split() for line in shown.splitlines() if "review keep" in line]
    assert len(keep[-1]) < 60
    assert "kept" in run(*keep[1:]).out
    assert run("review").out == "Nothing needs a look.\n"
    run("review", "unkeep", keep[-1])
    assert "contradiction" in run("review").out


def test_an_item_is_kept_and_listed_again(run: Run) -> None:
    run("save", "The guest password changes soon.", "--ttl-days", "3")
    [item] = json.loads(run("review", "--json").out)["items"]
    assert f"byheart review keep {item['item_id']}" in run("review").out
    assert run("review", "keep", item["item_id"]).out.startswith("✓  kept")
    assert run("review").out == "Nothing needs a look.\n"
    run("review", "unkeep", item["item_id"])
    assert json.loads(run("review", "--json").out)["items"] == [item]
