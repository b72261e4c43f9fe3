"""What the script of the pending page needs no browser for, under node with parts of a page."""

import json
import subprocess
from typing import Any

import pytest

from dsportal.look import WEB

SCRIPT = (WEB / "scripts/spawn_pending.js").read_text(encoding="utf-8")
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
const did = [];
const window = { jhdata: {}, location: { href: "here", reload: () => did.push("reload") } };
const sessionStorage = { getItem: () => "1", removeItem: nothing };
class Notification {
  static permission = "granted";
  constructor() { throw new TypeError("Illegal constructor"); }
}
const waiting = [];
const setTimeout = (what) => { waiting.push(what); return what; };
const clearTimeout = (what) => {
  if (waiting.includes(what)) waiting.splice(waiting.indexOf(what), 1);
};
const document = { getElementById: (id) => (parts[id] ??= make(id)), createElement: make,
  hasFocus: () => false };
function JHAPI() { this.stop_server = (user, told) => refusals.push(told.error); }
const require = (names, run) => run(null, JHAPI);
const setInterval = nothing;
const AbortSignal = { timeout: nothing };
"""
CANCELLED = """
parts.cancel.heard.click();
sources[0].onmessage({ data: EVENT });
refusals[0]({});
console.log(JSON.stringify(sources.map((one) => one.readyState)));
"""


READY = """
try { sources[0].onmessage({ data: '{"ready": true}' }); }
catch (error) { did.push(error.message); }
console.log(JSON.stringify(did));
"""
OFFLINE = """
const networks = [false, false, true];
const fetch = async () => {
  if (networks.shift()) return { status: 200 };
  did.push("no network");
  throw new TypeError("Failed to fetch");
};
(async () => {
  sources[0].onerror();
  while (waiting.length) await waiting.shift()();
  console.log(JSON.stringify(did));
})();
"""
SILENT = """
const fetch = async () => ({ status: 200 });
(async () => {
  sources[0].onmessage({ data: '{"progress": 10}' });
  did.push(waiting.length);
  while (waiting.length) await waiting.shift()();
  did.push(sources[0].readyState);
  console.log(JSON.stringify(did));
})();
"""
# The browser's clock is an hour slow, or fast.
CLOCK = """
const at = (seconds) => new Date(Date.now() + 1000 * (OFF + seconds)).toISOString();
const event = { state: "PENDING", now: at(0), since: at(-120), expected: at(1800) };
sources[0].onmessage({ data: JSON.stringify(event) });
const shown = ["progress-waited", "progress-expected"].map((id) => parts[id].textContent);
console.log(JSON.stringify(shown));
"""


def played(story: str, event: Any = None) -> Any:
    """Return what a story tells."""
    given = {"DATA": json.dumps({"user": "ada", "server": ""}), "EVENT": json.dumps(event)}
    known = "".join(f"const {name} = {json.dumps(text)};" for name, text in given.items())
    done = subprocess.run(
        ["/usr/bin/node", "-"],
        input=f"{{{known}{PAGE}{SCRIPT}{story}}}",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("event", "streams"),
    [({"ready": True}, [2, 1]), ({"failed": True}, [2, 1]), ({"progress": 10}, [1])],
)
def test_a_start_that_was_not_cancelled_is_followed_on(event: Any, streams: list[int]) -> None:
    assert played(CANCELLED, event) == streams


def test_a_browser_that_refuses_to_notify_comes_to_the_session() -> None:
    assert played(READY) == ["reload"]


def test_without_a_network_the_page_stays_until_there_is_one() -> None:
    assert played(OFFLINE) == ["no network", "no network", "reload"]


def test_a_connection_that_has_died_on_the_way_is_noticed() -> None:
    assert played(SILENT) == [1, "reload", 2]


@pytest.mark.parametrize("off", [-3600, 0, 3600])
def test_a_wait_is_told_by_the_hubs_clock(off: int) -> None:
    waited, expected = played(f"const OFF = {off};{CLOCK}")
    assert waited == "2 min"
    assert "within 30 min" in expected
