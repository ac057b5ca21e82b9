"""Files of datasets are found, fetched whole or not at all, and read with errors that help."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

import numpy as np
import pytest

from fastbandit.errors import DataError, SettingError
from fastbandit.features.csv_files import read_blocks, read_csv, to_numbers
from lab.experiments.datasets import NAMES, files
from lab.experiments.datasets.files import SOURCES, data_folder, fetch, find, find_beside

NEEDS_NO_FILES = {"h1", "h1b", "h2", "h3", "procedural", "table", "sines", "branin", "hartmann6"}


@dataclass
class Server:
    """A web server with some files, which can stop half-way or ignore ranges.

    `versions` are headers with the version of its files; `conditions` what came as If-Range.
    """

    content: dict[str, bytes] = field(default_factory=dict)
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    conditions: list[str | None] = field(default_factory=list)
    stops_after: int | None = None
    knows_ranges: bool = True
    address: str = ""

    def opener(self, request: Request, *, timeout: float) -> Any:
        """Open what was asked for here, whatever host was asked."""
        name = request.full_url.rpartition("/")[2]
        local = Request(f"{self.address}/{name}", headers=dict(request.header_items()))
        return build_opener(ProxyHandler({})).open(local, timeout=timeout)

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        name, wanted = handler.path[1:], handler.headers.get("Range")
        self.asked.append((name, wanted))
        content = self.content.get(name)
        if content is None:
            handler.send_error(404)
            return
        condition = handler.headers.get("If-Range")
        self.conditions.append(condition)
        is_same = condition is None or condition in self.versions.values()
        first = int(wanted[6:-1]) if wanted and self.knows_ranges and is_same else 0
        if first and first >= len(content):
            handler.send_response(416)
            handler.send_header("Content-Range", f"bytes */{len(content)}")
            handler.send_header("Content-Length", "0")
            handler.end_headers()
            return
        handler.send_response(206 if first else 200)
        handler.send_header("Content-Length", str(len(content) - first))
        for header, value in self.versions.items():
            handler.send_header(header, value)
        handler.end_headers()
        handler.wfile.write(content[first:][: self.stops_after])


@pytest.fixture
def server() -> Iterator[Server]:
    served = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.answer(self)

        def log_message(self, format: str, *args: Any) -> None:
            """Keep quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        served.address = f"http://127.0.0.1:{http.server_port}"
        thread = Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield served
        http.shutdown()
        thread.join()


def zipped(members: dict[str, str]) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for name, text in members.items():
            archive.writestr(zipfile.ZipInfo(name), text)
    return held.getvalue()


MOVIELENS = zipped({"ml-latest-small/ratings.csv": "userId\n1\n", "ml-latest-small/README": "hi"})


@pytest.fixture
def movielens(server: Server) -> Server:
    server.content["ml-latest-small.zip"] = MOVIELENS
    return server


def part_of(folder: Path) -> Path:
    return folder / "movielens" / "ml-latest-small.zip.part"


def test_every_dataset_with_files_has_a_source() -> None:
    assert set(NAMES) - NEEDS_NO_FILES <= set(SOURCES)


def test_the_folder_named_comes_before_the_environment_and_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("FASTBANDIT_DATA", raising=False)

    assert data_folder(None) == tmp_path / "cache" / "fastbandit"
    monkeypatch.setenv("FASTBANDIT_DATA", str(tmp_path / "env"))
    assert data_folder(None) == tmp_path / "env"
    assert data_folder(tmp_path) == tmp_path


@pytest.mark.parametrize(
    ("platform", "ending"),
    [("linux", ".cache"), ("darwin", "Library/Caches"), ("win32", "AppData/Local")],
)
def test_the_cache_lies_where_the_platform_keeps_caches(
    platform: str, ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FASTBANDIT_DATA", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", platform)
    monkeypatch.setattr(files.Path, "home", lambda: tmp_path)

    assert data_folder(None) == tmp_path / ending / "fastbandit"


def test_the_first_candidate_that_exists_is_found(tmp_path: Path) -> None:
    (tmp_path / "b.csv").touch()
    (tmp_path / "c.csv").touch()

    assert find("movielens", ["a.csv", "b.csv", "c.csv"], data=tmp_path) == tmp_path / "b.csv"


def test_a_missing_file_says_what_was_looked_for_where_and_how_to_fetch_it(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        find("movielens", ["a.csv", "b.csv"], data=tmp_path)

    message = str(caught.value)
    assert "movielens needs one of a.csv, b.csv" in message
    assert f"none in {tmp_path}." in message
    assert f"`python -m lab data fetch movielens --data {tmp_path}`" in message


@pytest.mark.parametrize("name", ["bibtex", "celeba", "the-movies"])
def test_a_file_to_get_by_hand_says_from_which_page_and_whereto(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"Get .* at https://.*; put .* into ") as caught:
        find(name, SOURCES[name].files, data=tmp_path / "none")

    assert str(tmp_path / "none" / name) in str(caught.value)
    assert "(no such folder)" in str(caught.value)


def test_a_file_missing_beside_another_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"needs movies\.csv beside ratings\.csv"):
        find_beside(tmp_path / "ratings.csv", ["movies.csv"], dataset="movielens")


def test_a_table_is_read_by_columns(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text('a,b,c\n1,"x, y",3\n\n4,"two\nlines",6\n', encoding="utf-8-sig")

    assert read_csv(path, ["c", "b"]) == {"c": ["3", "6"], "b": ["x, y", "two\nlines"]}


def test_a_column_that_is_asked_for_twice_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("a,b\n1,2\n3,4\n")

    assert read_csv(path, ["a", "b", "a"]) == {"a": ["1", "3"], "b": ["2", "4"]}


def test_a_gzipped_table_reads_as_the_plain_one(tmp_path: Path) -> None:
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress("a,b\n1,é\n".encode()))

    assert read_csv(path, ["a", "b"]) == {"a": ["1"], "b": ["é"]}


def test_blocks_join_to_the_whole_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastbandit.features.csv_files._ROWS", 2)
    path = tmp_path / "table.csv"
    path.write_text("a\n1\n2\n3\n")

    assert [block["a"] for block in read_blocks(path, ["a"])] == [["1", "2"], ["3"]]
    assert read_csv(path, ["a"]) == {"a": ["1", "2", "3"]}


def test_dat_files_have_double_colons_and_no_header(tmp_path: Path) -> None:
    path = tmp_path / "movies.dat"
    path.write_bytes('1::A "title: one", (1995)::X|Y\n2::Andr\xe9::Z\n'.encode("latin-1"))

    (block,) = read_blocks(path, ["title"], header=("id", "title", "genres"))

    assert block == {"title": ['A "title: one", (1995)', "André"]}


def test_ragged_rows_are_filled_up_or_cut_where_they_are_allowed(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("a,b\n1\n2,3,4\n")

    assert read_csv(path, ["a", "b"], is_ragged=True) == {"a": ["1", "2"], "b": ["", "3"]}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"a,c\n1,2\n", r"t\.csv needs a column b: found a, c"),
        ("t.csv", b"", "it is empty"),
        ("t.csv.gz", gzip.compress(b"", mtime=0), "it is empty"),
        (
            "t.csv.gz",
            gzip.compress(b"a,b\n1,2\n" * 99, mtime=0)[:-12],
            "the file ends early. Download",
        ),
        ("t.csv.gz", b"a,b\n1,2\n", "Not a gzipped file"),
        ("t.csv", b'a,b\n"1\n1",2\n3\n', "needs 2 fields in each row: line 4 has 1"),
        ("t.csv", b"a,b\n\xff,2\n", "text in UTF-8"),
        ("t.csv", b'a,b\n1,"' + b"x" * 140_000, "comma-separated values: field larger"),
    ],
)
def test_a_damaged_table_says_what_is_wrong(
    name: str, content: bytes, message: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(content)

    with pytest.raises(DataError, match=message):
        read_csv(path, ["a", "b"])


def test_a_table_that_is_not_there_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        read_csv(tmp_path / "none.csv", ["a"])


@pytest.mark.parametrize("text", ["x", "", "nan", "inf"])
def test_a_number_that_cannot_be_read_names_its_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f'a,b\n1,"two\nlines"\n\n{text},3\n')

    with pytest.raises(DataError, match=f"number in the column a: line 5 has '{text}'"):
        to_numbers(read_csv(path, ["a"])["a"], path=path, column="a")


def test_numbers_are_read() -> None:
    numbers = to_numbers(["1", "2.5", "-3e2"], path=Path("t.csv"), column="a")

    assert np.array_equal(numbers, [1.0, 2.5, -300.0])


def test_a_zip_is_unpacked_into_place_and_nothing_is_left_beside(
    movielens: Server, tmp_path: Path
) -> None:
    (folder,) = fetch("movielens", tmp_path, opener=movielens.opener)

    assert folder == tmp_path / "movielens" / "ml-latest-small"
    assert (folder / "ratings.csv").read_text() == "userId\n1\n"
    assert [path.name for path in folder.parent.iterdir()] == ["ml-latest-small"]
    assert find("movielens", SOURCES["movielens"].files, data=tmp_path).parent == folder


def test_plain_files_are_put_into_their_folders(server: Server, tmp_path: Path) -> None:
    for name in ("all", "men", "women", "item_context"):
        server.content[f"{name}.csv"] = name.encode()

    paths = fetch("openbandit", tmp_path, opener=server.opener)

    assert len(paths) == 12
    assert (tmp_path / "openbandit/obd/bts/men/men.csv").read_text() == "men"
    assert (tmp_path / "openbandit/obd/random/all/item_context.csv").read_text() == "item_context"
    assert not list(tmp_path.rglob("*.part"))


def test_what_is_there_is_not_downloaded_again(movielens: Server, tmp_path: Path) -> None:
    for _ in range(2):
        fetch("movielens", tmp_path, opener=movielens.opener)

    assert len(movielens.asked) == 1


def test_a_half_download_is_stored_and_reported(movielens: Server, tmp_path: Path) -> None:
    movielens.stops_after = 100

    with pytest.raises(DataError, match=f"needs {len(MOVIELENS)} bytes: .* ended after 100"):
        fetch("movielens", tmp_path, opener=movielens.opener)

    assert part_of(tmp_path).read_bytes() == MOVIELENS[:100]
    assert [path.name for path in (tmp_path / "movielens").iterdir()] == [part_of(tmp_path).name]


def test_a_half_download_goes_on_where_it_ended(movielens: Server, tmp_path: Path) -> None:
    part_of(tmp_path).parent.mkdir()
    part_of(tmp_path).write_bytes(MOVIELENS[:100])

    (folder,) = fetch("movielens", tmp_path, opener=movielens.opener)

    assert movielens.asked == [("ml-latest-small.zip", "bytes=100-")]
    assert (folder / "README").read_text() == "hi"


@pytest.mark.parametrize("part", [MOVIELENS[:100], MOVIELENS, MOVIELENS + b"more"])
@pytest.mark.parametrize("knows_ranges", [True, False])
def test_any_part_left_by_an_earlier_run_ends_in_the_whole_dataset(
    part: bytes, knows_ranges: bool, movielens: Server, tmp_path: Path
) -> None:
    movielens.knows_ranges = knows_ranges
    part_of(tmp_path).parent.mkdir()
    part_of(tmp_path).write_bytes(part)

    (folder,) = fetch("movielens", tmp_path, opener=movielens.opener)

    assert (folder / "README").read_text() == "hi"


VERSIONS: list[tuple[dict[str, str], str | None]] = [
    ({"ETag": '"one"', "Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT"}, '"one"'),
    ({"Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT"}, "Mon, 01 Jan 2024 00:00:00 GMT"),
    ({"ETag": 'W/"one"', "Last-Modified": "Mon, 01 Jan 2024"}, "Mon, 01 Jan 2024"),
    ({"ETag": 'W/"one"'}, None),
    ({}, None),
]
"""What a server says of its version, and what is asked for when the download goes on."""


def stop_half_way(server: Server, folder: Path) -> None:
    server.stops_after = 100
    with pytest.raises(DataError, match="ended after 100"):
        fetch("movielens", folder, opener=server.opener)
    server.stops_after = None


@pytest.mark.parametrize(("versions", "condition"), VERSIONS)
def test_a_half_download_goes_on_if_the_file_is_still_the_same(
    versions: dict[str, str], condition: str | None, movielens: Server, tmp_path: Path
) -> None:
    movielens.versions = versions
    stop_half_way(movielens, tmp_path)

    (folder,) = fetch("movielens", tmp_path, opener=movielens.opener)

    assert movielens.conditions == [None, condition]
    assert movielens.asked[1] == ("ml-latest-small.zip", "bytes=100-")
    assert (folder / "README").read_text() == "hi"
    assert [path.name for path in folder.parent.iterdir()] == ["ml-latest-small"]


def test_a_file_that_changed_on_the_server_is_started_afresh(
    movielens: Server, tmp_path: Path
) -> None:
    movielens.versions = {"ETag": '"one"'}
    stop_half_way(movielens, tmp_path)
    movielens.versions = {"ETag": '"two"'}
    movielens.content["ml-latest-small.zip"] = zipped(
        {"ml-latest-small/ratings.csv": "another file, and a longer one", "ml-latest-small/a": ""}
    )

    (folder,) = fetch("movielens", tmp_path, opener=movielens.opener)

    assert (folder / "ratings.csv").read_text() == "another file, and a longer one"
    assert [path.name for path in folder.parent.iterdir()] == ["ml-latest-small"]


def test_a_file_that_changes_twice_is_known_by_its_last_version(
    movielens: Server, tmp_path: Path
) -> None:
    for etag in ('"one"', '"two"'):
        movielens.versions = {"ETag": etag}
        stop_half_way(movielens, tmp_path)

    fetch("movielens", tmp_path, opener=movielens.opener)

    assert movielens.conditions == [None, '"one"', '"two"']


def test_a_damaged_zip_leaves_nothing_of_its_version(server: Server, tmp_path: Path) -> None:
    server.versions = {"ETag": '"one"'}
    server.content["ml-latest-small.zip"] = b"no zip"

    with pytest.raises(DataError, match="whole zip file"):
        fetch("movielens", tmp_path, opener=server.opener)

    assert list((tmp_path / "movielens").iterdir()) == []


def test_a_damaged_zip_is_refused_and_removed(server: Server, tmp_path: Path) -> None:
    damaged = bytearray(MOVIELENS)
    damaged[60] ^= 255  # inside the first member
    server.content["ml-latest-small.zip"] = bytes(damaged)

    with pytest.raises(DataError, match=r"whole zip file: .*ratings\.csv"):
        fetch("movielens", tmp_path, opener=server.opener)

    assert list((tmp_path / "movielens").iterdir()) == []


@pytest.mark.parametrize("member", ["../evil", "ml-latest-small/../../evil", "/evil", "C:\\evil"])
def test_a_zip_that_leaves_its_folder_is_refused(
    member: str, server: Server, tmp_path: Path
) -> None:
    server.content["ml-latest-small.zip"] = zipped({"ml-latest-small/a": "", member: "x"})

    with pytest.raises(DataError, match="leaves it"):
        fetch("movielens", tmp_path / "data", opener=server.opener)

    assert not list(tmp_path.rglob("*evil*"))
    assert not (tmp_path / "data/movielens/ml-latest-small").exists()


def test_a_zip_of_another_layout_is_refused(server: Server, tmp_path: Path) -> None:
    server.content["ml-latest-small.zip"] = zipped({"other/a": ""})

    with pytest.raises(DataError, match="needs a folder ml-latest-small"):
        fetch("movielens", tmp_path, opener=server.opener)


def test_what_a_server_does_not_have_is_reported(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the server answers 404"):
        fetch("movielens", tmp_path, opener=server.opener)


def test_a_connection_that_fails_is_reported(tmp_path: Path) -> None:
    def refuse(request: Request, *, timeout: float) -> Any:
        raise ConnectionRefusedError("nobody listens")

    with pytest.raises(DataError, match=r"nobody listens\. Run the same command again"):
        fetch("movielens", tmp_path, opener=refuse)


def test_a_folder_that_cannot_be_written_is_reported(movielens: Server, tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(DataError, match="cannot be written"):
        fetch("movielens", tmp_path / "file", opener=movielens.opener)


def never(*_: Any, **__: Any) -> Any:
    raise AssertionError("nothing is to be opened")


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        (
            "celeba",
            DataError,
            r"no plain download. Get identity_CelebA.txt .* img_align_celeba.zip",
        ),
        ("movielenz", SettingError, "Did you mean 'movielens'"),
    ],
)
def test_what_cannot_be_fetched_opens_nothing(
    name: str, error: type[Exception], message: str, tmp_path: Path
) -> None:
    opener: Callable[..., Any] = never
    with pytest.raises(error, match=message):
        fetch(name, tmp_path, opener=opener)
