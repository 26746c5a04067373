"""Examples that are pictures: files of one folder, whatever their names try, shown as blobs."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest
from browser_studio import write_table
from studios import client_of

from crowdwise.session import Session
from crowdwise.studio import Studio


def png(width: int, height: int) -> bytes:
    """A picture of one colour."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    rows = zlib.compress((b"\x00" + b"\x20\x60\xa0" * width) * height)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def test_only_pictures_of_the_folder_are_sent(tmp_path: Path) -> None:
    folder = tmp_path / "pictures"
    (folder / "more").mkdir(parents=True)
    for name in ("a.png", "more/b.PNG"):
        (folder / name).write_bytes(png(3, 2))
    (folder / "notes.txt").write_text("secret")
    (folder / "evil.svg").write_text("<svg onload='alert(1)'/>")
    (tmp_path / "outside.png").write_bytes(png(1, 1))
    (folder / "link.png").symlink_to(tmp_path / "outside.png")
    names = [
        "a.png", "more/b.PNG", "notes.txt", "evil.svg", "../outside.png", str(tmp_path / "outside.png"), "link.png",
        "gone.png", "", "a\x00.png", "x" * 5000, "data:image/png;base64,AAAA", "https://example.org/a.png",
    ]  # fmt: skip
    with Session(texts=names, classes=["no", "yes"]) as session:
        client = client_of(Studio(session, "pictures", pictures=folder))
        answers = [client.get("/picture", {"row": row}) for row in range(len(names))]
        assert client.get("/start.json").json()["has"]["pictures"]
        assert not client.get("/start.json").json()["has"]["texts"]
    assert [answer.status for answer in answers] == [200, 200] + 11 * [404]
    assert {answer.headers["content-type"] for answer in answers[:2]} == {"image/png"}
    assert answers[0].headers["content-length"] == str(len(png(3, 2)))
    assert all(answer.headers["x-content-type-options"] == "nosniff" for answer in answers)


@pytest.mark.slow
def test_pictures_are_seen_on_the_seats(opened, serve, tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    for i in range(6):
        (tmp_path / "pictures" / f"p{i}.png").write_bytes(png(40 + i, 30))
    rows = [[f"e{i}", f"w{j}", "yes" if (i + j) % 3 else "no", f"p{i}.png"] for i in range(6) for j in range(3)]
    write_table(tmp_path / "labels.csv", ["example", "annotator", "label", "picture"], rows)
    studio = serve(tmp_path, "labels.csv", "--show", "picture", "--pictures", "pictures")
    page = opened(studio, "/label?person=ann")
    page.locator("main img").first.wait_for()
    assert 40 <= page.locator("main img").first.evaluate("picture => picture.naturalWidth") < 46
    assert page.locator("main img").first.get_attribute("src").startswith("blob:")
    page.keyboard.press("1")
    page.get_by_text("Last answers").wait_for()
    page = opened(studio, "/examples")
    page.locator("main img.thumb").nth(5).wait_for()
    assert page.locator("main img.thumb").count() == 6
