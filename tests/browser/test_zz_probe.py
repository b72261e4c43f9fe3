import pytest
from tests.browser.lab import open_lab
from tests.instance import USERS

pytestmark = pytest.mark.browser


def test_probe(portal, page, visit):
    v = visit(USERS[0])
    v.start_and_wait(gpus=0)
    page.set_viewport_size({"width": 1440, "height": 900})
    open_lab(page, portal, USERS[0])
    print(
        page.evaluate(
            """[...document.querySelectorAll('.jp-FileBrowser-toolbar > *')].map(e=>[e.getAttribute('data-jp-item-name'), e.getBoundingClientRect().x, e.getBoundingClientRect().y, e.getBoundingClientRect().width, e.outerHTML.slice(0,260)].join(' | ')).join('\\n')"""
        )
    )
    print(
        page.evaluate(
            """(()=>{const s=getComputedStyle(document.querySelector('.jp-FileBrowser-toolbar'));return [s.display,s.flexWrap,s.padding,s.width,s.gap].join(' ')})()"""
        )
    )
