"""What the script of the pending page needs no browser for, under node with parts of a page."""

import json
import subprocess
from typing import Any

import pytest

from dsportal.look import WEB

SCRIPT = (WEB / "spawn_pending.js").read_text(encoding="utf-8")
# A page whose parts take everything; the test is the hub, which says what happens when.
PAGE = """
const parts = {}, sources = [], refusals = [];
const nothing = () => undefined;
const make = (id) => ({ textContent: id === "spawn-data" ? DATA : "", style: {}, heard: {},
  classList: { add: nothing, remove: nothing }, setAttribute: nothing, append: nothing,
  addEventListener(name, hear) { this.heard[name] = hear; } });
class EventSource {
  static CLOSED = 2;
  constructor() { this.readyState = 1; sources.push(this); }
  close() { this.readyState = EventSource.CLOSED; }
}
const window = { jhdata: {}, location: { reload: nothing } };
const sessionStorage = { getItem: () => null, removeItem: nothing };
const document = { getElementById: (id) => (parts[id] ??= make(id)), createElement: make };
function JHAPI() { this.stop_server = (user, told) => refusals.push(told.error); }
const require = (names, run) => run(null, JHAPI);
const setInterval = nothing;
"""
STORY = """
parts.cancel.heard.click();
sources[0].onmessage({ data: EVENT });
refusals[0]({});
console.log(JSON.stringify(sources.map((one) => one.readyState)));
"""


@pytest.mark.parametrize(
    ("event", "streams"),
    [({"ready": True}, [2, 1]), ({"failed": True}, [2, 1]), ({"progress": 10}, [1])],
)
def test_a_start_that_was_not_cancelled_is_followed_on(event: Any, streams: list[int]) -> None:
    given = {"DATA": json.dumps({"user": "ada", "server": ""}), "EVENT": json.dumps(event)}
    known = "".join(f"const {name} = {json.dumps(text)};" for name, text in given.items())
    done = subprocess.run(
        ["/usr/bin/node", "-"],
        input=f"{{{known}{PAGE}{SCRIPT}{STORY}}}",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout, done.stderr
    assert json.loads(done.stdout) == streams
