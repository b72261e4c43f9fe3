import json

from dsportal.session.page.look import page_config

FOLDERS = {"isilon": "/mnt/isilon", "templates": "/opt/templates"}


def test_the_page_is_told_what_the_folders_are_the_templates_first() -> None:
    told = page_config({}, FOLDERS, {"isilon": "The NAS."}, "templates")
    assert json.loads(told["portalFolders"]) == [
        {"name": "templates", "target": "/opt/templates", "note": "", "has_templates": True},
        {"name": "isilon", "target": "/mnt/isilon", "note": "The NAS.", "has_templates": False},
    ]


def test_the_page_is_told_the_look() -> None:
    told = page_config({"title": "Portal", "accent": "#3556c4"}, {}, {}, "")
    assert json.loads(told["portalLook"]) == {"title": "Portal", "accent": "#3556c4"}
    assert json.loads(told["portalFolders"]) == []
